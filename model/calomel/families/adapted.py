"""Tiny A2D (github.com/ZHZisZZ/dllm): Qwen2.5-Coder and Qwen3 of half a billion parameters, adapted to denoise.

`mdlm` reads in both directions over the whole sequence, `bd3lm` in blocks of 32; no shift.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from calomel.engine import CheckpointError
from calomel.families.bidirectional import Window
from calomel.families.block_causal import TEXT_END, TURN_END, Blocks
from calomel.families.configuration import named, names_of
from calomel.families.family import Generation
from calomel.prompts.renderer import PromptStyle

_MASK: Final = "<|mask|>"
_ENDS: Final = (TURN_END, TEXT_END)
_BLOCK: Final = 32


def _a2d_network(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The network that it was made of: the end of its model type, `a2d-qwen3`."""
    kind = str(raw.get("model_type"))
    return {"qk_norm": kind.endswith("qwen3"), "qkv_bias": True if kind.endswith("qwen2") else None}


def _is_a2d(raw: Mapping[str, Any]) -> bool:
    return named(raw, "a2d-", "a2dqwen", "a2dllama")


def _bd3lm_usual(raw: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    if raw.get("block_size") is None and "bd3lm" not in names_of(raw, folder):
        raise CheckpointError(
            f"cannot tell how {folder} denoises: its name is not a published one (…-bd3lm-v0.1, …-mdlm-v0.1): "
            f'write "block_size" into its config.json, {_BLOCK} as published, or call it …-mdlm if it has no blocks'
        )
    return raw


# The length that it was trained on.
A2D_MDLM: Final = Window(1024, shift=False, block=_BLOCK, network=_a2d_network).family(
    "a2d-mdlm",
    _is_a2d,
    Generation(
        policy="low_confidence",
        max_steps=256,
        fill_canvas=16,
        edit_canvas=128,
        source="examples/a2d/mdlm/sample.py of ZHZisZZ/dllm: low_confidence, blocks of 32, temperature 0, one token a "
        "step; canvases are ours",
    ),
    PromptStyle(fim="around", edit="chat", mask=_MASK, ends=_ENDS),
    confirms=lambda raw, folder: "mdlm" in names_of(raw, folder),
    samples=False,
)
A2D_BD3LM: Final = Blocks(
    "block_size",
    _BLOCK,
    "low_confidence",
    "examples/a2d/bd3lm/sample.py of ZHZisZZ/dllm: low_confidence, a step a token, temperature 0",
    PromptStyle(fim="left_to_right", edit="chat", mask=_MASK, ends=_ENDS),
    usual=_bd3lm_usual,
    network=_a2d_network,
).family("a2d-bd3lm", _is_a2d)
