"""Fast-dLLM v2: Qwen2.5 that denoises blocks of 32 in runs of 8; a row predicts the next position (2509.26328)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from calomel.engine import DiffusionConfig, ModelConfig, Serving
from calomel.families.configuration import block_of, decoder_config, named
from calomel.families.decoder import open_decoder, qwen_places
from calomel.families.estimate import Estimate, EstimateOptions, decoder_estimate
from calomel.families.facts import FamilyFacts, Published
from calomel.families.family import Family, OpenOptions
from calomel.families.generation import Generation
from calomel.families.style import PromptStyle
from calomel.families.token_ids import need_token_id

BLOCK: Final = 32
# The model card's small_block_size.
SUB_BLOCK: Final = 8
MASK: Final = "|<MASK>|"
END: Final = "<|im_end|>"


def _recognises(raw: Mapping[str, Any]) -> bool:
    return named(raw, "fast_dllm_qwen", "fast_dllm_v2")


def _config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    block = block_of(raw, "bd_size", BLOCK)
    diffusion = DiffusionConfig(
        mask_token_id=need_token_id(folder, MASK),
        end_token_id=need_token_id(folder, END, "<|endoftext|>"),
        logit_shift=True,
        max_canvas=block,
        verifiable=False,
        block=block,
        sub_block=SUB_BLOCK if block % SUB_BLOCK == 0 else None,
        block_cache=raw.get("use_block_cache") is True,
    )
    return decoder_config(raw, diffusion, qkv_bias=True)


def _open(folder: Path, options: OpenOptions) -> Serving:
    config = _config(json.loads((folder / "config.json").read_text(encoding="utf-8")), folder)
    return open_decoder(folder, options, config, qwen_places(config))


def _estimate(raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
    return decoder_estimate(raw, options, canvas=block_of(raw, "bd_size", BLOCK))


def _generation(raw: Mapping[str, Any], folder: Path) -> Generation:
    # Its generation_config.json is Qwen2.5's, which samples; the published loop takes the best token.
    del folder
    block = block_of(raw, "bd_size", BLOCK)
    return replace(GENERATION, max_steps=block, fill_canvases=(block,), edit_canvas=block)


GENERATION: Final = Generation(
    policy="threshold:0.9",
    max_steps=BLOCK,
    fill_canvases=(BLOCK,),
    edit_canvas=BLOCK,
    source="model card (threshold 0.9, small_block_size 8); the published loop takes the best token",
)

FAST_DLLM_V2: Final = Family(
    name="fast-dllm-v2",
    recognises=_recognises,
    config=_config,
    open=_open,
    estimate=_estimate,
    prompts=PromptStyle(fim="chat", edit="chat", mask=MASK, ends=(END, "<|endoftext|>")),
    generation=GENERATION,
    read_generation=_generation,
    facts=FamilyFacts(
        title="Fast-dLLM v2",
        checkpoints=(
            Published("Efficient-Large-Model/Fast_dLLM_v2_1.5B", 1.5, "Apache-2.0"),
            Published("Efficient-Large-Model/Fast_dLLM_v2_7B", 7.6, "Apache-2.0"),
        ),
        attention="block-causal, blocks of 32 revealed in runs of 8",
        mask="`|<MASK>|` 151665",
        shift=True,
        block=BLOCK,
        sources=("github.com/NVlabs/Fast-dLLM (v2)", "arXiv 2509.26328"),
        parity="tests/families/test_fast_dllm_v2.py",
        limits="the mask token is never predicted; the approximate cache of sub-blocks is off, as published: "
        "`use_block_cache: true` in config.json turns it on",
    ),
)
FAMILIES: Final = (FAST_DLLM_V2,)
