"""Files of packages that no training corpus contains: the ground that the infilling bench cuts its holes from."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path

import zstandard

HELDOUT = Path(__file__).with_name("data") / "heldout.jsonl.zst"

# The four languages of the report. JavaScript and its typed form share a row: their packages mix them.
LANGUAGES = {
    "python": "python",
    "typescript": "typescript",
    "javascript": "typescript",
    "tsx": "typescript",
    "jsx": "typescript",
    "go": "go",
    "rust": "rust",
}


class BenchDataError(Exception):
    """Data that a bench needs is absent or damaged; the message says which and where it belongs."""


@dataclass(frozen=True, slots=True)
class HeldoutFile:
    """One source file of a held-out package."""

    package: str
    path: str
    language: str
    text: str


def read_heldout(path: Path | None = None) -> tuple[HeldoutFile, ...]:
    """Read the committed held-out files, or those at `path`: JSON lines, compressed with zstandard.

    Files in other languages and with carriage returns are left out.

    Raises:
        BenchDataError: the file is absent or not what it should be.
    """
    source = path if path is not None else HELDOUT
    try:
        with source.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as plain:
            rows = [json.loads(line) for line in io.TextIOWrapper(plain, encoding="utf-8")]
        files = (
            HeldoutFile(row["package"], row["path"], LANGUAGES[row["language"].lower()], row["text"])
            for row in rows
            if row["language"].lower() in LANGUAGES and "\r" not in row["text"]
        )
        return tuple(sorted(files, key=lambda file: (file.language, file.package, file.path)))
    except FileNotFoundError as error:
        raise BenchDataError(f"{source} does not exist; it holds the held-out files of the infilling bench") from error
    except (zstandard.ZstdError, json.JSONDecodeError, KeyError, AttributeError) as error:
        raise BenchDataError(f"{source} is damaged: {error}") from error
