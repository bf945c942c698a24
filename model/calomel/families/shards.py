"""The weights of a checkpoint folder as named tensors, each loaded when it is read."""

from __future__ import annotations

import json
import math
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from calomel.engine import CheckpointError
from calomel.engine.checkpoint import SCALE
from calomel.storage import MOST_TABLE_BYTES, open_regular, read_object, read_whole
from calomel.storage.failures import cause
from calomel.weights.gguf import LINK, PLACES

INDEX_FILE: Final = "model.safetensors.index.json"
# All formats that would be unpickled.
_PICKLES: Final = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
# Open files are mapped into memory: what was read stays there until its file is closed.
_OPEN_FILES: Final = 2


@dataclass(frozen=True, slots=True)
class Held:
    """The entry of one tensor in a file's header.

    Attributes:
        file: that holds it.
        shape: its sizes.
        scaled: eight bits, which a scale for each row makes numbers of.
    """

    file: Path
    shape: tuple[int, ...]
    scaled: bool = False

    @property
    def numbers(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


class Shards:
    """The safetensors files of `folder`, by their index if there is one; or the GGUF file that it stands for.

    Attributes:
        tensors: name to header entry, file by file.

    Raises:
        CheckpointError: there are no safetensors files (pickles are never read), one is missing, cut short or damaged,
            or the index names a tensor that its file does not have.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tensors: dict[str, Held] = {}
        self._open: OrderedDict[Path, Any] = OrderedDict()
        self._packed = read_object(folder / PLACES, CheckpointError)
        if self._packed:
            self.tensors = {name: Held(folder / LINK, tuple(place["shape"])) for name, place in self._packed.items()}
            return
        index = folder / INDEX_FILE
        places = _read_index(index) if os.path.lexists(index) else None
        for file in _single(folder) if places is None else _named(folder, places):
            for name, held in _read_header(file).items():
                if name in self.tensors:
                    raise CheckpointError(f"{name} is in {self.tensors[name].file.name} and in {file.name}")
                self.tensors[name] = held
        for name, file_name in (places or {}).items():
            if name not in self.tensors or self.tensors[name].file.name != file_name:
                raise CheckpointError(f"{INDEX_FILE} lists {name} in {file_name}, which does not contain it")

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def read(self, name: str) -> Tensor:
        """The tensor called `name`, on the CPU, as it is stored; of GGUF and of eight bits, in float32.

        Raises CheckpointError if there is none.
        """
        held = self.tensors.get(name)
        if held is None:
            raise CheckpointError(f"{self.folder} has no tensor {name}")
        if self._packed:
            return _unpacked(held, self._packed[name])
        try:
            tensor: Tensor = self._file(held.file).get_tensor(name)
            if held.scaled:
                tensor = tensor.float() * self._file(held.file).get_tensor(name + SCALE)[:, None]
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"{held.file} is damaged: {error}") from error
        return tensor

    def close(self) -> None:
        """Close the files."""
        self._open.clear()

    def _file(self, path: Path) -> Any:
        if path not in self._open:
            self._open[path] = safe_open(path, framework="pt")
        self._open.move_to_end(path)
        while len(self._open) > _OPEN_FILES:
            self._open.popitem(last=False)
        return self._open[path]


def _unpacked(held: Held, place: Mapping[str, Any]) -> Tensor:
    """A tensor of a GGUF file."""
    import gguf
    import numpy as np

    try:
        kind = gguf.GGMLQuantizationType(place["type"])
        mapped = np.memmap(held.file, np.uint8, "r", place["offset"], (place["bytes"],))
        rows = math.prod(held.shape[:-1])
        numbers = gguf.dequantize(np.array(mapped).reshape(rows, -1), kind).reshape(held.shape)
    except (OSError, ValueError, NotImplementedError) as error:
        raise CheckpointError(f"{held.file.resolve()} is damaged, cut short or moved: {error}") from error
    if place["interleaved"]:
        heads = int(place["interleaved"])
        numbers = numbers.reshape(heads, -1, 2, *held.shape[1:]).swapaxes(1, 2).reshape(held.shape)
    return torch.from_numpy(np.ascontiguousarray(numbers))


def _read_index(index: Path) -> dict[str, str]:
    try:
        places = json.loads(read_whole(index, MOST_TABLE_BYTES))["weight_map"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{index} has no readable weight_map: {cause(error)}") from error
    # A name that leads elsewhere would read files outside of the checkpoint.
    if (
        not isinstance(places, dict)
        or not all(isinstance(file, str) for file in places.values())
        or not all(Path(file).name == file and file.endswith(".safetensors") for file in set(places.values()))
    ):
        raise CheckpointError(
            f"{index} names files that are not .safetensors files of its folder; Calomel does not read pickles"
        )
    return places


def _named(folder: Path, places: Mapping[str, str]) -> list[Path]:
    files = [folder / name for name in dict.fromkeys(places.values())]
    for file in files:
        if not file.is_file():
            raise CheckpointError(f"{file} is missing; {INDEX_FILE} names it")
    return files


def _single(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.safetensors"))
    if files:
        return files
    pickles = sorted(file.name for pattern in _PICKLES for file in folder.glob(pattern))
    if pickles:
        raise CheckpointError(
            f"{folder} has only pickled weights ({pickles[0]}); Calomel does not read pickles, which can run code: "
            "take a revision of the checkpoint with .safetensors files"
        )
    raise CheckpointError(f"{folder} has no .safetensors file; pickled weights are not loaded")


def _read_header(file: Path) -> dict[str, Held]:
    """The tensors of `file`; checks that the file is complete."""
    try:
        # The library would wait for a pipe.
        with open_regular(file), safe_open(file, framework="pt") as header:
            entries = {name: header.get_slice(name) for name in header.keys()}  # noqa: SIM118
            scaled = {name for name, entry in entries.items() if entry.get_dtype() == "I8" and name + SCALE in entries}
            return {
                name: Held(file, tuple(entry.get_shape()), name in scaled)
                for name, entry in entries.items()
                if not name.endswith(SCALE) or name.removesuffix(SCALE) not in scaled
            }
    except OSError as error:
        raise CheckpointError(f"cannot read {file}: {error}") from error
    except SafetensorError as error:
        raise CheckpointError(f"{file} is damaged or cut short: {error}; fetch it again") from error
