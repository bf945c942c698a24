"""The data of the benches: files of packages that no training corpus contains, and holes in them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import zstandard

from calomel.storage import MOST_DATA_BYTES
from calomel.storage.failures import cause

HELDOUT: Final = Path(__file__).with_name("data") / "heldout.jsonl.zst"

# The four languages of the report. JavaScript and its typed form share a row: their packages mix them.
LANGUAGES: Final = {
    "python": "python",
    "typescript": "typescript",
    "javascript": "typescript",
    "tsx": "typescript",
    "jsx": "typescript",
    "go": "go",
    "rust": "rust",
}

# The longest header of a frame of zstandard (RFC 8878, 3.1.1.1), in bytes.
_HEADER: Final = 18


class BenchDataError(Exception):
    """Data that a bench needs is absent or damaged; the message says which and where it belongs."""


@dataclass(frozen=True, slots=True)
class HeldoutFile:
    """One source file of a held-out package."""

    package: str
    path: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Hole:
    """A place to fill and what was there.

    Attributes:
        key: names the hole within a run, and in the journal.
        row: the row of the report that it counts in.
    """

    key: str
    row: str
    language: str
    path: str | None
    prefix: str
    suffix: str
    answer: str
    max_tokens: int = 64


def packed_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines file compressed with zstandard. Raises BenchDataError, naming the line."""
    number, left = 0, MOST_DATA_BYTES
    try:
        with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as plain:
            size = zstandard.get_frame_parameters(raw.read(_HEADER)).content_size
            raw.seek(0)
            lines = io.BufferedReader(plain)
            # No line is larger than what may still come.
            while line := lines.readline(left + 1):
                number, left = number + 1, left - len(line)
                if left < 0:
                    raise BenchDataError(f"{path} unpacks to more than {MOST_DATA_BYTES:,} bytes, the limit")
                row = json.loads(line.decode("utf-8"))
                if not isinstance(row, dict):
                    raise BenchDataError(f"{path} is damaged: line {number} is not an object")
                yield row
        if MOST_DATA_BYTES - left < size != zstandard.CONTENTSIZE_UNKNOWN:
            raise BenchDataError(f"{path} is damaged: it is cut short")
    except FileNotFoundError as error:
        raise BenchDataError(f"{path} does not exist") from error
    except (zstandard.ZstdError, ValueError, RecursionError) as error:
        raise BenchDataError(f"{path} is damaged: line {number}: {cause(error)}") from error
    except OSError as error:
        raise BenchDataError(f"cannot read {path}: {cause(error)}") from error


def read_heldout(path: Path | None = None) -> tuple[HeldoutFile, ...]:
    """Read the committed held-out files, or those at `path`.

    Files in other languages and with carriage returns are left out.

    Raises:
        BenchDataError: the file is absent or not what it should be.
    """
    source = path if path is not None else HELDOUT
    try:
        files = [
            HeldoutFile(row["package"], row["path"], LANGUAGES[row["language"].lower()], row["text"])
            for row in packed_rows(source)
            if row["language"].lower() in LANGUAGES and "\r" not in row["text"]
        ]
    except (KeyError, AttributeError) as error:
        raise BenchDataError(f"{source} is damaged: {cause(error)}") from error
    return tuple(sorted(files, key=lambda file: (file.language, file.package, file.path)))
