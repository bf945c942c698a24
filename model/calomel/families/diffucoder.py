"""DiffuCoder: Dream's network and loop, trained on code from Qwen2.5-Coder (arXiv 2506.20639)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from calomel.engine import Serving
from calomel.engine.window import WindowOptions
from calomel.families import dream
from calomel.families.decoder import qwen_places
from calomel.families.facts import FamilyFacts, Published
from calomel.families.family import Family, OpenOptions
from calomel.families.style import PromptStyle
from calomel.families.window import (
    END,
    TURN_END,
    more_ends,
    open_window,
    published_generation,
    raw_of,
)

# Fills what is behind an answer, as its makers' examples cut it off.
PAD: Final = "<|dlm_pad|>"


def _recognises(raw: Mapping[str, Any]) -> bool:
    return dream.is_dream(raw) and dream.called(raw, "diffucoder")


def _open(folder: Path, options: OpenOptions) -> Serving:
    config = dream.config(raw_of(folder), folder)
    window = WindowOptions(end_token_ids=more_ends(folder, TURN_END, PAD))
    return open_window(folder, options, config, qwen_places(config), window)


GENERATION: Final = replace(
    dream.GENERATION,
    source="model cards: alg entropy, alg_temp 0, temperature 0.2 (base), top_p 0.95; canvases are ours",
)

DIFFUCODER: Final = Family(
    name="diffucoder",
    recognises=_recognises,
    config=dream.config,
    open=_open,
    estimate=dream.estimate,
    prompts=PromptStyle(fim="around", edit="chat", mask=dream.MASK, ends=(END, TURN_END)),
    generation=GENERATION,
    read_generation=lambda _, folder: published_generation(GENERATION, folder),
    facts=FamilyFacts(
        title="DiffuCoder",
        checkpoints=(
            Published("apple/DiffuCoder-7B-Base", 7.6, "Apple's own; see its card"),
            Published("apple/DiffuCoder-7B-Instruct", 7.6, "apple-amlr", "HumanEval-Infilling 54.8 (Open-dLLM README)"),
            Published("apple/DiffuCoder-7B-cpGRPO", 7.6, "Apple's own; see its card"),
        ),
        attention="in both directions, a window of 2,048 tokens",
        mask="`<|mask|>` 151666",
        shift=True,
        block=None,
        sources=("github.com/apple/ml-diffucoder", "arXiv 2506.20639"),
        parity="tests/families/test_dream.py",
        limits=(
            "recognised by `_name_or_path`, else taken for Dream, which differs in `<|dlm_pad|>` alone; "
            "nothing of a context is kept for the next request"
        ),
    ),
)
FAMILIES: Final = (DIFFUCODER,)
