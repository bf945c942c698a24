"""A filler on random weights: what it says means nothing, how it says it must be right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.loop_watch import _short_turns  # noqa: F401 (a fixture)

from calomel.engine import BlockCausal, DiffusionConfig, Engine, ModelConfig, Transformer
from calomel.infer.filler import Filler
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.corpus.shards import train_tokenizer


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    texts = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    return train_tokenizer(texts, tmp_path_factory.mktemp("tokenizer") / "tokenizer.json", vocab_size=340)


def random_model(tokenizer: Tokenizer, seed: int = 1, positions: int = 4096) -> Transformer:
    """One whose answers are long and varied, not one token or the end."""
    torch.manual_seed(seed)
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=positions,
        diffusion=DiffusionConfig(mask_token_id=tokenizer.mask, end_token_id=tokenizer.end, max_canvas=32),
    )
    model = Transformer(config)
    with torch.no_grad():
        model.embed_tokens.weight.normal_(std=1.0)
    return model


@pytest.fixture
def filler(tokenizer: Tokenizer) -> Iterator[Filler]:
    made = Filler(Engine(BlockCausal(random_model(tokenizer), cache_tokens=4096, threads=1)), tokenizer)
    yield made
    made.close()
