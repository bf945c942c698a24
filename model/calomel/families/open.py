"""A checkpoint folder as a running engine, whatever its family: the memory plan first, then the weights."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from calomel.engine import CheckpointError, Engine, EngineError, Request
from calomel.families.configuration import read_config
from calomel.families.family import MISFITS, Family, OpenOptions
from calomel.families.generation import generation_of
from calomel.families.plan import plan_of
from calomel.families.table import find


def open_engine(folder: Path, options: OpenOptions | None = None) -> tuple[Engine, Family]:
    """Open the checkpoint in `folder`, with as many cached contexts as fit where `options` names no number.

    Raises:
        UnknownFamilyError: no family recognises it.
        OutOfMemoryRefusedError: it does not fit; the message says what would.
        CheckpointError: it is incomplete or damaged, or one forward of it gives something other than numbers.
    """
    family = find(folder)
    try:
        engine = family.open(folder, plan_of(folder, options or OpenOptions()).options)
    except torch.OutOfMemoryError:
        raise
    except (*MISFITS, RuntimeError) as error:
        raise CheckpointError(
            f"{folder} cannot be opened, something in its config.json cannot be: {error!r}"
        ) from error
    try:
        _check_forward(engine, family, folder)
    except BaseException:
        engine.close()
        raise
    return engine, family


def _check_forward(engine: Engine, family: Family, folder: Path) -> None:
    """Raise CheckpointError unless one step of the shortest answer gives numbers."""
    diffusion, generation = engine.config.diffusion, generation_of(family, read_config(folder), folder)
    length = min(*generation.fill_canvases, diffusion.max_canvas)
    shortest = Request((diffusion.end_token_id,), length, (length,), policy=generation.policy, max_steps=1, reuse=0)
    try:
        found = engine.submit(shortest).result()
    except EngineError as error:
        raise CheckpointError(f"{folder} cannot be used, a first forward of it failed: {error}") from error
    ended = () if found.end_log_prob is None else (found.end_log_prob,)
    if not all(map(math.isfinite, (*found.log_probs, *found.entropies, *ended))):
        raise CheckpointError(
            f"a first forward of {folder} gives no numbers: its weights are damaged, or config.json is of another "
            "checkpoint; fetch it anew"
        )
