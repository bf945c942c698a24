"""A small suite of next-edit scenarios, written as the public one is."""

from __future__ import annotations

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
