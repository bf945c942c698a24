"""Dream and Dream-Coder: Qwen2.5 that reads in both directions; a row predicts the next position (arXiv 2508.15487)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from calomel.engine import ModelConfig, Serving
from calomel.engine.window import WindowOptions
from calomel.families.configuration import named
from calomel.families.decoder import qwen_places
from calomel.families.estimate import Estimate, EstimateOptions
from calomel.families.facts import FamilyFacts, Published
from calomel.families.family import Family, OpenOptions
from calomel.families.generation import Generation
from calomel.families.style import PromptStyle
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

MASK: Final = "<|mask|>"
# "the context length (input+output) of Dream currently is 2048": the makers' README.
WINDOW: Final = 2048
CANVAS: Final = 256


def is_dream(raw: Mapping[str, Any]) -> bool:
    """Whether a `config.json` is of Dream's network, by whomever it was trained on; DreamReasoner's blocks are not."""
    return named(raw, "dreammodel") and not raw.get("block_size")


def called(raw: Mapping[str, Any], name: str) -> bool:
    """Whether a checkpoint says that it is `name`, which its makers left to `_name_or_path` alone."""
    return name in str(raw.get("_name_or_path", "")).lower()


def _recognises(raw: Mapping[str, Any]) -> bool:
    return is_dream(raw) and not called(raw, "diffucoder")


def config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    """Of Dream's network."""
    return qwen2_window(raw, folder, mask=MASK, window=WINDOW, canvas=CANVAS)


def _open(folder: Path, options: OpenOptions) -> Serving:
    shape = config(raw_of(folder), folder)
    window = WindowOptions(end_token_ids=more_ends(folder, TURN_END))
    return open_window(folder, options, shape, qwen_places(shape), window)


def estimate(raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
    """The memory of Dream's network."""
    return window_estimate(raw, options, window=WINDOW, canvas=CANVAS, dual_cache=False)


GENERATION: Final = Generation(
    policy="entropy",
    max_steps=CANVAS,
    fill_canvases=(8, 16, 32),
    edit_canvas=128,
    temperature=0.2,
    top_p=0.95,
    source="model cards: alg entropy, alg_temp 0, temperature 0.2, top_p 0.95, one token a step; canvases are ours",
)

DREAM: Final = Family(
    name="dream",
    recognises=_recognises,
    config=config,
    open=_open,
    estimate=estimate,
    prompts=PromptStyle(fim="around", edit="chat", mask=MASK, ends=(END, TURN_END), begin="<|beginoftext|>"),
    generation=GENERATION,
    read_generation=lambda _, folder: published_generation(GENERATION, folder),
    facts=FamilyFacts(
        title="Dream, Dream-Coder",
        checkpoints=(
            Published("Dream-org/Dream-v0-Base-7B", 7.6, "Apache-2.0"),
            Published(
                "Dream-org/Dream-v0-Instruct-7B", 7.6, "Apache-2.0", "HumanEval-Infilling 39.4 (Open-dLLM README)"
            ),
            Published("Dream-org/Dream-Coder-v0-Base-7B", 7.6, "Apache-2.0"),
            Published(
                "Dream-org/Dream-Coder-v0-Instruct-7B", 7.6, "Apache-2.0", "HumanEval-Infilling 55.3 (Open-dLLM README)"
            ),
        ),
        attention="in both directions, a window of 2,048 tokens",
        mask="`<|mask|>` 151666",
        shift=True,
        block=None,
        sources=("github.com/DreamLM/Dream", "arXiv 2508.15487", "github.com/DreamLM/Dream-Coder"),
        parity="tests/families/test_dream.py",
        limits="nothing of a context is kept for the next request",
    ),
)
FAMILIES: Final = (DREAM,)
