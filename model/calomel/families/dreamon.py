"""DreamOn: Dream-Coder whose canvases grow and shrink by tokens of their own (arXiv 2602.01326)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from calomel.engine import ModelConfig, Serving
from calomel.engine.window import WindowOptions
from calomel.families.configuration import named
from calomel.families.decoder import qwen_places
from calomel.families.dream import MASK, WINDOW, called, is_dream
from calomel.families.estimate import Estimate, EstimateOptions
from calomel.families.facts import FamilyFacts, Published
from calomel.families.family import Family, OpenOptions
from calomel.families.generation import Generation, read_generation_config
from calomel.families.style import PromptStyle
from calomel.families.token_ids import need_token_id
from calomel.families.window import (
    END,
    open_window,
    published_generation,
    qwen2_window,
    raw_of,
    window_estimate,
)

EXPAND: Final = "<|expand|>"
# Its README's max_new_tokens; a canvas begins with 4 masks there.
LONGEST: Final = 64
_FIRST: Final = 4


def _recognises(raw: Mapping[str, Any]) -> bool:
    return named(raw, "dreamon") or (is_dream(raw) and (called(raw, "dreamon") or "expand_token_id" in raw))


def _config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    return qwen2_window(raw, folder, mask=MASK, window=WINDOW, canvas=LONGEST)


def _open(folder: Path, options: OpenOptions) -> Serving:
    raw = raw_of(folder)
    config, said = _config(raw, folder), read_generation_config(folder)
    expand = raw.get("expand_token_id", said.get("expand_token_id"))
    budget, transfer = said.get("expand_budget"), said.get("number_transfer_tokens")
    window = WindowOptions(
        expand_token_id=expand if isinstance(expand, int) else need_token_id(folder, EXPAND),
        # Its loop takes the end token for it.
        delete_token_id=config.diffusion.end_token_id,
        expand_budget=budget if isinstance(budget, int) and budget >= 0 else None,
        transfer=transfer if isinstance(transfer, int) and transfer > 0 else 1,
    )
    return open_window(folder, options, config, qwen_places(config), window)


def _estimate(raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
    return window_estimate(raw, options, window=WINDOW, canvas=LONGEST, dual_cache=False)


GENERATION: Final = Generation(
    policy="entropy",
    # One token a step, and as many steps again for what grows and shrinks: its makers' evaluation stops there.
    max_steps=256,
    fill_canvases=(_FIRST,),
    edit_canvas=LONGEST,
    temperature=0.2,
    top_p=0.9,
    source="README: alg entropy, temperature 0.2, top_p 0.9, 4 masks to begin with, number_transfer_tokens 1",
)

DREAMON: Final = Family(
    name="dreamon",
    recognises=_recognises,
    config=_config,
    open=_open,
    estimate=_estimate,
    prompts=PromptStyle(
        fim="around", edit="around", mask=MASK, ends=(END,), begin="<|beginoftext|>", close="<|endoftext|>"
    ),
    generation=GENERATION,
    read_generation=lambda _, folder: published_generation(GENERATION, folder),
    facts=FamilyFacts(
        title="DreamOn",
        checkpoints=(
            Published("Dream-org/DreamOn-v0-7B", 7.6, "Apache-2.0", "HumanEval-Infilling single-line 90.8 (its blog)"),
        ),
        attention="in both directions, a window of 2,048 tokens, canvases of 4 to 64",
        mask="`<|mask|>` 151666, `<|expand|>` 151667",
        shift=True,
        block=None,
        sources=("github.com/DreamLM/DreamOn", "arXiv 2602.01326"),
        parity="tests/families/test_dream.py",
        limits="no constraint and no frozen tokens on a canvas that changes its length",
    ),
)
FAMILIES: Final = (DREAMON,)
