"""Stories of edits by hand, in a file as the held-out ones are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import zstandard

BILL = """def bill(prices):
    total = sum(prices)
    if total > 100:
        total = total - 5
    return total
"""


def rename(text: str = BILL, old: str = "total", new: str = "amount", path: str = "shop/bill.py") -> dict[str, Any]:
    """Every `old` becomes `new`, from the first to the last."""
    changes: list[list[Any]] = []
    at, grown = text.find(old), len(new) - len(old)
    while at >= 0:
        changes.append([at + grown * len(changes), at + grown * len(changes) + len(old), new])
        at = text.find(old, at + len(old))
    return {"kind": "rename", "language": "python", "path": path, "text": text, "changes": changes}


def line() -> dict[str, Any]:
    """One change: a line is added."""
    at = BILL.index("    return")
    row = {"kind": "line_completed", "language": "python", "path": "shop/bill.py", "text": BILL}
    return {**row, "changes": [[at, at, "    print(total)\n"]]}


def write_stories(path: Path, *rows: dict[str, Any]) -> Path:
    """A packed file of JSON objects, one a line."""
    path.write_bytes(zstandard.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path
