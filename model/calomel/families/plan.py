"""What of a checkpoint fits into a memory: one decision for the server, `calomel models`, refusals and remedies.

And how a checkpoint is opened accordingly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, ClassVar, Final

import torch

from calomel.engine import CheckpointError, Engine, EngineError, Request
from calomel.engine.errors import NotFiniteError
from calomel.families.configuration import read_config
from calomel.families.family import MISFITS, QUANTIZED, USUAL_BATCH, Family, OpenOptions
from calomel.families.generation import generation_of
from calomel.families.loading import dtype_of
from calomel.families.memory import Estimate, EstimateOptions, free_bytes, program_bytes
from calomel.families.shards import Shards
from calomel.families.table import find
from calomel.storage import resident_bytes
from calomel.storage.failures import cause
from calomel.weights import gguf_in

_GIB: Final = 1024**3
# The batch shrinks before the cache does: a keystroke whose context is not cached waits for all of it.
_BATCHES: Final = (USUAL_BATCH, 4, 2, 1)
# Contexts of one editor: two of 8K; one of 8K; the least that still serves the largest files.
_CACHES: Final = (16_384, 8_192, 4_096)
# Share of a GPU's free memory: what PyTorch's allocator keeps between tensors of changing sizes, and libraries.
_GAPS: Final = 0.05
# Cached tokens are a multiple of this.
_STEP: Final = 1_024


class OutOfMemoryRefusedError(CheckpointError):
    """The model does not fit into the available memory; nothing was loaded. The message has the figures."""

    code: ClassVar[str] = "out_of_memory"


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """How a checkpoint is opened so that it fits.

    Attributes:
        options: with every number filled in: cached and buffered tokens, requests at a time.
        estimate: the bytes that this takes.
    """

    options: OpenOptions
    estimate: Estimate


def plan(
    family: Family, raw: Mapping[str, Any], options: OpenOptions, room: int, shards: Shards | None = None
) -> MemoryPlan | None:
    """The best that fits into `room` bytes; None where nothing does.

    What `options` sets is kept. Otherwise the cache takes what is left, up to the device's default, and at least 16,384
    tokens; for that, first fewer requests are served at a time; only then the cache gets smaller. Weights are quantised
    only if `options` says so.

    Args:
        family: of the checkpoint.
        raw: its `config.json`.
        options: as requested.
        room: for weights, cache and activations together.
        shards: the headers of its weights; None to count from `raw`.

    Raises:
        CheckpointError: the files do not say what it takes.
    """
    batches = _BATCHES if options.max_batch is None else (options.max_batch,)
    most = options.cached
    caches = (most,) if options.cache_tokens is not None else [each for each in _CACHES if each <= most]
    for least, batch in product(caches, batches):
        found = _taking(family, raw, options, shards, least, batch)
        left = room - found.estimate.total
        if left < 0:
            continue
        if least == most:
            return found
        # The cache is the only part that grows with its tokens.
        more = _taking(family, raw, options, shards, most, batch).estimate.total - found.estimate.total
        tokens = most if more <= left else least + (most - least) * left // more
        return _taking(family, raw, options, shards, tokens // _STEP * _STEP, batch)
    return None


def _taking(
    family: Family, raw: Mapping[str, Any], options: OpenOptions, shards: Shards | None, cache: int, batch: int
) -> MemoryPlan:
    """The plan with this many cached tokens and requests at a time."""
    chosen = replace(options, cache_tokens=cache, max_batch=batch)
    asked = EstimateOptions(
        shards=shards,
        dtype=str(dtype_of(options.dtype, options.device)).removeprefix("torch."),
        cache_tokens=cache,
        quantize=options.quantize,
        max_batch=batch,
    )
    return MemoryPlan(chosen, family.estimate(raw, asked))


def plan_of(folder: Path, options: OpenOptions) -> MemoryPlan:
    """How the checkpoint in `folder` is opened within `options.memory_limit`, or within what is free on the device.

    A folder without weights is counted from its `config.json`.

    Raises:
        UnknownFamilyError: no family recognises it.
        OutOfMemoryRefusedError: it does not fit; the message says what would.
        CheckpointError: its files do not say what it takes.
    """
    family, raw = find(folder), read_config(folder)
    shards = Shards(folder) if any(folder.glob("*.safetensors*")) or gguf_in(folder) is not None else None
    room = _room(options) if options.memory_limit is None else options.memory_limit
    found = plan(family, raw, options, room, shards)
    if found is not None:
        return found
    smallest = options.cached if options.cache_tokens is not None else min(_CACHES[-1], options.cached)
    needed = _taking(family, raw, options, shards, smallest, options.max_batch or _BATCHES[-1]).estimate
    there = "is free" if options.memory_limit is None else "is allowed"
    sentences = (
        f"With {words} it takes {_gib(fitting.estimate.total)}."
        for words, fitting in remedies(family, raw, options, room, shards)
    )
    remedy = next(sentences, "No setting makes it fit: choose a smaller checkpoint, or another device.")
    raise OutOfMemoryRefusedError(
        f"{folder.name} needs {_gib(needed.total)} of memory on {options.device} (weights {_gib(needed.weights)}, "
        f"cached contexts {_gib(needed.cache)}, one step {_gib(needed.work)}), and {_gib(room)} {there}; nothing was "
        f"loaded. {remedy}"
    )


def remedies(
    family: Family, raw: Mapping[str, Any], options: OpenOptions, room: int, shards: Shards | None = None
) -> Iterator[tuple[str, MemoryPlan]]:
    """What would fit if `options` don't fit: options of `calomel serve`, and the plan with them; the mildest first."""
    named = [name for name in ("max_batch", "cache_tokens") if getattr(options, name) is not None]
    kinds = QUANTIZED if options.quantize is None else ()
    for quantize in (options.quantize, *kinds):
        for count in range(len(named) + 1):
            for given_up in combinations(named, count):
                freed: dict[str, Any] = dict.fromkeys(given_up)
                found = plan(family, raw, replace(options, quantize=quantize, **freed), room, shards)
                if found is None:
                    continue
                changed = [f"--quantize {quantize}"] if quantize != options.quantize else []
                changed += [f"--{name.replace('_', '-')} {getattr(found.options, name)}" for name in given_up]
                yield " ".join(changed), found


