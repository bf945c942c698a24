"""All families, and which one a folder is of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

from calomel.engine import CheckpointError
from calomel.families.family import Family

# Each of these modules has `FAMILIES: tuple[Family, ...]`; the first family that recognises a configuration has it.
_MODULES: Final = (
    "own",
    "sdar",
    "sdar_moe",
    "fast_dllm_v2",
    "stable_diffcoder",
    "bd3lm",
    "llada2",
    "dreamon",
    "dream",
    "diffucoder",
    "open_dcoder",
    "llada",
    "diffusion_gemma",
)


class UnknownFamilyError(CheckpointError):
    """No family recognises the checkpoint's config.json; the message says what it says and what there is."""

    code: ClassVar[str] = "unknown_family"


def _families() -> tuple[Family, ...]:
    there = [f"calomel.families.{name}" for name in _MODULES if find_spec(f"calomel.families.{name}") is not None]
    return tuple(family for name in there for family in import_module(name).FAMILIES)


FAMILIES: Final = _families()


def read_config(folder: Path) -> dict[str, Any]:
    """The `config.json` of `folder`; raises CheckpointError when it is absent or no JSON object."""
    path = folder / "config.json"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist; a checkpoint folder needs config.json") from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(raw, dict):
        raise CheckpointError(f"{path} is not valid JSON: it holds no object")
    return raw


def find(folder: Path) -> Family:
    """The family of the checkpoint in `folder`. Raises UnknownFamilyError or CheckpointError."""
    raw = read_config(folder)
    for family in FAMILIES:
        if family.recognises(raw):
            return family
    raise UnknownFamilyError(
        f"{folder / 'config.json'} is of no family that Calomel loads: it says {_said(raw)}. "
        f"There are: {', '.join(family.name for family in FAMILIES)}"
    )


def _said(raw: Mapping[str, Any]) -> str:
    said = [f"{name} {raw[name]!r}" for name in ("model_type", "architectures", "auto_map") if raw.get(name)]
    return ", ".join(said) or "neither model_type nor architectures"
