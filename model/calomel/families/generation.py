"""How a family generates, from its own published configuration."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from calomel.engine import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calomel.families.family import Family

GENERATION_FILE: Final = "generation_config.json"


@dataclass(frozen=True, slots=True)
class Generation:
    """Defaults of a request to a checkpoint.

    Attributes:
        policy: `Request.policy`.
        max_steps: denoising steps per canvas.
        fill_canvases: canvas lengths for a hole; with more than one, the length probe chooses.
        edit_canvas: canvas length for a region that is rewritten.
        temperature: 0 takes the best token.
        top_p: as in `SamplingParams`.
        top_k: as in `SamplingParams`.
        source: where these are published.
    """

    policy: str
    max_steps: int
    fill_canvases: tuple[int, ...]
    edit_canvas: int
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    source: str = ""


def read_generation_config(folder: Path) -> dict[str, Any]:
    """The `generation_config.json` of `folder`; empty where there is none. Raises CheckpointError for a damaged one."""
    path = folder / GENERATION_FILE
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{path} is not valid JSON: it holds no object")
    return found


def generation_of(family: Family, raw: Mapping[str, Any], folder: Path) -> Generation:
    """How the checkpoint in `folder`, whose `config.json` is `raw`, generates.

    Where its family does not read that itself: as the family does, with the folder's own sampling if it samples.
    """
    if family.read_generation is not None:
        return family.read_generation(raw, folder)
    return sampled(family.generation, folder)


def sampled(generation: Generation, folder: Path) -> Generation:
    """`generation` with the sampling of the generation_config.json in `folder`, if that samples."""
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
        # 0 is "all of them" in that file.
        found["top_k"] = int(top_k) or -1
    return found


def _number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
