"""Reads a log of any format; which one it is, its content tells, not its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from calomel.replay.events import LogError, Problem, ReplayLog
from calomel.replay.log_file import LogText, parse_object, read_text

_KNOWN = "recordings of Visual Studio Code, keystroke traces, outcome logs with text, txtar scenarios and .md examples"

_LOOKED_AT = 100
# Stories of edits, as `calomel edits` writes them, and files, as `calomel corpus` does.
PACKED: Final = ".jsonl.zst"


def read_logs(path: Path) -> list[ReplayLog]:
    """The logs in a file: one, but of stories of edits or of a corpus of files one for each. Raises LogError."""
    if path.name.endswith(PACKED):
        from calomel.replay.packed_logs import read_packed_logs

        return read_packed_logs(path)
    return [read_log(path)]


def read_log(path: Path) -> ReplayLog:
    """The events of a log. Raises LogError, with a sentence for the user, when nothing of it can be read."""
    if path.is_dir():
        raise LogError(f"{path} is a folder; a log is a file (a repository's history is read by --git).")
    found = read_text(path)
    log = _read(path, found)
    if log is None:
        raise LogError(f"{path} is no log that is known; known are {_KNOWN}.")
    if found.encoded_wrong:
        log.problems.insert(0, Problem(0, "Some bytes of the file are no UTF-8; each stands as U+FFFD."))
    return log


def _read(path: Path, found: LogText) -> ReplayLog | None:
    text = found.text.lstrip("\ufeff")
    beginning = text.lstrip()[:1]
    name = _name(path)
    if beginning == "{":
        return _read_json(name, text, found) or _read_lines(name, text)
    if "-- buffer.txt --" in text:
        from calomel.replay.scenario import read_scenario

        return read_scenario(text, name)
    if text.lstrip().startswith("+++") or "## Expected Patch" in text:
        from calomel.replay.example import read_example

        return read_example(text, name)
    return None


def _read_json(name: str, text: str, found: LogText) -> ReplayLog | None:
    parsed = parse_object(text, "log")
    if parsed is not None and isinstance(parsed.values.get("log"), list):
        from calomel.replay.recording import read_recording

        entries = parsed.values["log"]
        problem = _whole_file(parsed.problem, found, len(entries))
        return read_recording(name, entries, parsed.values.get("nextUserEdit"), problem)
    parsed = parse_object(text, "txns")
    if parsed is not None and isinstance(parsed.values.get("txns"), list):
        from calomel.replay.keystrokes import read_keystrokes

        problem = _whole_file(parsed.problem, found, len(parsed.values["txns"]))
        return read_keystrokes(name, parsed.values, problem)
    return None


def _read_lines(name: str, text: str) -> ReplayLog | None:
    """Formats of one object a line: a recording as its recorder writes it, and Calomel's own outcomes."""
    lines = text.splitlines()
    # Some of the first lines may be damaged.
    some = [values for line in lines[:_LOOKED_AT] if (values := _object(line)) is not None]
    if any(values.get("documentType") or values.get("kind") == "setContent" for values in some):
        from calomel.replay.recording import read_recording

        return read_recording(name, [_object(line) for line in lines if line.strip()])
    if any({"outcome", "id"} <= values.keys() for values in some):
        from calomel.replay.outcome_text import read_outcome_text

        return read_outcome_text(name, lines)
    return None


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _whole_file(problem: str | None, found: LogText, entries: int) -> Problem | None:
    if found.cut:
        problem = "the packed file is cut short or damaged"
    if problem is None:
        return None
    sentence = problem[0].upper() + problem[1:]
    return Problem(entries, f"{sentence}: there is nothing from entry {entries} on; the {entries} before it are read.")


def _name(path: Path) -> str:
    name = path.name
    for suffix in (".gz", ".json", ".jsonl", ".txtar", ".md", ".w", ".recording"):
        name = name.removesuffix(suffix) or name
    # `recording.w.json` says nothing; the folder does.
    return path.resolve().parent.name if name == "recording" else name
