"""What the families share that read in both directions over the whole sequence: their window, and how it is opened."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from calomel.engine import DiffusionConfig, ModelConfig
from calomel.engine.window import WindowEngine, WindowOptions
from calomel.families.configuration import decoder_config
from calomel.families.decoder import load_decoder
from calomel.families.estimate import Estimate, EstimateOptions, decoder_estimate
from calomel.families.family import OpenOptions
from calomel.families.generation import Generation, read_generation_config, sampled
from calomel.families.placing import Place
from calomel.families.precision import dtype_of
from calomel.families.token_ids import need_token_id, token_id

# Of the Qwen2.5 tokenizer, which all but LLaDA took over.
END: Final = "<|endoftext|>"
TURN_END: Final = "<|im_end|>"
_ALGORITHMS: Final = ("origin", "maskgit_plus", "topk_margin", "entropy", "p2")


def qwen2_window(raw: Mapping[str, Any], folder: Path, *, mask: str, window: int, canvas: int) -> ModelConfig:
    """A network shaped as Qwen2, read in both directions, with shifted logits, over at most `window` positions.

    The configurations name the positions of the model that it was made of: far more than a step could forward.
    """
    said = raw.get("mask_token_id")
    positions = raw.get("max_position_embeddings")
    diffusion = DiffusionConfig(
        mask_token_id=said if isinstance(said, int) else need_token_id(folder, mask),
        end_token_id=need_token_id(folder, END),
        logit_shift=True,
        max_canvas=canvas,
        verifiable=False,
        reads_suffix=True,
    )
    bounded = {**raw, "max_position_embeddings": min(window, positions) if isinstance(positions, int) else window}
    return decoder_config(bounded, diffusion, qkv_bias=True)


def raw_of(folder: Path) -> dict[str, Any]:
    """The `config.json` of `folder`. Raises CheckpointError."""
    from calomel.families.table import read_config

    return read_config(folder)


def more_ends(folder: Path, *names: str) -> tuple[int, ...]:
    """The ids of those of `names` that the tokenizer has: they end an answer as well."""
    return tuple(found for found in (token_id(folder, name) for name in names) if found is not None)


def open_window(
    folder: Path, options: OpenOptions, config: ModelConfig, places: Iterable[Place], window: WindowOptions
) -> WindowEngine:
    """The checkpoint in `folder` as a running engine. Raises CheckpointError when its tensors do not fit."""
    dtype = dtype_of(options.dtype, options.device)
    model = load_decoder(folder, config, places, dtype=dtype, device=options.device, quantize=options.quantize)
    return WindowEngine(model, window, device=options.device, threads=options.threads, max_batch=options.max_batch)


def window_estimate(
    raw: Mapping[str, Any], options: EstimateOptions, *, window: int, canvas: int, dual_cache: bool
) -> Estimate:
    """Its memory: a step forwards the windows of all requests; a dual cache keeps the keys and values of each."""
    asked = replace(options, context=min(options.context, window))
    found = decoder_estimate(raw, asked, cached=False, canvas=canvas)
    if not dual_cache:
        return found
    kept = replace(asked, cache_tokens=0, spare_tokens=asked.max_batch * asked.context)
    return replace(found, cache=decoder_estimate(raw, kept, cached=True, canvas=canvas).cache)


def published_generation(generation: Generation, folder: Path) -> Generation:
    """`generation` with the algorithm, the steps and the sampling of the generation_config.json in `folder`."""
    said, found = read_generation_config(folder), sampled(generation, folder)
    alg, alg_temp, steps = said.get("alg"), said.get("alg_temp"), said.get("steps")
    if alg in _ALGORITHMS:
        found = replace(found, policy=alg)
        if alg in _ALGORITHMS[1:4] and isinstance(alg_temp, int | float) and 0 < alg_temp < math.inf:
            found = replace(found, policy=f"{alg}:{alg_temp}")
    if isinstance(steps, int) and steps > 0:
        found = replace(found, max_steps=steps)
    return found
