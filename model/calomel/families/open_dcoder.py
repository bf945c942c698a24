"""Open-dCoder: Qwen2.5-Coder 0.5B that reads in both directions; a row predicts the next position (Open-dLLM)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from calomel.engine import CheckpointError, ModelConfig, Serving
from calomel.engine.window import WindowOptions
from calomel.families.configuration import named
from calomel.families.decoder import qwen_places
from calomel.families.estimate import Estimate, EstimateOptions
from calomel.families.facts import FamilyFacts, Published
from calomel.families.family import Family, OpenOptions
from calomel.families.generation import Generation
from calomel.families.style import PromptStyle
from calomel.families.token_ids import token_id
from calomel.families.window import (
    END,
    TURN_END,
    more_ends,
    open_window,
    published_generation,
    qwen2_window,
    raw_of,
    window_estimate,
)

MASK: Final = "<M>"
# The length that it was trained on.
WINDOW: Final = 4096
CANVAS: Final = 256


def _recognises(raw: Mapping[str, Any]) -> bool:
    # Its configuration is an ordinary Qwen2's; the mask token tells it from one.
    return raw.get("model_type") == "qwen2" and named(raw, "qwen2forcausallm")


def _config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    if token_id(folder, MASK) is None and not isinstance(raw.get("mask_token_id"), int):
        raise CheckpointError(
            f"{folder} is an ordinary Qwen2: it writes from left to right and has no mask token ({MASK}); "
            "of this shape Calomel loads Open-dCoder"
        )
    return qwen2_window(raw, folder, mask=MASK, window=WINDOW, canvas=CANVAS)


def _open(folder: Path, options: OpenOptions) -> Serving:
    config = _config(raw_of(folder), folder)
    window = WindowOptions(end_token_ids=more_ends(folder, TURN_END))
    return open_window(folder, options, config, qwen_places(config), window)


def _estimate(raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
    return window_estimate(raw, options, window=WINDOW, canvas=CANVAS, dual_cache=False)


GENERATION: Final = Generation(
    policy="p2",
    max_steps=64,
    fill_canvases=(8, 16, 32),
    edit_canvas=64,
    temperature=0.6,
    top_p=0.95,
    source="Open-dLLM's infilling evaluation: alg p2, 64 steps, temperature 0.6, top_p 0.95; canvases are ours",
)

OPEN_DCODER: Final = Family(
    name="open-dcoder",
    recognises=_recognises,
    config=_config,
    open=_open,
    estimate=_estimate,
    prompts=PromptStyle(fim="around", edit="around", mask=MASK, ends=(END, TURN_END)),
    generation=GENERATION,
    read_generation=lambda _, folder: published_generation(GENERATION, folder),
    facts=FamilyFacts(
        title="Open-dCoder",
        checkpoints=(
            Published(
                "fredzzp/open-dcoder-0.5B",
                0.5,
                "Apache-2.0",
                "HumanEval-Infilling 32.5 at fixed lengths, 77.4 at the true one (Open-dLLM README)",
            ),
        ),
        attention="in both directions, a window of 4,096 tokens",
        mask="`<M>`, as its tokenizer says",
        shift=True,
        block=None,
        sources=("github.com/pengzhangzhi/Open-dLLM",),
        parity="tests/families/test_dream.py",
        limits="nothing of a context is kept for the next request",
    ),
)
FAMILIES: Final = (OPEN_DCODER,)
