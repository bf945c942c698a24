"""The weights of a checkpoint folder as named tensors, none of them loaded before it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Held:
    """What a file's header says of one tensor.

    Attributes:
        file: that holds it.
        dtype: as the format names it ("BF16").
        shape: its sizes.
    """

    file: Path
    dtype: str
    shape: tuple[int, ...]


class Shards:
    """The safetensors files of `folder`, by their index where there is one.

    Attributes:
        tensors: name to what its header says, in the order of files and offsets.

    Raises:
        CheckpointError: there are no safetensors files (pickles are never read), one is missing, cut short or damaged,
            or the index names a tensor that no file has.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tensors: dict[str, Held] = {}

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def read(self, name: str) -> Tensor:
        """The tensor called `name`, on the CPU, as it is stored. Raises CheckpointError when there is none."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the files."""
