"""What a checkpoint folder says of its model, without loading it."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args

from calomel.prompts.parts import RegionBounds
from calomel.suggest.completer import Kind, ModelInfo
from calomel.weights import nano_path
from calomel.weights.identity import weights_id

SHIPPED_NAME: Final = "calomel-nano"
_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_BOUNDS: Final = tuple(entry.name for entry in fields(RegionBounds))


def describe(folder: Path | None) -> ModelInfo:
    """The model in `folder` (None: the shipped one), from its files alone.

    What one of our own was trained for stands in `config.json` under `kinds`; where that is missing, in filling alone.
    How much it may rewrite at once stands there under `edit_region`. Others are described by their family.

    Raises:
        OSError, ValueError: the folder has no readable `config.json`, or one of no known family.
    """
    from calomel.suggest.fill import DEFAULT_CONTEXT  # brings the tokenizers library

    place = folder or nano_path()
    config = json.loads((place / "config.json").read_text(encoding="utf-8"))
    own = isinstance(config, dict) and ("diffusion" in config or not config.keys() & {"model_type", "architectures"})
    positions = config.get("max_position_embeddings") if own else _positions(place)
    if not isinstance(positions, int):
        message = f"{place / 'config.json'} has no max_position_embeddings"
        raise ValueError(message)  # noqa: TRY004 (what is wrong is the file, not a caller's type)
    return ModelInfo(
        id=SHIPPED_NAME if folder is None else folder.resolve().name,
        weights=weights_id(place),
        kinds=_kinds(config) if own else _KINDS,
        max_context=positions,
        default_context=min(DEFAULT_CONTEXT, positions),
        # Other makers' tokenizers are read with what their family says of them, so not by whoever counts tokens.
        tokenizer=str((place / "tokenizer.json").resolve()) if own else None,
        version=version(),
        region=_region(config),
    )


def _positions(folder: Path) -> int:
    """Of another maker's checkpoint. Raises ValueError where its family is not known or its files are wrong."""
    from calomel.engine import CheckpointError  # these import torch
    from calomel.families.configuration import read_config
    from calomel.families.table import find

    try:
        return find(folder).config(read_config(folder), folder).max_position_embeddings
    except CheckpointError as error:
        raise ValueError(str(error)) from error


@cache
def version() -> str:
    """Of this Calomel."""
    from importlib.metadata import PackageNotFoundError  # ten milliseconds, not needed before something runs
    from importlib.metadata import version as installed

    try:
        return installed("calomel")
    except PackageNotFoundError:
        return "unknown"


def _kinds(config: dict[str, Any]) -> tuple[Kind, ...]:
    names = config.get("kinds")
    return tuple(kind for kind in _KINDS if kind in names) if isinstance(names, list) else ("fill",)


def _region(config: dict[str, Any]) -> RegionBounds:
    bounds = config.get("edit_region")
    if not isinstance(bounds, dict):
        return RegionBounds()
    known = {name: bounds[name] for name in _BOUNDS if isinstance(bounds.get(name), int)}
    return RegionBounds(**known)
