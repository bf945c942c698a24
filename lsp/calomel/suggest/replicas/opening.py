"""From a checkpoint folder to an engine in several processes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from calomel.engine.config import Shape
from calomel.families.family import OpenOptions
from calomel.families.loading import dtype_of
from calomel.families.memory import free_bytes, program_bytes
from calomel.families.open import estimate_of
from calomel.families.table import find
from calomel.suggest.launch import version
from calomel.suggest.replicas.engine import ReplicatedEngine
from calomel.suggest.replicas.errors import ReplicasError
from calomel.suggest.replicas.ray_line import RayLine
from calomel.suggest.replicas.replica import Opening
from calomel.weights.identity import weights_id

_MIB: Final = 1024**2
# Resident memory of a process with PyTorch and Ray, and of Ray's own processes, on Linux (`ps`, Ray 2.60).
RAY_BYTES: Final = 900 * _MIB


def open_replicas(folder: Path, options: OpenOptions, shape: Shape, count: int) -> ReplicatedEngine:
    """Start `count` replicas of the checkpoint in `folder`; returns when all of them can answer.

    Args:
        folder: at the same place on every machine of the cluster.
        options: of each replica; without a number of threads they share the processors of this machine.
        shape: of the model.
        count: at least 1.

    Raises:
        ReplicasError: there is no room for so many, Ray is not installed, or they do not start.
    """
    if count < 1:
        raise ReplicasError(f"replicas is {count}; it must be at least 1")
    elsewhere = "RAY_ADDRESS" in os.environ
    if not elsewhere:
        refuse_too_many(folder, options, count)
    threads = options.threads
    if threads is None and not elsewhere:
        threads = max(1, processors() // count)
    opening = Opening(
        model=str(folder.resolve()),
        weights=weights_id(folder),
        version=version(),
        # Ray gives each replica a GPU of its own, which is its first.
        device="cuda" if options.device.startswith("cuda") else options.device,
        dtype=options.dtype,
        threads=threads,
        cache_tokens=options.cached,
        spare_tokens=options.spare,
        quantize=options.quantize,
        exact=options.exact,
        alone=not elsewhere,
    )
    return ReplicatedEngine(RayLine(opening, count), shape, count)


def refuse_too_many(folder: Path, options: OpenOptions, count: int) -> None:
    """Raise ReplicasError when this machine has no room for so many replicas."""
    if options.device.startswith("cuda"):
        from torch import cuda

        if cuda.device_count() < count:
            raise ReplicasError(
                f"{count} replicas need {count} GPUs, and this machine has {cuda.device_count()}; nothing was started"
            )
        return
    free = free_bytes(options.device) if options.memory_limit is None else options.memory_limit
    if free is None:
        return
    each = bytes_of_replica(folder, options)
    if RAY_BYTES + count * each <= free:
        return
    most = max(0, (free - RAY_BYTES) // each)
    advice = f"{most} would fit" if most else "not even one fits: take a smaller model, or none of these processes"
    needed = RAY_BYTES + count * each
    raise ReplicasError(
        f"{count} replicas of {folder.name} need {_words(needed)} of memory ({_words(each)} each, {_words(RAY_BYTES)} "
        f"for Ray), and {_words(free)} is free; nothing was started. {advice}"
    )


def bytes_of_replica(folder: Path, options: OpenOptions) -> int:
    """Memory that one replica takes on a CPU. Raises CheckpointError when the folder does not tell."""
    program = program_bytes(options.device, dtype_of(options.dtype, options.device))
    return program + estimate_of(folder, find(folder), replace(options, memory_limit=None)).total


def processors() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _words(count: int) -> str:
    return f"{count / 1024 / _MIB:.1f} GiB"
