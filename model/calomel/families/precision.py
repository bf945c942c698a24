"""The type that weights and cache have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch

from calomel.engine import CheckpointError
from calomel.engine.engine import native_dtype

TYPES: Final[Mapping[str, torch.dtype]] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def dtype_of(name: str | None, device: str) -> torch.dtype:
    """The type called `name`; None for what `device` computes fastest in. Raises CheckpointError for another name."""
    if name is None:
        return native_dtype(device)
    if name not in TYPES:
        raise CheckpointError(f"dtype is {name!r}; there are {', '.join(TYPES)}")
    return TYPES[name]
