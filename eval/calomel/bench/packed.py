"""Files of one JSON object a line, compressed with zstandard."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

from calomel.bench.heldout import BenchDataError


def packed_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects, one after the other. Raises BenchDataError."""
    try:
        with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as plain:
            for line in io.TextIOWrapper(plain, encoding="utf-8", newline="\n"):
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise BenchDataError(f"{path} has a line that is no object")
                yield row
    except FileNotFoundError as error:
        raise BenchDataError(f"{path} does not exist") from error
    except (zstandard.ZstdError, UnicodeDecodeError, ValueError, OSError) as error:
        raise BenchDataError(f"{path} is damaged: {error!r}") from error
