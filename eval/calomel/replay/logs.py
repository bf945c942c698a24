"""Reads a log of any format, compressed or not, as much of it as there is; the content determines the format.

Keystroke traces are of one file: `{startContent, endContent, txns: [{time, patches: [[at, removed, text]]}]}`.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from calomel.prompts.parts import Edit
from calomel.replay.events import Changed, Checks, Event, LogError, Opened, Problem, ReplayLog, apply_edits, language_of
from calomel.replay.recording import LogClock, cause_of, read_recording
from calomel.replay.scenario import read_scenario
from calomel.storage import MOST_DATA_BYTES

_EPOCH: Final = 0.0
# The traces do not name their file; their own names do.
_DOCUMENTS: Final = {
    "rustcode": "skiplist.rs",
    "sveltecomponent": "App.svelte",
    "json-crdt-patch": "json-crdt-patch.md",
}


def read_keystrokes(name: str, values: Mapping[str, Any], problem: Problem | None = None) -> ReplayLog:
    """The events of a trace.

    Args:
        name: of the log.
        values: of the trace.
        problem: of the file as a whole, if any.
    """
    problems = [problem] if problem else []
    transactions = values.get("txns")
    transactions = transactions if isinstance(transactions, list) else []
    start = values.get("startContent")
    if not isinstance(start, str):
        problems.append(Problem(0, "It lacks startContent; the text starts empty."))
        start = ""
    document = _document(name)
    checks = Checks()
    first, text = _loaded(start, transactions)
    events: list[Event] = [Opened(0, 0.0, document, language_of(document), text)]
    clock = LogClock(problems)
    times = _times(transactions, first, clock, problems)
    whole = problem is None
    for entry in range(first, len(transactions)):
        try:
            changes = _changes(transactions[entry]["patches"])
            for edits in changes:
                after = apply_edits(text, edits)
                events.append(Changed(entry, times[entry - first], document, edits, cause_of(text, edits)))
                text = after
        except (KeyError, TypeError, ValueError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            rest = len(transactions) - entry - 1
            later = f" and the {rest} after it, whose text is unknown" if rest else ""
            problems.append(Problem(entry, f"Invalid transaction: {what}. Calomel skips it{later}."))
            whole = False
            break
    end = values.get("endContent")
    if isinstance(end, str):
        checks.end_content_right = text == end
        if whole and not checks.end_content_right:
            problems.append(Problem(len(transactions), "The text at the end is not endContent."))
    elif whole:
        problems.append(Problem(len(transactions), "It lacks endContent, so nothing checks the final text."))
    problems.sort(key=lambda each: each.entry)
    return ReplayLog(name, "keystrokes", events, problems, checks)


def _document(name: str) -> str:
    stem = name.split(".", 1)[0]
    return _DOCUMENTS.get(stem, name if language_of(name) not in {"plaintext", "json"} else f"{stem}.txt")


def _loaded(start: str, transactions: Sequence[Any]) -> tuple[int, str]:
    """The first transaction that somebody typed, and the text before it."""
    try:
        patches = transactions[0]["patches"]
        if start == "" and _seconds(transactions[0]["time"]) == _EPOCH and len(patches) == 1:
            at, removed, text = patches[0]
            if (at, removed) == (0, 0) and isinstance(text, str):
                return 1, text
    except (KeyError, IndexError, TypeError, ValueError):
        pass
    return 0, start


def _times(transactions: Sequence[Any], first: int, clock: LogClock, problems: list[Problem]) -> list[float]:
    """Seconds of each transaction from `first` on; those of one second are spread over it."""
    whole: list[float] = []
    for entry in range(first, len(transactions)):
        time: object = None
        if isinstance(transactions[entry], Mapping):
            time = transactions[entry].get("time")
        try:
            time = _seconds(time) if time is not None else None
        except (TypeError, ValueError):
            problems.append(Problem(entry, f"Its time {time!r} is invalid; Calomel uses the previous transaction's."))
            time = None
        whole.append(clock.at(entry, time))
    found: list[float] = []
    at = 0
    while at < len(whole):
        end = at
        while end < len(whole) and whole[end] == whole[at]:
            end += 1
        room = min(1.0, whole[end] - whole[at]) if end < len(whole) else 1.0
        found += [whole[at] + room * step / (end - at) for step in range(end - at)]
        at = end
    return found


def _seconds(time: Any) -> float:
    if isinstance(time, str):
        return datetime.fromisoformat(time).timestamp()
    return float(time)


def _changes(patches: Any) -> list[tuple[Edit, ...]]:
    """Patches, each in offsets of the text after the earlier ones, as changes whose edits all refer to one text.

    Patches that touch text written by an earlier one of the transaction begin a new change.
    """
    changes: list[tuple[Edit, ...]] = []
    edits: list[Edit] = []
    for each in patches:
        at, removed, text = each
        if type(at) is not int or type(removed) is not int or removed < 0 or at < 0 or not isinstance(text, str):
            raise ValueError(f"a patch of it is {each!r}, not [position, removed, text]")
        if not removed and not text:
            continue
        moved = _before(edits, at, at + removed)
        if moved is None:
            changes.append(tuple(edits))
            edits = []
            moved = at
        edits.append(Edit(moved, moved + removed, text))
        edits.sort(key=lambda edit: (edit.start, edit.end))
    if edits:
        changes.append(tuple(edits))
    return changes


def _before(edits: Sequence[Edit], start: int, end: int) -> int | None:
    """Where [start, end) of the text after `edits` was before them; None when it touches what they wrote."""
    shift = 0
    for edit in edits:
        begin = edit.start + shift
        if end < begin:
            break
        if start <= begin + len(edit.text):
            return None
        shift += len(edit.text) - (edit.end - edit.start)
    return start - shift


_KNOWN = "recordings of Visual Studio Code, keystroke traces and txtar scenarios"
# Stories of edits, as written by `calomel edits`, and files, as written by `calomel corpus`.
PACKED: Final = ".jsonl.zst"
_LOOKED_AT: Final = 100
_GZIP_MAGIC: Final = b"\x1f\x8b"
_WINDOW_BITS: Final = 31  # zlib: gzip framing, largest window
_BETWEEN: Final = re.compile(r"[\s,]*")
_DECODER: Final = json.JSONDecoder()
# Of a recording. In a string, its quotation marks would be escaped.
_HEADER: Final = re.compile(r'(?:\{[^{}\[\]]*"log"\s*:\s*\[\s*)?\{(?=[^{}]*"documentType"\s*:)')


def read_logs(path: Path) -> list[ReplayLog]:
    """The logs in a file: one, one per story of edits or corpus file, or several that were joined. Raises LogError."""
    if path.name.endswith(PACKED):
        try:
            from calomel.replay.stories import read_packed_logs
        except ModuleNotFoundError as error:
            message = f"{path} needs zstandard: install Calomel's extra `bench` (see docs/install.md#extras)."
            raise LogError(message) from error
        return read_packed_logs(path)
    if path.is_dir():
        raise LogError(f"{path} is a folder: name a file, or a repository with --git.")
    text, encoded_wrong = read_text(path)
    name = _name(path)
    logs: list[ReplayLog] = []
    for part in _parts(text.lstrip("\ufeff")):
        log = _read(f"{name}-{len(logs) + 1}" if logs else name, part)
        if log is not None:
            logs.append(log)
    if not logs:
        raise LogError(f"{path} is not a log Calomel can read. It reads {_KNOWN}.")
    if encoded_wrong:
        logs[0].problems.insert(0, Problem(0, "Some bytes of the file are not UTF-8; U+FFFD replaces each."))
    return logs


def read_log(path: Path) -> ReplayLog:
    """The only log in a file, or the first. Raises LogError, with a sentence for the user, when there is none."""
    return read_logs(path)[0]


def read_text(path: Path) -> tuple[str, bool]:
    """The text of a file, decompressed when it is gzip, and whether some of it was not UTF-8 and became U+FFFD.

    Raises LogError when it cannot be read.
    """
    try:
        if path.stat().st_size > MOST_DATA_BYTES:
            raise LogError(f"{path} is larger than {MOST_DATA_BYTES:,} bytes, the limit for a log.")
        data = path.read_bytes()
    except OSError as error:
        raise LogError(f"cannot read {path}: {error.strerror or type(error).__name__}.") from error
    if data.startswith(_GZIP_MAGIC):
        unpacker = zlib.decompressobj(_WINDOW_BITS)
        try:
            data = unpacker.decompress(data, MOST_DATA_BYTES)
        except zlib.error as error:
            raise LogError(f"{path} is damaged: {error}.") from error
        if unpacker.unconsumed_tail:
            raise LogError(f"{path} unpacks to more than {MOST_DATA_BYTES:,} bytes, the limit for a log.")
    try:
        return data.decode("utf-8-sig"), False
    except UnicodeDecodeError:
        return data.decode("utf-8-sig", "replace"), True


def _parts(text: str) -> Iterator[str]:
    """The logs in a text; somebody may have joined several files."""
    # The first one may begin before its header.
    starts = [0, *(found.start() for found in list(_HEADER.finditer(text))[1:]), len(text)]
    for start, end in pairwise(starts):
        part = text[start:end]
        while part.startswith("{"):
            try:
                found, length = _DECODER.raw_decode(part)
            except (ValueError, RecursionError):
                break
            if not isinstance(found.get("log", found.get("txns")), list):
                break
            yield part[:length]
            part = part[length:].lstrip(" \t\r\n,\ufeff")
        if part:
            yield part


def _read(name: str, text: str) -> ReplayLog | None:
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
    count, what = len(elements), f"The file is cut off at character {at}"
    problem = Problem(count, f"{what}; Calomel reads the {count} {'entry' if count == 1 else 'entries'} before that.")
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