def room_on(device: str, free: int, dtype: str | None = None) -> int:
    """What of `free` bytes a model may take: the program needs some of a CPU's, allocator gaps some of a GPU's."""
    if device.startswith("cuda"):
        return int(free * (1 - _GAPS))
    return max(0, free - max(0, program_bytes(device, dtype_of(dtype, device)) - resident_bytes()))


def _room(options: OpenOptions) -> int:
    return room_on(options.device, free_bytes(options.device), options.dtype)


def _gib(count: int) -> str:
    return f"{count / _GIB:.1f} GiB" if count >= _GIB // 10 else f"{count / 1024**2:.1f} MiB"


def open_engine(folder: Path, options: OpenOptions | None = None) -> tuple[Engine, Family]:
    """Open the checkpoint in `folder`, with as many cached contexts as fit unless `options` gives a number.

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
            f"{folder} cannot be opened; config.json has an impossible value: {cause(error)}"
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
    length = min(generation.fill_canvas, diffusion.max_canvas)
    shortest = Request((diffusion.end_token_id,), length, length, policy=generation.policy, max_steps=1, reuse=0)
    try:
        engine.submit(shortest).result()
    except NotFiniteError as error:
        raise CheckpointError(
            f"a first forward of {folder} gives NaN: its weights are damaged, or config.json belongs to "
            "another checkpoint; fetch it again"
        ) from error
    except EngineError as error:
        raise CheckpointError(f"cannot use {folder}: a first forward failed: {error}") from error
