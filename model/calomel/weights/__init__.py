"""The weights that ship with the package, and what identifies weights."""

from __future__ import annotations

import hashlib
import os
from importlib.resources import files
from pathlib import Path
from typing import Final


def nano_path() -> Path:
    """The checkpoint folder of the embedded default model."""
    return Path(str(files("calomel.weights"))) / "nano"


# Files that decide what a model answers; a missing one counts as empty.
_FILES: Final = ("config.json", "tokenizer.json", "model.safetensors")
# For checkpoints of other makers; a missing one is left out.
_MORE_FILES: Final = (
    "generation_config.json",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "model.safetensors.index.json",
)
_BLOCK: Final = 1 << 16
# Training changes every weight, so evenly spaced samples tell two trainings apart. 64 of them read 4 MiB.
_BLOCKS: Final = 64
# Per shard, if there are many.
_SHARD_BLOCKS: Final = 8
_DIGITS: Final = 16
# How such a file begins, also among the blobs of Ollama.
_GGUF: Final = b"GGUF"


def gguf_in(place: Path) -> Path | None:
    """The GGUF file that is a model's weights: `place`, or the only one in a folder without .safetensors; else None."""
    if any(place.glob("*.safetensors")):
        return None
    found = [file for file in (place, *sorted(place.glob("*.gguf"))) if _is_gguf(file)]
    return found[0] if len(found) == 1 else None


def _is_gguf(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(_GGUF)) == _GGUF
    except OSError:
        return False


def weights_id(folder: Path) -> str:
    """16 hexadecimal digits: equal for copies of a checkpoint folder, different for every training.

    Of a GGUF file, and of the folder that stands for it, they are that file's.

    SHA-256 over each file's size and contents; of a file over 4 MiB, over 64 blocks of 64 KiB (of a shard over 512 KiB,
    over 8), the first and the last ones included.

    Raises OSError if a file exists but cannot be read.
    """
    digest = hashlib.sha256()
    packed = gguf_in(folder)
    if packed is not None:
        _update(digest, packed, _BLOCKS)
        return digest.hexdigest()[:_DIGITS]
    for name in _FILES:
        path = folder / name
        digest.update(name.encode())
        if path.is_file():
            _update(digest, path, _BLOCKS)
    shards = sorted(path.name for path in folder.glob("*.safetensors") if path.name not in _FILES)
    for name in (*_MORE_FILES, *shards):
        path = folder / name
        if path.is_file():
            digest.update(name.encode())
            _update(digest, path, _SHARD_BLOCKS if name in shards else _BLOCKS)
    return digest.hexdigest()[:_DIGITS]


def _update(digest: hashlib._Hash, path: Path, blocks: int) -> None:
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        digest.update(size.to_bytes(8, "big"))
        if size <= _BLOCK * blocks:
            digest.update(file.read())
            return
        for index in range(blocks):
            file.seek((size - _BLOCK) * index // (blocks - 1))
            digest.update(file.read(_BLOCK))
