"""A tiny random model on disk, and questions about a text of its language."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from calomel.engine.checkpoint import save_checkpoint
from calomel.engine.config import DiffusionConfig, ModelConfig
from calomel.engine.memory import MemoryConfig
from calomel.engine.transformer import Transformer
from calomel.prompts.parts import EditRegion, PromptParts
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.alignment.data import AlignConfig, Preference

# Few enough masks to enumerate, and a window that is shorter than a prompt.
CONFIG = ModelConfig(
    vocab_size=400,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=16,
    max_position_embeddings=1024,
    diffusion=DiffusionConfig(mask_token_id=1, end_token_id=0, logit_shift=True, max_canvas=24),
    sliding_window=24,
    layer_types=("sliding_attention", "full_attention"),
)


def random_model(tokenizer: Tokenizer, *, shift: bool = True, memory: bool = True) -> Transformer:
    torch.manual_seed(3)
    tables = MemoryConfig(64, 8, (tokenizer.region, tokenizer.near), tokenizer.middle) if memory else None
    diffusion = DiffusionConfig(tokenizer.mask, tokenizer.end, logit_shift=shift, max_canvas=24)
    model = Transformer(replace(CONFIG, vocab_size=tokenizer.vocab_size, diffusion=diffusion, memory=tables))
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.15)
    return model.requires_grad_(False).eval()


@pytest.fixture
def checkpoint(tokenizer: Tokenizer, corpus: Path, tmp_path: Path) -> Path:
    """A folder like a shipped one: edits are among its abilities."""
    folder = tmp_path / "model"
    abilities = {"kinds": ["fill", "edit"], "edit_region": {"above": 1, "below": 2, "characters": 140, "context": 64}}
    save_checkpoint(random_model(tokenizer), folder, abilities=abilities)
    shutil.copyfile(corpus / "tokenizer.json", folder / "tokenizer.json")
    (folder / "calibrator.json").write_text(json.dumps({"edit": {}}))
    (folder / "NOTICE").write_text("whose text it is\n")
    (folder / "MODEL_CARD.md").write_text("figures\n")
    return folder


@pytest.fixture
def settings() -> AlignConfig:
    return AlignConfig(
        learning_rate=3e-3,
        epochs=3,
        batch=4,
        draws=2,
        context=48,
        longest=40,
        fill_canvas=8,
        edit_canvas=16,
        held_out=0.25,
        held_out_draws=4,
        warmup=0.0,
        threads=1,
    )


def hole(number: int) -> PromptParts:
    return PromptParts(path=f"a{number}.py", prefix=f"total = {number}\nindex = ", suffix="\nvalue\n")


def region(number: int) -> PromptParts:
    return PromptParts(
        path=f"a{number}.py", prefix="total = 1\n", suffix="index\n", region=EditRegion(f"value = {number}\n", 3)
    )


@pytest.fixture
def preferences() -> list[Preference]:
    """Of every question: one answer that was taken, one that was rejected, and silence where that is right."""
    found = []
    for number in range(12):
        group = f"file {number}"
        found += [
            Preference(hole(number), "fill", "result", desirable=True, group=group),
            Preference(hole(number), "fill", "self.items", desirable=False, group=group),
            Preference(region(number), "edit", "result = 0\n", desirable=False, group=group),
            Preference(region(number), "edit", f"value = {number}\n", desirable=True, weight=0.5, group=group),
        ]
    return found


@pytest.fixture
def model_maker(tokenizer: Tokenizer) -> Callable[..., Transformer]:
    return lambda **options: random_model(tokenizer, **options)
