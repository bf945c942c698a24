"""A tiny corpus of random source-like text, and everything that is made from it."""

from __future__ import annotations

import os
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from tests.bench.conftest import write_stories
from tests.training.sources import Forge

from calomel.prompts.tokenizer import Tokenizer
from calomel.training.config import BatchShape, ModelShape, Optimization, TrainConfig
from calomel.training.corpus.shards import Document
from calomel.training.rendered import TOKENIZER, render

SHAPE = BatchShape(documents=2, front=96, holes=3, canvas=12)
TINY = ModelShape(
    vocab_size=400, hidden_size=32, intermediate_size=48, layers=2, heads=2, kv_heads=1, head_dim=16, sliding_window=40
)


@pytest.fixture(scope="session")
def documents() -> list[Document]:
    rng = random.Random(0)
    names = ["total", "index", "value", "result", "self.items", "größe"]
    out = []
    for number in range(12):
        lines = []
        for _ in range(60):
            indent = " " * rng.choice((0, 4, 8))
            lines.append(
                f"{indent}{rng.choice(names)} = {rng.choice(names)}({rng.randrange(100)}, {rng.choice(names)})"
            )
            if rng.random() < 0.1:
                lines.append("")
        out.append(Document(f"package/module_{number}.py", "python" if number % 3 else "go", "\n".join(lines) + "\n"))
    return out


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory, documents: list[Document]) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_stories(folder / "train.jsonl.zst", *map(asdict, documents[:10]))
    write_stories(folder / "heldout.jsonl.zst", *map(asdict, documents[10:]))
    return folder


@pytest.fixture(scope="session")
def shards(corpus: Path) -> Path:
    render(corpus, None, corpus / "shards", vocab_size=400)
    return corpus / "shards"


@pytest.fixture(scope="session")
def tokenizer(shards: Path) -> Tokenizer:
    return Tokenizer.from_file(shards / TOKENIZER)


@pytest.fixture
def config(shards: Path, tokenizer: Tokenizer) -> TrainConfig:
    return TrainConfig(
        data=shards,
        rows=20_000,
        threads=1,
        shapes=(SHAPE,),
        model=replace(TINY, vocab_size=tokenizer.vocab_size),
        optimization=Optimization(compile=False, warmup_steps=5),
        evaluate_steps=50,
        checkpoint_minutes=5.0,
    )


@pytest.fixture
def forge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Forge:
    folder = tmp_path / "forge"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    made = Forge(folder)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(made.config))
    return made
