"""Decoders that several makers adapted to denoise, each in one of the ways of the other families.

* Tiny A2D (github.com/ZHZisZZ/dllm): Qwen2.5-Coder and Qwen3 of half a billion parameters. `mdlm` reads in both
  directions over the whole sequence, `bd3lm` in blocks of 32; no shift.
* DreamReasoner (arXiv 2606.19257): Qwen3 8B in blocks of 32, no shift, SDAR's loop.
* CoDA (SalesforceAIResearch/CoDA): Qwen3 1.7B in both directions; a row predicts the next position, Dream's loop.
* Nemotron-Labs-Diffusion: a Ministral that writes from left to right, and denoises blocks after a causal context. As in
the published generation code (`generate_with_prefix_cache_block_diff`), the causal mode decides the first position of a
block of 32, the others are denoised, and the whole block is encoded causally before the next one. The same weights
judge given texts, as our own do. With left-to-right decoding, a block is denoised in one forward and verified in the
next (`linear_spec_generate`, threshold 0, without its adapters for drafts).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from calomel.engine import CheckpointError
from calomel.engine.checkpoint import tensor_table
from calomel.families.bidirectional import LLADA_GENERATION, Window
from calomel.families.block_causal import TEXT_END, TURN_END, Blocks
from calomel.families.configuration import named, names_of, rope_of
from calomel.families.family import Generation
from calomel.families.loading import renamed
from calomel.prompts.renderer import PromptStyle

_MASK: Final = "<|mask|>"
_ENDS: Final = (TURN_END, TEXT_END)
_BLOCK: Final = 32


# Tiny A2D


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
    replace(
        LLADA_GENERATION,
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

# DreamReasoner

DREAM_REASONER: Final = Blocks(
    "block_size",
    _BLOCK,
    "low_confidence_dynamic:0.9",
    "block_diffusion_generate of the checkpoint: low_confidence_dynamic, threshold 0.9, a step a position; README: "
    "temperature 0 under SGLang",
    PromptStyle(fim="left_to_right", edit="chat", mask=_MASK, ends=_ENDS),
    network=lambda _: {"qk_norm": True},
    # Dream's names; only this one has blocks.
).family("dream-reasoner", lambda raw: named(raw, "dream") and raw.get("block_size") is not None)

# CoDA


def _coda_usual(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Its head is a separate matrix, whatever the file says: its class never ties it."""
    return {**raw, "tie_word_embeddings": False}


# Evaluated with answers of 768 tokens.
CODA: Final = Window(2048, usual=_coda_usual, network=lambda _: {"qk_norm": True}).family(
    "coda",
    lambda raw: named(raw, "codalanguagemodel"),
    Generation(
        policy="entropy",
        max_steps=256,
        fill_canvases=(8, 16, 32),
        edit_canvas=128,
        temperature=0.1,
        top_p=0.9,
        source="evaluation/lm_eval/eval_mbpp_humaneval.sh of SalesforceAIResearch/CoDA: alg entropy, temperature 0.1, "
        "top_p 0.9, one token a step; canvases are ours",
    ),
    PromptStyle(fim="around", edit="chat", mask=_MASK, ends=(TEXT_END, TURN_END)),
    samples=False,
)

# Nemotron-Labs-Diffusion

NEMOTRON_NAMES: Final = {"model.": "encoder.", "lm_head": "diffusion_head"}


def _nemotron_usual(raw: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    if raw.get("dlm_type") == "dream":
        raise CheckpointError(
            "dlm_type in config.json is 'dream'; only rows that predict their own position are supported"
        )
    missing = [name for name in ("mask_token_id", "eos_token_id") if type(raw.get(name)) is not int]
    if missing:
        raise CheckpointError(f"config.json in {folder} has no {' and no '.join(missing)}")
    positions, rope = int(raw["max_position_embeddings"]), rope_of(raw)
    if rope.get("llama_4_scaling_beta"):
        # From this position on, queries are scaled.
        positions = min(positions, int(rope["original_max_position_embeddings"]))
    return {**raw, "max_position_embeddings": positions}


NEMOTRON: Final = Blocks(
    "block_size",
    _BLOCK,
    "threshold:0.9",
    "generate of modeling_nemotron_labs_diffusion.py: blocks of 32, threshold 0.9, a causal context, temperature 0",
    # The names of its mask and end tokens are in its tokenizer; config.json has their ids.
    PromptStyle(fim="left_to_right", edit="chat", mask=None, ends=("</s>",)),
    opens=True,
    usual=_nemotron_usual,
    end_id=2,
    places=lambda config: renamed(tensor_table(config), NEMOTRON_NAMES),
).family("nemotron-labs-diffusion", lambda raw: raw.get("model_type") == "nemotron_labs_diffusion")
