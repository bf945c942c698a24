"""SDAR: Qwen3 made to denoise a block of four at a time behind a context that is read in blocks (arXiv 2510.06303)."""

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
from calomel.families.generation import Generation, sampled
from calomel.families.style import PromptStyle
from calomel.families.token_ids import need_token_id

# generate.py's --block_length; checkpoints of other lengths say theirs in config.json.
BLOCK: Final = 4
MASK: Final = "<|MASK|>"
END: Final = "<|im_end|>"


def diffusion_of(raw: Mapping[str, Any], folder: Path) -> DiffusionConfig:
    """How the checkpoint in `folder` denoises; SDAR's mixtures of experts do the same."""
    block = block_of(raw, "block_size", BLOCK)
    mask = raw.get("mask_token_id")
    return DiffusionConfig(
        mask_token_id=need_token_id(folder, MASK, "<MASK>") if mask is None else int(mask),
        end_token_id=need_token_id(folder, END, "<|endoftext|>"),
        max_canvas=block,
        verifiable=False,
        block=block,
    )


def generation_of_blocks(raw: Mapping[str, Any], folder: Path) -> Generation:
    """One canvas a block, in as many steps at most; the sampling is that of generation_config.json."""
    block = block_of(raw, "block_size", BLOCK)
    return sampled(replace(GENERATION, max_steps=block, fill_canvases=(block,), edit_canvas=block), folder)


def _recognises(raw: Mapping[str, Any]) -> bool:
    return named(raw, "sdar") and not named(raw, "sdar_moe", "sdarmoe")


def _config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    return decoder_config(raw, diffusion_of(raw, folder), qk_norm=True)


def _open(folder: Path, options: OpenOptions) -> Serving:
    config = _config(json.loads((folder / "config.json").read_text(encoding="utf-8")), folder)
    return open_decoder(folder, options, config, qwen_places(config))


def _estimate(raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
    return decoder_estimate(raw, options, canvas=block_of(raw, "block_size", BLOCK))


GENERATION: Final = Generation(
    policy="low_confidence_dynamic:0.85",
    max_steps=BLOCK,
    fill_canvases=(BLOCK,),
    edit_canvas=BLOCK,
    source="generate.py of JetAstra/SDAR: remasking, threshold, a step a position; sampling: generation_config.json",
)
PROMPTS: Final = PromptStyle(fim="chat", edit="chat", mask=MASK, ends=(END, "<|endoftext|>"))

SDAR: Final = Family(
    name="sdar",
    recognises=_recognises,
    config=_config,
    open=_open,
    estimate=_estimate,
    prompts=PROMPTS,
    generation=GENERATION,
    read_generation=generation_of_blocks,
    facts=FamilyFacts(
        title="SDAR",
        checkpoints=(
            Published("JetLM/SDAR-1.7B-Chat", 1.7, "MIT", "HumanEval 61.6, MBPP 61.1 (SDAR README)"),
            Published("JetLM/SDAR-4B-Chat", 4.0, "MIT", "HumanEval 72.0, MBPP 65.4 (SDAR README)"),
            Published("JetLM/SDAR-8B-Chat", 8.0, "MIT", "HumanEval 78.7, MBPP 72.0 (SDAR README)"),
        ),
        attention="block-causal, blocks of 4 (or of block_size in config.json)",
        mask="`<|MASK|>` 151669",
        shift=False,
        block=BLOCK,
        sources=("github.com/JetAstra/SDAR: generate.py, modeling_sdar.py", "arXiv 2510.06303"),
        parity="tests/families/test_sdar.py",
        limits="the mask token is never predicted; the published code lets it be and masks the position again",
    ),
)
FAMILIES: Final = (SDAR,)
