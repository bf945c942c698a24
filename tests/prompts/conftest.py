"""A tokenizer trained on this project's own source, and that of the shipped model."""

from __future__ import annotations

from pathlib import Path

import pytest

from calomel.prompts.tokenizer import Tokenizer
from calomel.training.corpus.shards import train_tokenizer
from calomel.weights import nano_path


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    sources = Path(__file__).parents[2].glob("model/calomel/**/*.py")
    texts = [path.read_text(encoding="utf-8") for path in sorted(sources)]
    return train_tokenizer(texts, tmp_path_factory.mktemp("tokenizer") / "tokenizer.json", vocab_size=600)


@pytest.fixture(scope="session")
def nano() -> Tokenizer:
    return Tokenizer.from_file(Path(nano_path()) / "tokenizer.json")
