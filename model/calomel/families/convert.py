"""Rewrites a checkpoint folder: one file or shards, in the type that it has or another; names stay as they are.

Tensors are read and written one at a time, so that a checkpoint larger than the memory can be converted. Nothing is
lost unless another type is asked for.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import torch
from torch import Tensor

from calomel.engine import CheckpointError
from calomel.families.loading import TYPES
from calomel.families.shards import INDEX_FILE, Shards

# What the file format calls them.
_NAMES: Final = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}
_SIZES: Final = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "BF16": 2, "F16": 2, "I16": 2, "U16": 2}
_FLOATS: Final = frozenset({"F64", "F32", "BF16", "F16"})
# Of what lies beside the weights: text alone, and never code.
_SMALL: Final = ("*.json", "*.txt", "*.jinja", "*.model", "LICENSE*", "NOTICE*", "*.md")
_ALIGNMENT: Final = 8


@dataclass(frozen=True, slots=True)
class Converted:
    """What was written.

    Attributes:
        files: of weights.
        bytes: of them together.
        rounded: how many tensors have another type than before.
    """

    files: tuple[Path, ...]
    bytes: int
    rounded: int


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int


def convert(source: Path, target: Path, *, dtype: str | None = None, shard_bytes: int | None = None) -> Converted:
    """Write the checkpoint in `source` anew into the folder `target`, which must not be there.

    Args:
        source: a checkpoint folder.
        target: the new one; it appears when it is whole.
        dtype: of floating-point tensors; None leaves each as it is.
        shard_bytes: of a file at most, with an index over them; None for one file.

    Raises:
        CheckpointError: `source` is incomplete or damaged, `target` is there, or the type is not known.
    """
    if dtype is not None and dtype not in _NAMES:
        raise CheckpointError(f"dtype is {dtype!r}; there are {', '.join(_NAMES)}")
    if target.exists():
        raise CheckpointError(f"{target} is there already; choose a folder that is not")
    shards = Shards(source)
    entries = [_entry(name, shards, dtype) for name in shards]
    groups = [entries] if shard_bytes is None else list(_grouped(entries, shard_bytes))
    draft = target.with_name(f".{target.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        names = [_file_name(number, len(groups)) for number in range(len(groups))]
        for name, group in zip(names, groups, strict=True):
            _write(draft / name, group, shards)
        if shard_bytes is not None:
            _write_index(draft, names, groups)
        for file in {file for pattern in _SMALL for file in source.glob(pattern)}:
            if file.is_file() and file.name != INDEX_FILE:
                shutil.copyfile(file, draft / file.name)
        draft.rename(target)
    finally:
        shards.close()
        shutil.rmtree(draft, ignore_errors=True)
    rounded = sum(shards.tensors[entry.name].dtype != entry.dtype for entry in entries)
    return Converted(tuple(target / name for name in names), sum(entry.size for entry in entries), rounded)


def _entry(name: str, shards: Shards, dtype: str | None) -> _Entry:
    held = shards.tensors[name]
    kind = _NAMES[dtype] if dtype is not None and held.dtype in _FLOATS else held.dtype
    return _Entry(name, kind, held.shape, held.numbers * _SIZES.get(kind, 1))


def _grouped(entries: Sequence[_Entry], most: int) -> Iterator[list[_Entry]]:
    group: list[_Entry] = []
    for entry in entries:
        if group and sum(each.size for each in group) + entry.size > most:
            yield group
            group = []
        group.append(entry)
    yield group


def _file_name(number: int, count: int) -> str:
    return "model.safetensors" if count == 1 else f"model-{number + 1:05d}-of-{count:05d}.safetensors"


def _write(path: Path, entries: Sequence[_Entry], shards: Shards) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for entry in entries:
        header[entry.name] = {"dtype": entry.dtype, "shape": entry.shape, "data_offsets": [at, at + entry.size]}
        at += entry.size
    told = json.dumps(header, separators=(",", ":")).encode()
    told += b" " * (-len(told) % _ALIGNMENT)
    with path.open("wb") as file:
        file.write(len(told).to_bytes(8, "little"))
        file.write(told)
        for entry in entries:
            _write_tensor(file, entry, shards.read(entry.name))


def _write_tensor(file: BinaryIO, entry: _Entry, tensor: Tensor) -> None:
    wanted = next((TYPES[name] for name, told in _NAMES.items() if told == entry.dtype), tensor.dtype)
    flat = tensor.to(wanted).contiguous().reshape(-1)
    file.write(flat.view(torch.uint8).numpy().data)


def _write_index(folder: Path, names: Sequence[str], groups: Sequence[Sequence[_Entry]]) -> None:
    places = {entry.name: name for name, group in zip(names, groups, strict=True) for entry in group}
    size = sum(entry.size for group in groups for entry in group)
    index = {"metadata": {"total_size": size}, "weight_map": places}
    (folder / INDEX_FILE).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
