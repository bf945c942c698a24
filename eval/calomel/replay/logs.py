"""Reads a log of any format, compressed or not, as much of it as there is; the content determines the format."""

from __future__ import annotations

import json
import re
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from calomel.replay.events import LogError, Problem, ReplayLog
from calomel.replay.keystrokes import read_keystrokes
from calomel.replay.recording import read_recording
from calomel.replay.scenario import read_scenario

_KNOWN = "recordings of Visual Studio Code, keystroke traces and txtar scenarios"
# Far above any recording; a wrong file must not fill the memory.
MAX_BYTES: Final = 512 * 1024 * 1024
# Stories of edits, as written by `calomel edits`, and files, as written by `calomel corpus`.
PACKED: Final = ".jsonl.zst"
_LOOKED_AT: Final = 100
_GZIP_MAGIC: Final = b"\x1f\x8b"
_WINDOW_BITS: Final = 31  # zlib: gzip framing, largest window
_BETWEEN: Final = re.compile(r"[\s,]*")
_DECODER: Final = json.JSONDecoder()


def read_logs(path: Path) -> list[ReplayLog]:
    """The logs in a file: one, or one per story of edits or corpus file. Raises LogError."""
    if path.name.endswith(PACKED):
        try:
            from calomel.replay.stories import read_packed_logs
        except ModuleNotFoundError as error:
            message = f"{path} is packed with zstandard, which is missing: install Calomel's extra bench."
            raise LogError(message) from error
        return read_packed_logs(path)
    return [read_log(path)]


def read_log(path: Path) -> ReplayLog:
    """The events of a log. Raises LogError, with a sentence for the user, when nothing of it can be read."""
    if path.is_dir():
        raise LogError(f"{path} is a folder; a log is a file (a repository's history is read by --git).")
    text, encoded_wrong = read_text(path)
    log = _read(path, text)
    if log is None:
        raise LogError(f"{path} is not a known kind of log; known are {_KNOWN}.")
    if encoded_wrong:
        log.problems.insert(0, Problem(0, "Some bytes of the file are not UTF-8; U+FFFD replaces each."))
    return log


def read_text(path: Path) -> tuple[str, bool]:
    """The text of a file, decompressed when it is gzip, and whether some of it was not UTF-8 and became U+FFFD.

    Raises LogError when it cannot be read.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise LogError(f"{path} has more than {MAX_BYTES:,} bytes; no log is as large as that.")
        data = path.read_bytes()
    except OSError as error:
        raise LogError(f"cannot read {path}: {error.strerror or type(error).__name__}.") from error
    if data.startswith(_GZIP_MAGIC):
        unpacker = zlib.decompressobj(_WINDOW_BITS)
        try:
            data = unpacker.decompress(data, MAX_BYTES)
        except zlib.error as error:
            raise LogError(f"{path} is damaged: {error}.") from error
        if unpacker.unconsumed_tail:
            raise LogError(f"{path} holds more than {MAX_BYTES:,} bytes; no log is as large as that.")
    try:
        return data.decode("utf-8-sig"), False
    except UnicodeDecodeError:
        return data.decode("utf-8-sig", "replace"), True


def _read(path: Path, text: str) -> ReplayLog | None:
    text = text.lstrip("\ufeff")
    name = _name(path)
    if text.lstrip().startswith("{"):
        for items in ("log", "txns"):
            parsed = _parsed(text, items)
            if parsed is not None and isinstance(parsed[0].get(items), list):
                values, problem = parsed
                if items == "txns":
                    return read_keystrokes(name, values, problem)
                return read_recording(name, values[items], values.get("nextUserEdit"), problem)
        return _read_lines(name, text)
    return read_scenario(text, name) if "-- buffer.txt --" in text else None


def _parsed(text: str, items: str) -> tuple[dict[str, Any], Problem | None] | None:
    """An object whose list `items` may be cut short, and what is wrong; None when the text is not an object.

    Only the text before the first error is read: after it, nothing says where an item begins.
    """
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        pass
    else:
        return (whole, None) if isinstance(whole, dict) else None
    start = re.search(rf'"{items}"\s*:\s*\[', text)
    if start is None:
        return None
    values: dict[str, Any] = {}
    with suppress(ValueError, RecursionError):
        values = json.loads(text[: start.start()].rstrip().removesuffix(",") + "}")
    elements: list[Any] = []
    at = _skip(text, start.end())
    with suppress(ValueError, RecursionError):
        while not text.startswith("]", at):
            element, at = _DECODER.raw_decode(text, at)
            elements.append(element)
            at = _skip(text, at)
    count, what = len(elements), f"The file ends in the middle, at character {at}"
    problem = Problem(count, f"{what}: there is nothing from entry {count} on; the {count} before it are read.")
    return {**values, items: elements}, problem


def _skip(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    return found.end() if found else at


def _read_lines(name: str, text: str) -> ReplayLog | None:
    """A recording as its recorder writes it, one object per line."""
    lines = text.splitlines()
    # Some of the first lines may be damaged.
    some = [values for line in lines[:_LOOKED_AT] if (values := _object(line)) is not None]
    if any(values.get("documentType") or values.get("kind") == "setContent" for values in some):
        return read_recording(name, [_object(line) for line in lines if line.strip()])
    return None


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _name(path: Path) -> str:
    name = path.name
    for suffix in (".gz", ".json", ".jsonl", ".txtar", ".w", ".recording"):
        name = name.removesuffix(suffix) or name
    # The name `recording.w.json` says nothing; the folder's does.
    return path.resolve().parent.name if name == "recording" else name
