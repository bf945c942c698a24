"""Settings files of editors: JSON with comments, read and never changed; and what `calomel editor setup` prints."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calomel.cli.errors import InputError

_LARGEST: Final = 1024 * 1024
# Strings first: what looks like a comment or a comma inside one is none.
_STRING: Final = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT: Final = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMA: Final = re.compile(_STRING + r"|[{\[]\s*,|,(?=\s*[}\]])")


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text for the user to put somewhere: what, and where."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What one editor needs.

    Attributes:
        snippets: text that the user adds.
        notes: sentences about further steps.
        file: a file of Calomel's own and its text, written if it does not exist.
    """

    snippets: tuple[Snippet, ...] = ()
    notes: tuple[str, ...] = ()
    file: tuple[Path, str] | None = None


def read(path: Path) -> str | None:
    """The text with its own line ends; None when there is no such file. Raises InputError."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror})") from error
    if len(data) > _LARGEST:
        raise InputError(f"{path} is larger than {_LARGEST // 1024} KB, too large for a settings file")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8") from error


def settings_of(path: Path) -> Mapping[str, Any] | None:
    """The content of a settings file, empty if it does not exist; None when it cannot be read as an object."""
    try:
        found = _loads(read(path) or "{}")
    except (ValueError, RecursionError, InputError):
        return None
    return found if isinstance(found, Mapping) else None


def _loads(text: str) -> Any:
    """The value of JSON with comments and trailing commas. Raises ValueError."""
    bare = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " ", text.removeprefix("\ufeff"))
    return json.loads(_COMMA.sub(lambda match: " " if match[0] == "," else match[0], bare))
