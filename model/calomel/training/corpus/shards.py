"""Corpus files on disk: one JSON object a line, zstandard-compressed."""

import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import zstandard

# High enough to be small, low enough to take seconds for the whole corpus.
COMPRESSION_LEVEL = 10


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of the corpus; `path` is the one inside its package's archive, or its repository.

    `package` is a package's name or a repository's `OWNER/NAME`, `ecosystem` a registry or `git`.
    """

    package: str
    ecosystem: str
    path: str
    language: str
    license: str
    text: str


def write_shard(path: Path, files: Iterable[SourceFile], level: int = COMPRESSION_LEVEL) -> None:
    """Write files in the given order; the shard appears whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as raw, zstandard.ZstdCompressor(level).stream_writer(raw) as stream:
        for file in files:
            stream.write(json.dumps(asdict(file), ensure_ascii=False).encode() + b"\n")
    partial.replace(path)


def read_shard(path: Path) -> Iterator[SourceFile]:
    """Yield a shard's files in order, without holding it in memory."""
    with path.open("rb") as raw:
        stream = zstandard.ZstdDecompressor().stream_reader(raw)
        for line in io.TextIOWrapper(stream, encoding="utf-8", newline="\n"):
            yield SourceFile(**json.loads(line))
