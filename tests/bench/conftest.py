from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from tests.bench.stories_made import write_stories

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
