"""A small suite of next-edit scenarios with recorded answers, written as the public one is."""

from __future__ import annotations

import base64
import json
from pathlib import Path

RENAME = """Rename the total.
id: rename-total
language: python
file: bill.py
row: 2
col: 4
-- buffer.txt --
def bill(prices):
    amount = sum(prices)
    return total
-- history --
<|file|> bill.py
<|old|>
    total = sum(prices)
<|new|>
    amount = sum(prices)
-- steps --
request-completion manual
-- expected --
def bill(prices):
    amount = sum(prices)
    return amount
"""
QUIET = """Nothing to do here.
id: quiet
language: python
file: done.py
row: 1
col: 5
cursor-positions: 2:12
-- buffer.txt --
def f(x):
    return x
-- steps --
request-completion manual
"""
# The file ends in an empty line, which belongs to nobody's edit.
BLANK_END = """Fill in the name.
id: blank-end
language: python
file: hello.py
row: 1
col: 12
-- buffer.txt --
name = "ann"
-- steps --
request-completion manual
-- expected --
name = "anna"

"""
PUBLISHED = {"other": {"score": 0.5, "deltaChrF": 60.0, "showRate": 1, "quietRate": 0.75}}


def write_suite(folder: Path) -> Path:
    for name, text in (("01-rename", RENAME), ("02-quiet", QUIET), ("03-blank-end", BLANK_END)):
        (folder / f"{name}.txtar").write_text(text, encoding="utf-8")
    (folder / "peer-baseline-3.json").write_text(json.dumps(PUBLISHED), encoding="utf-8")
    return folder


def request(region: str, before: str = "", after: str = "") -> str:
    """A prompt of the edit endpoint; `region` holds the cursor."""
    return (
        "<|recently_viewed_code_snippets|>\n<|/recently_viewed_code_snippets|>\n\n<|current_file_content|>\n"
        f"current_file_path: bill.py\n{before}<|code_to_edit|>\n{region}\n<|/code_to_edit|>\n{after}"
        "<|/current_file_content|>\n\n<|edit_diff_history|>\n<|/edit_diff_history|>\n"
    )


def write_recording(file: Path, *exchanges: tuple[str, str], status: int = 200) -> Path:
    lines = [json.dumps({"kind": "meta", "provider": "mercuryapi"})]
    for number, (prompt, answer) in enumerate(exchanges):
        asked = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
        answered = {"choices": [{"message": {"content": answer}}]}
        lines.append(json.dumps({"kind": "request", "interaction": number, "body_b64": _coded(asked)}))
        response = {"kind": "response", "interaction": number, "status": status, "body_b64": _coded(answered)}
        lines.append(json.dumps(response | {"duration_ms": 100 + number}))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def _coded(value: object) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()
