"""Uris of the editor, files of the machine, names in a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit


def file_of(uri: str) -> Path | None:
    """The file that a `file:` uri names; None for untitled documents and other schemes."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        return None
    path = unquote(parts.path)
    return Path(path) if path and "\0" not in path else None


def prompt_name(uri: str, folders: Sequence[Path]) -> str | None:
    """The path within the innermost folder that holds it, with forward slashes; else the file's name."""
    path = file_of(uri)
    if path is None:
        name = unquote(urlsplit(uri).path).rpartition("/")[2]
        return name or None
    inside = [path.relative_to(folder) for folder in folders if path.is_relative_to(folder)]
    return min((each.as_posix() for each in inside), key=len) if inside else path.name
