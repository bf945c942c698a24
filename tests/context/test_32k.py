"""The whole length: a builder, a tokenizer and an engine with 32,768 positions."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import calomel.weights
from calomel.context.budget import ExactCounter
from calomel.context.builder import ContextBuilder
from calomel.engine import BlockCausal, DiffusionConfig, Engine, ModelConfig, Transformer
from calomel.prompts.parts import Excerpt, Hunk
from calomel.prompts.tokenizer import Tokenizer
from calomel.suggest.completer import FillRequest
from calomel.suggest.filler import Filler
from calomel.workspace.workspace import Situation

POSITIONS = 32_768
ANSWER = 16
LIBRARY = Path(sysconfig.get_path("stdlib"))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(Path(calomel.weights.nano_path()) / "tokenizer.json")


@pytest.fixture(scope="module")
def filler(tokenizer: Tokenizer) -> Iterator[Filler]:
    """Random weights: what it says means nothing, what it reads is counted."""
    torch.manual_seed(1)
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=POSITIONS,
        diffusion=DiffusionConfig(mask_token_id=tokenizer.mask, end_token_id=tokenizer.end, max_canvas=32),
    )
    made = Filler(Engine(BlockCausal(Transformer(config), cache_tokens=3 * POSITIONS, threads=1)), tokenizer)
    yield made
    made.close()


def situation() -> Situation:
    text = (LIBRARY / "argparse.py").read_text(encoding="utf-8")
    related = tuple(
        Excerpt(f"lib/{name}.py", at, "".join(lines[at : at + 40]))
        for name in ("ast", "inspect", "typing", "dataclasses")
        for lines in ((LIBRARY / f"{name}.py").read_text(encoding="utf-8").splitlines(keepends=True),)
        for at in range(0, len(lines), 40)
    )
    return Situation("u", "argparse.py", "python", text, text.index("def add_argument("), 0, related=related)


@pytest.mark.slow
def test_builder_and_engine_serve_32k_and_read_a_keystroke_alone(filler: Filler, tokenizer: Tokenizer) -> None:
    builder = ContextBuilder(ExactCounter(tokenizer))
    budget = POSITIONS - ANSWER
    here = situation()

    def ask(found: Situation) -> tuple[int, int]:
        parts = builder.build(found, budget).parts
        fill = filler.fill(FillRequest("fill", parts, max_tokens=ANSWER, max_context=POSITIONS, min_tokens=ANSWER))
        assert fill.completion_tokens == ANSWER
        return fill.prompt_tokens, fill.cached_tokens

    tokens, cached = ask(here)
    # What is left is kept for edits and for a hop of the window.
    assert 30_000 < tokens <= budget
    assert cached == 0

    def typed(found: Situation, text: str) -> Situation:
        before, after = found.text[: found.offset], found.text[found.offset :]
        return replace(found, text=before + text + after, offset=found.offset + len(text))

    tokens, cached = ask(typed(here, "x"))
    assert cached / tokens > 0.99

    settled = replace(typed(here, "x = 1\n"), hunks=(Hunk("argparse.py", 1400, "", "x = 1\n"),))
    tokens, cached = ask(settled)
    assert cached / tokens > 0.9

    tokens, cached = ask(replace(here, offset=here.text.index("class Namespace")))
    assert cached / tokens > 0.3
