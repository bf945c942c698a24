"""All families, and which one a folder is of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from calomel.engine import CheckpointError
from calomel.families import (
    diffucoder,
    diffusion_gemma,
    dream,
    dreamon,
    fast_dllm_v2,
    llada,
    llada2,
    open_dcoder,
    own,
    sdar,
    sdar_moe,
    stable_diffcoder,
)
from calomel.families.family import Family

# The first family that recognises a configuration has it.
FAMILIES: Final[tuple[Family, ...]] = (
    *own.FAMILIES,
    *sdar.FAMILIES,
    *sdar_moe.FAMILIES,
    *fast_dllm_v2.FAMILIES,
    *stable_diffcoder.FAMILIES,
    *llada2.FAMILIES,
    *dreamon.FAMILIES,
    *dream.FAMILIES,
    *diffucoder.FAMILIES,
    *open_dcoder.FAMILIES,
    *llada.FAMILIES,
    *diffusion_gemma.FAMILIES,
)


class UnknownFamilyError(CheckpointError):
    """No family recognises the checkpoint's config.json; the message says what it says and what there is."""

    code: ClassVar[str] = "unknown_family"


def read_config(folder: Path) -> dict[str, Any]:
    """The `config.json` of `folder`; raises CheckpointError when it is absent or no JSON object."""
    path = folder / "config.json"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist; a checkpoint folder needs config.json") from error
    except (OSError, ValueError, RecursionError) as error:
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
