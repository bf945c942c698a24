"""SDAR's mixtures of experts: Qwen3-MoE made to denoise as SDAR does (arXiv 2510.06303)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from calomel.engine import CheckpointError, ModelConfig, Serving
from calomel.engine.mixture import MoeConfig
from calomel.families.configuration import block_of, decoder_config, named
from calomel.families.decoder import open_decoder, qwen_places
from calomel.families.estimate import Estimate, EstimateOptions
from calomel.families.facts import FamilyFacts, Published
from calomel.families.family import Family, OpenOptions
from calomel.families.llada2 import mixture_estimate
from calomel.families.sdar import BLOCK, GENERATION, MASK, PROMPTS, diffusion_of, generation_of_blocks


def _recognises(raw: Mapping[str, Any]) -> bool:
    return named(raw, "sdar_moe", "sdarmoe")


def _config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    return replace(decoder_config(raw, diffusion_of(raw, folder), qk_norm=True), moe=_mixture(raw))


def _mixture(raw: Mapping[str, Any]) -> MoeConfig:
    try:
        layers, every = int(raw["num_hidden_layers"]), int(raw.get("decoder_sparse_step") or 1)
        only = set(raw.get("mlp_only_layers") or ())
        return MoeConfig(
            experts=int(raw["num_experts"]),
            chosen=int(raw["num_experts_per_tok"]),
            intermediate_size=int(raw["moe_intermediate_size"]),
            normalised=bool(raw.get("norm_topk_prob", False)),
            dense=tuple(layer for layer in range(layers) if layer in only or (layer + 1) % every),
        )
    except KeyError as error:
        raise CheckpointError(f"config.json has no field {error}; this family is a mixture of experts") from error
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"config.json has a field of the wrong type: {error}") from error


def _open(folder: Path, options: OpenOptions) -> Serving:
    config = _config(json.loads((folder / "config.json").read_text(encoding="utf-8")), folder)
    return open_decoder(folder, options, config, qwen_places(config))


def _estimate(raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
    return mixture_estimate(raw, options, _mixture(raw), canvas=block_of(raw, "block_size", BLOCK))


SDAR_MOE: Final = Family(
    name="sdar-moe",
    recognises=_recognises,
    config=_config,
    open=_open,
    estimate=_estimate,
    prompts=PROMPTS,
    generation=GENERATION,
    read_generation=generation_of_blocks,
    facts=FamilyFacts(
        title="SDAR, mixtures of experts",
        checkpoints=(Published("JetLM/SDAR-30B-A3B-Chat", 30.5, "MIT", "HumanEval 87.2, MBPP 71.6 (SDAR README)"),),
        attention="block-causal, blocks of 4 (or of block_size in config.json); 128 experts, 8 see a token",
        mask=f"`{MASK}` 151669",
        shift=False,
        block=BLOCK,
        sources=("github.com/JetAstra/SDAR: modeling_sdar_moe.py, generate.py", "arXiv 2510.06303"),
        parity="tests/families/test_sdar_moe.py",
        limits="the mask token is never predicted; the published code lets it be and masks the position again",
    ),
)
FAMILIES: Final = (SDAR_MOE,)
