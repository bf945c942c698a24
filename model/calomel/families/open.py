"""A checkpoint folder as a running engine, whatever its family: the estimate first, then the weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

import torch

from calomel.engine import CheckpointError, Engine, EngineError, Request
from calomel.families.configuration import read_config
from calomel.families.family import MISFITS, Family, OpenOptions
from calomel.families.generation import generation_of
from calomel.families.loading import dtype_of
from calomel.families.memory import Estimate, EstimateOptions, free_bytes, program_bytes, resident_bytes
from calomel.families.shards import Shards
from calomel.families.table import find

_GIB: Final = 1024**3
# No less is offered: a context of this much is what the smallest file needs.
_SMALLEST_CACHE: Final = 4_096


class OutOfMemoryRefusedError(CheckpointError):
    """The model does not fit into the memory there is; nothing was loaded. The message has the figures."""

    code: ClassVar[str] = "out_of_memory"


def open_engine(folder: Path, options: OpenOptions | None = None) -> tuple[Engine, Family]:
    """Open the checkpoint in `folder`, with as many cached contexts as fit where `options` names no number.

    Raises:
        UnknownFamilyError: no family recognises it.
        OutOfMemoryRefusedError: it does not fit; the message says what would.
        CheckpointError: it is incomplete or damaged, or one forward of it gives something other than numbers.
    """
    family = find(folder)
    try:
        engine = family.open(folder, fitted(folder, family, options or OpenOptions()))
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


def estimate_of(folder: Path, family: Family, options: OpenOptions) -> Estimate:
    """The memory that opening the checkpoint takes. Raises CheckpointError when its files don't say.

    A folder without weights is counted from its `config.json`.
    """
    bare = not any(folder.glob("*.safetensors*"))
    shards = None if bare else Shards(folder)
    asked = EstimateOptions(
        shards=shards,
        dtype=str(dtype_of(options.dtype, options.device)).removeprefix("torch."),
        cache_tokens=options.cached,
        spare_tokens=options.spare,
        quantize=options.quantize,
        max_batch=options.max_batch,
    )
    return family.estimate(read_config(folder), asked)


def fitted(folder: Path, family: Family, options: OpenOptions) -> OpenOptions:
    """`options` with a number of cached tokens that fits: the usual one where none was named, or less.

    Raises:
        OutOfMemoryRefusedError: the checkpoint does not fit.
    """
    named = replace(options, cache_tokens=options.cached, spare_tokens=options.spare)
    limit = _room(options) if options.memory_limit is None else options.memory_limit
    if limit is None:
        return named
    choices = [named]
    if options.cache_tokens is None:
        choices += [smaller for _, smaller in _smaller(named) if smaller.quantize == options.quantize]
    for each in choices:
        if estimate_of(folder, family, each).total <= limit:
            return each
    found = estimate_of(folder, family, named)
    there = "is free" if options.memory_limit is None else "is allowed"
    raise OutOfMemoryRefusedError(
        f"{folder.name} needs {_gib(found.total)} of memory on {options.device} (weights {_gib(found.weights)}, cached "
        f"contexts {_gib(found.cache)}, one step {_gib(found.work)}), and {_gib(limit)} {there}; nothing was loaded. "
        f"{_what_would_fit(folder, family, options, limit)}"
    )


def _room(options: OpenOptions) -> int | None:
    """What is free for a model: the program itself will have grown when it serves."""
    free, program = free_bytes(options.device), program_bytes(options.device, dtype_of(options.dtype, options.device))
    return None if free is None else max(0, free - max(0, program - resident_bytes()))


def _what_would_fit(folder: Path, family: Family, options: OpenOptions, limit: int) -> str:
    for words, smaller in _smaller(options):
        needed = estimate_of(folder, family, smaller).total
        if needed <= limit:
            return f"With {words} it takes {_gib(needed)}."
    return "No smaller cache and no eight-bit weights make it fit: take a smaller checkpoint, or another device."


def _smaller(options: OpenOptions) -> Iterator[tuple[str, OpenOptions]]:
    """Less and less, each with words for it."""
    kinds = [("", options)]
    if options.quantize is None:
        kinds.append(("weights in int8", replace(options, quantize="int8")))
    for words, kind in kinds:
        if words:
            yield words, kind
        tokens = options.cached // 2
        while tokens >= _SMALLEST_CACHE:
            cache = f"a cache of {tokens} tokens"
            yield f"{words} and {cache}" if words else cache, replace(kind, cache_tokens=tokens, spare_tokens=None)
            tokens //= 2


def _gib(count: int) -> str:
    return f"{count / _GIB:.1f} GiB" if count >= _GIB // 10 else f"{count / 1024**2:.1f} MiB"
