"""Nemotron-Labs-Diffusion: a Ministral that writes from left to right, and denoises blocks behind a causal context.

As it is published to generate (`generate_with_prefix_cache_block_diff`), the causal mode decides the first position of
a block of 32, the others are denoised, and the whole block is encoded causally before the next one. The same weights
judge given texts, as our own do.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from calomel.engine import CheckpointError, DiffusionConfig, Engine, ModelConfig
from calomel.engine.checkpoint import tensor_table
from calomel.families.block_causal import in_blocks
from calomel.families.configuration import block_of, decoder_config, read_config, rope_of
from calomel.families.family import Family, OpenOptions
from calomel.families.loading import open_decoder, renamed
from calomel.families.memory import decoder_estimate
from calomel.prompts.renderer import PromptStyle

_BLOCK: Final = 32
NAMES: Final = {"model.": "encoder.", "lm_head": "diffusion_head"}
_GENERATION: Final = in_blocks(
    "threshold:0.9",
    _BLOCK,
    "generate of modeling_nemotron_labs_diffusion.py: blocks of 32, threshold 0.9, a causal context, temperature 0",
)


def _config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    if raw.get("dlm_type") == "dream":
        raise CheckpointError("config.json says dlm_type 'dream'; only rows that predict their own position are there")
    ids = {name: raw.get(name) for name in ("mask_token_id", "eos_token_id")}
    missing = [name for name, said in ids.items() if type(said) is not int]
    if missing:
        raise CheckpointError(f"config.json in {folder} has no {' and no '.join(missing)}")
    diffusion = DiffusionConfig(
        mask_token_id=raw["mask_token_id"],
        end_token_id=raw["eos_token_id"],
        max_canvas=block_of(raw, "block_size", _BLOCK),
        opens=True,
    )
    positions, rope = int(raw["max_position_embeddings"]), rope_of(raw)
    if rope.get("llama_4_scaling_beta"):
        # Queries are scaled from here on.
        positions = min(positions, int(rope["original_max_position_embeddings"]))
    return decoder_config({**raw, "max_position_embeddings": positions}, diffusion)


def _open(folder: Path, options: OpenOptions) -> Engine:
    config = _config(read_config(folder), folder)
    return open_decoder(folder, options, config, renamed(tensor_table(config), NAMES))


NEMOTRON: Final = Family(
    name="nemotron-labs-diffusion",
    recognises=lambda raw: raw.get("model_type") == "nemotron_labs_diffusion",
    config=_config,
    open=_open,
    estimate=lambda raw, options: decoder_estimate(raw, options, canvas=block_of(raw, "block_size", _BLOCK)),
    # The names of its mask and end tokens are its tokenizer's; config.json has their ids.
    prompts=PromptStyle(fim="chat", edit="chat", mask=None, ends=("</s>",)),
    generation=_GENERATION,
    read_generation=lambda _raw, _folder: _GENERATION,
)
