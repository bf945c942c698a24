"""Reads Calomel's own outcome log, where its user let the texts be kept.

The log holds what became of each suggestion, and its text, but not the file around it: that stays with the user. So
each suggestion is a document of its own that holds nothing but the place it would go to. It is offered when it was
shown; what was taken of it is accepted. What the person typed instead is not in the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from calomel.replay.events import Accepted, Changed, Checks, Closed, Edit, Event, Offered, Opened, Problem, ReplayLog
from calomel.replay.language_ids import language_of
from calomel.replay.log_clock import LogClock
from calomel.suggest.outcome_record import OutcomeRecord, record_of

_SOURCE: Final = "calomel"
_KNOWN: Final = frozenset({"shown", "accepted", "partly_accepted", "rejected", "ignored", "superseded"})
_TAKEN: Final = frozenset({"accepted", "partly_accepted"})


def read_outcome_text(name: str, lines: Iterable[str]) -> ReplayLog:
    """The events of an outcome log.

    Args:
        name: of the log.
        lines: of its file, in order.
    """
    reader = _Reader()
    for entry, line in enumerate(lines):
        if line.strip():
            reader.read(entry, line)
    return reader.log(name)


class _Reader:
    def __init__(self) -> None:
        self._problems: list[Problem] = []
        self._events: list[Event] = []
        self._checks = Checks()
        self._clock = LogClock(self._problems)
        # By window and suggestion: its text, and how much of it was taken.
        self._texts: dict[tuple[str, str], str] = {}
        self._taken: dict[tuple[str, str], int] = {}
        self._silent: list[int] = []

    def read(self, entry: int, line: str) -> None:
        try:
            record = record_of(line.encode("utf-8", "surrogatepass"))
        except (TypeError, ValueError) as error:
            self._problems.append(Problem(entry, f"The line is no outcome ({error}); it is left out."))
            return
        now = self._clock.at(entry, record.time)
        if record.outcome not in _KNOWN:
            self._problems.append(Problem(entry, f"The outcome {record.outcome!r} is not known; it is left out."))
        elif record.text is None:
            self._silent.append(entry)
        else:
            self._outcome(entry, now, record, record.text)

    def log(self, name: str) -> ReplayLog:
        self._clock.settle()
        if self._silent:
            message = (
                f"{len(self._silent)} outcomes from here on have no text, which their user has to allow: left out."
            )
            self._problems.append(Problem(self._silent[0], message))
        self._problems.sort(key=lambda each: each.entry)
        metadata = {"suggestions": str(len(self._texts)), "without text": str(len(self._silent))}
        return ReplayLog(name, "outcomes", self._events, self._problems, self._checks, metadata)

    def _outcome(self, entry: int, now: float, record: OutcomeRecord, text: str) -> None:
        key = (record.session, record.id)
        document = f"{record.session or 'session'}/{record.id}.{record.extension or 'txt'}"
        if key not in self._texts:
            self._texts[key] = text
            self._taken[key] = 0
            self._show(entry, now, document, record)
        if record.outcome in _TAKEN:
            before, after = self._taken[key], _accepted(record, self._texts[key])
            if after > before:
                self._checks.accepts += before == 0
                self._taken[key] = after
                change = (Edit(before, before, self._texts[key][before:after]),)
                self._events.append(Accepted(entry, now, document, change))
                self._events.append(Changed(entry, now, document, change, "accept"))
        if record.outcome not in {"shown", "partly_accepted"}:
            self._events.append(Closed(entry, now, document))

    def _show(self, entry: int, now: float, document: str, record: OutcomeRecord) -> None:
        """The log may begin with what became of a suggestion: then it was shown as long before as it was visible."""
        last = self._events[-1].time if self._events else 0.0
        shown = now if record.outcome == "shown" else max(last, now - max(0.0, record.visible_seconds))
        edits = (Edit(0, 0, record.text or ""),)
        inline_edit = record.kind == "edit"
        self._events.append(Opened(entry, shown, document, record.language or language_of(document), ""))
        source = record.model or _SOURCE
        self._events.append(Offered(entry, shown, document, edits, source, record.id, inline_edit, shown))


def _accepted(record: OutcomeRecord, text: str) -> int:
    """Code points of the text that were taken; the log counts UTF-16 units."""
    if record.outcome == "accepted":
        return len(text)
    units = text.encode("utf-16-le", "surrogatepass")[: 2 * max(0, record.accepted_length)]
    return len(units.decode("utf-16-le", "ignore"))
