"""Reads keystroke traces of one file: `{startContent, endContent, txns: [{time, patches: [[at, removed, text]]}]}`.

The format of josephg/editing-traces: code points, the patches of a transaction one after the other. Times have a
resolution of one second; the transactions of one second are spread evenly over it. A trace whose first transaction
loads the file, at no real time, starts with that text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from calomel.replay.events import Changed, Checks, Edit, Event, Opened, Problem, ReplayLog, apply_edits, language_of
from calomel.replay.reading import LogClock, cause_of

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
            later = f", nor do the {rest} transactions after it: their text is unknown" if rest else ""
            problems.append(Problem(entry, f"Wrong transaction: {what}. It does not count{later}."))
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
