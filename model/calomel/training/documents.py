"""The training text: files of the corpus, drawn by language and then by length."""

from __future__ import annotations

import io
import json
import lzma
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast


@dataclass(frozen=True, slots=True)
class Document:
    """One source file."""

    path: str
    language: str
    text: str


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a `.zst` or `.xz` file; the latter needs the standard library alone."""
    if path.suffix == ".xz":
        with lzma.open(path) as stream:
            yield stream
        return
    import zstandard

    with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as stream:
        yield cast("IO[bytes]", stream)


class CorpusError(ValueError):
    """The corpus file is missing or empty; the message says how to make it."""


def read_documents(path: Path) -> Iterator[Document]:
    """The files of a `.jsonl.zst` made by `calomel corpus`, in its order.

    The same packed as `.jsonl.xz` is read too, by the standard library alone: for machines without `zstandard`.
    """
    if not path.is_file():
        raise CorpusError(f"{path} does not exist; `calomel corpus` makes it")
    with unpacked(path) as stream:
        for line in io.TextIOWrapper(stream, encoding="utf-8"):
            entry = json.loads(line)
            yield Document(entry["path"], entry["language"], entry["text"])


class DocumentSampler:
    """Draws documents: first a language by its share, then a file by its length."""

    def __init__(self, documents: Iterator[Document], shares: Mapping[str, float]) -> None:
        self._files: dict[str, list[Document]] = {}
        for document in documents:
            self._files.setdefault(document.language, []).append(document)
        if not self._files:
            raise CorpusError("the corpus has no file")
        self._languages = sorted(self._files)
        self._shares = [shares.get(language, 0.0 if shares else 1.0) for language in self._languages]
        if not any(self._shares):
            raise CorpusError(f"the corpus has only {self._languages}, the configured shares only {sorted(shares)}")
        self._lengths = {
            language: _running_sum([len(document.text) for document in files])
            for language, files in self._files.items()
        }

    @property
    def characters(self) -> int:
        """Characters of all files together."""
        return sum(lengths[-1] for lengths in self._lengths.values())

    def draw(self, rng: random.Random) -> Document:
        """A document; a long one is drawn more often, as more windows fit into it."""
        language = rng.choices(self._languages, self._shares)[0]
        lengths = self._lengths[language]
        return rng.choices(self._files[language], cum_weights=lengths)[0]


def _running_sum(values: list[int]) -> list[int]:
    total, sums = 0, []
    for value in values:
        total += value
        sums.append(total)
    return sums
