"""How a family generates, from its own published configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeGuard

from calomel.families.configuration import read_object
from calomel.families.family import Family, Generation

_ALGORITHMS: Final = ("origin", "maskgit_plus", "topk_margin", "entropy", "p2")


def read_generation_config(folder: Path) -> dict[str, Any]:
    """The `generation_config.json` of `folder`; empty if there is none. Raises CheckpointError for a damaged one."""
    return read_object(folder / "generation_config.json")


def generation_of(family: Family, raw: Mapping[str, Any], folder: Path) -> Generation:
    """How the checkpoint in `folder`, whose `config.json` is `raw`, generates.

    If its family does not read that itself: as the family does, with the folder's own sampling if it samples.
    """
    if family.read_generation is not None:
        return family.read_generation(raw, folder)
    return sampled(family.generation, folder)


def sampled(generation: Generation, folder: Path) -> Generation:
    """`generation` with the sampling settings of the generation_config.json in `folder`, if that samples."""
    said = read_generation_config(folder)
    return generation if said.get("do_sample") is False else replace(generation, **_sampling(said))


def _sampling(said: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    temperature, top_p, top_k = (said.get(name) for name in ("temperature", "top_p", "top_k"))
    if _number(temperature) and temperature >= 0:
        found["temperature"] = float(temperature)
    if _number(top_p) and 0 < top_p <= 1:
        found["top_p"] = float(top_p)
    if _number(top_k) and top_k >= 0:
        # In that file 0 means all of them.
        found["top_k"] = int(top_k) or -1
    return found


def _number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
