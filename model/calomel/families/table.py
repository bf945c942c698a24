"""All families, and which one a folder is of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from calomel.engine import CheckpointError
from calomel.families.adapted import A2D_BD3LM, A2D_MDLM
from calomel.families.autoregressive import LLAMA, QWEN2, QWEN3, SWEEP, SWEEP_V2, ZETA2, ZETA21
from calomel.families.bidirectional import DIFFUCODER, DREAM, DREAMON, OPEN_DCODER
from calomel.families.block_causal import LLADA2, OWN, SDAR, SDAR_MOE, STABLE_DIFFCODER
from calomel.families.configuration import read_config
from calomel.families.family import Family

# The first family that recognises a configuration gets it.
FAMILIES: Final[tuple[Family, ...]] = (
    OWN,
    SDAR,
    SDAR_MOE,
    STABLE_DIFFCODER,
    LLADA2,
    DREAMON,
    DIFFUCODER,
    DREAM,
    OPEN_DCODER,
    A2D_MDLM,
    A2D_BD3LM,
    ZETA2,
    ZETA21,
    SWEEP,
    SWEEP_V2,
    QWEN2,
    QWEN3,
    LLAMA,
)


class UnknownFamilyError(CheckpointError):
    """No family recognises the checkpoint's config.json; the message says what it contains and which families exist."""

    code: ClassVar[str] = "unknown_family"


def find(folder: Path) -> Family:
    """The family of the checkpoint in `folder`. Raises UnknownFamilyError or CheckpointError."""
    raw = read_config(folder)
    for family in FAMILIES:
        if family.recognises(raw) and (family.confirms is None or family.confirms(raw, folder)):
            return family
    raise UnknownFamilyError(
        f"{folder / 'config.json'} belongs to no family Calomel loads: its config is {_said(raw)}. "
        f"It loads: {', '.join(family.name for family in FAMILIES)}"
    )


def _said(raw: Mapping[str, Any]) -> str:
    said = [f"{name} {json.dumps(raw[name])}" for name in ("model_type", "architectures", "auto_map") if raw.get(name)]
    return ", ".join(said) or "neither model_type nor architectures"
