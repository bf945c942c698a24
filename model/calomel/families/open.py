"""A checkpoint folder as a running engine, whatever its family: the estimate first, then the weights."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from calomel.engine import CheckpointError, Serving
from calomel.families.family import Family, OpenOptions
from calomel.families.table import find


class OutOfMemoryRefusedError(CheckpointError):
    """The model does not fit into the memory there is; nothing was loaded. The message has the figures."""

    code: ClassVar[str] = "out_of_memory"


def open_engine(folder: Path, options: OpenOptions | None = None) -> tuple[Serving, Family]:
    """Open the checkpoint in `folder`.

    Raises:
        UnknownFamilyError: no family recognises it.
        OutOfMemoryRefusedError: it does not fit; the message says what would.
        CheckpointError: it is incomplete or damaged.
    """
    family = find(folder)
    return family.open(folder, options or OpenOptions()), family
