"""What benches are asked about: files of packages that no training corpus contains, and HumanEval-Infilling."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import zstandard

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
SINGLE_LINE, RANDOM_SPAN = "humaneval_single_line", "humaneval_random_span"
FILES: Final = {
    SINGLE_LINE: "HumanEval-SingleLineInfilling.jsonl.gz",
    RANDOM_SPAN: "HumanEval-RandomSpanInfillingLight.jsonl.gz",
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


@dataclass(frozen=True, slots=True)
class Hole:
    """A place to fill and what was there.

    Attributes:
        key: names the hole within a run, and in the journal.
        row: the row of the report that it counts in.
        first_line_only: the answer is cut behind its first line before it is judged, whatever decoded it.
    """

    key: str
    row: str
    language: str
    path: str | None
    prefix: str
    suffix: str
    answer: str
    max_tokens: int = 64
    first_line_only: bool = False


def packed_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of one JSON object a line, compressed with zstandard. Raises BenchDataError."""
    try:
        with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as plain:
            for line in io.TextIOWrapper(plain, encoding="utf-8", newline="\n"):
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise BenchDataError(f"{path} is damaged: a line is no object")
                yield row
    except FileNotFoundError as error:
        raise BenchDataError(f"{path} does not exist") from error
    except (zstandard.ZstdError, UnicodeDecodeError, ValueError, OSError) as error:
        raise BenchDataError(f"{path} is damaged: {error!r}") from error


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
        raise BenchDataError(f"{source} is damaged: {error!r}") from error
    return tuple(sorted(files, key=lambda file: (file.language, file.package, file.path)))


def data_folder() -> Path:
    """Where public data files lie: `CALOMEL_DATA`, by default `../shared/data`."""
    return Path(os.environ.get("CALOMEL_DATA") or "../shared/data")


def read_humaneval(row: str, data: Path, *, seed: int, limit: int | None = None) -> list[Hole]:
    """HumanEval-Infilling (Bavarian et al. 2022), its single lines or its random spans, in a seeded order.

    Of a single line its line end was taken out, too, so the answer is cut behind its first line.

    Raises:
        BenchDataError: a file is absent or damaged.
    """
    path = data / "human-eval-infilling" / FILES[row]
    single = row == SINGLE_LINE
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            entries = [json.loads(line) for line in file]
        holes = [
            Hole(
                key=f"{row}:{entry['task_id']}",
                row=row,
                language="python",
                path=None,
                prefix=entry["prompt"],
                suffix=entry["suffix"],
                answer=entry["canonical_solution"],
                max_tokens=64 if single else 128,
                first_line_only=single,
            )
            for entry in entries
        ]
    except FileNotFoundError as error:
        raise BenchDataError(f"{path} does not exist; CALOMEL_DATA names the folder above it") from error
    except (OSError, json.JSONDecodeError, KeyError) as error:
        raise BenchDataError(f"{path} is damaged: {error}") from error
    random.Random(f"{seed}:{row}").shuffle(holes)  # noqa: S311 - seeded, not secret
    return holes[:limit]
