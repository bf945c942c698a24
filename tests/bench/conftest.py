from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
import zstandard

from calomel.engine import Transformer
from calomel.engine.checkpoint import save_checkpoint
from calomel.report.heldout import HeldoutFile
from calomel.report.running import Progress
from calomel.training.config import ModelShape
from calomel.training.corpus.shards import train_tokenizer

PYTHON = '''def average(numbers: list[float]) -> float:
    """The arithmetic mean of numbers, zero for none of them."""
    if not numbers:
        return 0.0
    total = 0.0
    for number in numbers:
        total += number
    return total / len(numbers)


class Account:
    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.balance = 0

    def deposit(self, amount: int) -> None:
        self.balance = self.balance + amount
        print("deposited", amount, "for", self.owner)
'''


GO = """package queue

// Queue keeps items in the order of their arrival.
type Queue struct {
\titems []string
}

func (queue *Queue) Push(item string) {
\tqueue.items = append(queue.items, item)
}

func (queue *Queue) Length() int {
\treturn len(queue.items)
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journals of a test are its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def files() -> tuple[HeldoutFile, ...]:
    sources = (("python", "py", PYTHON), ("go", "go", GO))
    return tuple(
        HeldoutFile(f"package{number}", f"src/file{number}.{ending}", language, text)
        for language, ending, text in sources
        for number in range(4)
    )


@pytest.fixture
def heldout(files: tuple[HeldoutFile, ...], tmp_path: Path) -> Path:
    return write_stories(tmp_path / "heldout.jsonl.zst", *map(asdict, files))


@pytest.fixture
def progress() -> Progress:
    return Progress()


@pytest.fixture
def checkpoint(files: tuple[HeldoutFile, ...], tmp_path: Path) -> Path:
    """A tiny model with random weights: what it answers is nonsense, but everything around it is real."""
    folder = tmp_path / "checkpoint"
    tokenizer = train_tokenizer([file.text for file in files], folder / "tokenizer.json", vocab_size=400)
    shape = ModelShape(400, 32, 48, layers=2, heads=4, kv_heads=2, head_dim=8, max_position_embeddings=1024)
    torch.manual_seed(7)
    save_checkpoint(Transformer(shape.model_config(tokenizer)), folder)
    return folder


# Stories of edits by hand, in a file as the held-out ones are.
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
