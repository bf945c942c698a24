"""Reads recordings of Visual Studio Code: `workspaceRecording@1.0`, as microsoft/vscode-copilot-chat keeps them.

Entries are in the order of their positions. Some have the time when something happened but were written later: the text
of a document has the time of its first opening, requests have their own. Those times do not set the clock back, and are
a problem only when they lie further back than such a recorder is late.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from calomel.code.lines import split_lines
from calomel.prompts.parts import Edit, common_prefix
from calomel.replay.events import (
    Accepted,
    Cause,
    Changed,
    Checks,
    Closed,
    Event,
    Expected,
    Focused,
    Offered,
    Opened,
    Problem,
    ReplayLog,
    Selected,
    apply_edits,
    language_of,
)

# Times that lag behind for longer than this many entries are not errors: the recorder's clock was set back.
PATIENCE: Final = 20


class LogClock:
    """Turns the times of entries into seconds from the first one.

    A time before the last one is taken as the last one, and a `Problem` says so: one per run of such entries, for the
    first of them. A run of more than `PATIENCE` entries is a clock that was set back: time continues from there.

    Args:
        problems: list that problems are added to.
        unit: seconds in one unit of the log's times.
    """

    def __init__(self, problems: list[Problem], unit: float = 1.0) -> None:
        self.now = 0.0
        self._problems = problems
        self._unit = unit
        self._start: float | None = None
        self._late = 0

    def at(self, entry: int, time: object, *, lag: float = 0.0) -> float:
        """Seconds at an entry.

        Args:
            entry: of the log.
            time: in the log's units; None is no time, anything else but a number is a problem.
            lag: seconds by which entries of this kind may be written late.
        """
        if time is None:
            return self.now
        if isinstance(time, bool) or not isinstance(time, int | float) or not math.isfinite(time):
            self._problems.append(Problem(entry, f"Its time {time!r} is invalid; Calomel uses the previous entry's."))
            return self.now
        if self._start is None:
            self._start = float(time)
        seconds = (time - self._start) * self._unit
        late = self.now - seconds
        if late <= 0:
            self.now, self._late = seconds, 0
        elif late > lag:
            self._late += 1
            if self._late == 1:
                message = f"Time runs backwards by {late:.3f} s; Calomel waits for the clock to catch up."
                self._problems.append(Problem(entry, message))
            elif self._late > PATIENCE:
                self._start -= late / self._unit
        return self.now


# One key gives one character, or a line end with its indentation, or a bracket with its closing one.
_ONE_KEY: Final = re.compile(r"\r\n[ \t]*|[\r\n][ \t]*|[ \t]+|\(\)|\[\]|\{\}|<>|''|\"\"|``|.?", re.DOTALL)
# Replacing more than this share of a text at once is the work of a tool, or of another program that wrote the file.
_TOOL_SHARE: Final = 0.5
_TOOL_CHARACTERS: Final = 200

# Visual Studio Code's names for its reasons; all others are not typing.
REASONS: Final[dict[str, Cause]] = {
    "inlineSuggestion.accept": "accept",
    "inlineCompletionAccept": "accept",
    "inlineCompletionPartialAccept": "accept",
    "type": "typed",
    "cursor": "typed",
}


def cause_of(before: str, edits: Sequence[Edit]) -> Cause:
    """The apparent cause of a text change, where the log does not name it."""
    removed = sum(edit.end - edit.start for edit in edits)
    if removed > _TOOL_CHARACTERS and removed > _TOOL_SHARE * len(before) and any(edit.text for edit in edits):
        return "other"
    # Several cursors type the same everywhere.
    texts = {edit.text for edit in edits}
    return "typed" if len(texts) == 1 and all(map(_ONE_KEY.fullmatch, texts)) else "other"


_LAST_OF_ONE_UNIT = "\uffff"


def joined(text: str) -> str:
    """The same text with each surrogate pair made one character, as a file would hold it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _places(text: str) -> Sequence[int]:
    """For each UTF-16 unit, and for the end, the code point that it belongs to."""
    if text.isascii() or max(text) <= _LAST_OF_ONE_UNIT:
        return range(len(text) + 1)
    sizes = (1 + (character > _LAST_OF_ONE_UNIT) for character in text)
    return [*(at for at, size in enumerate(sizes) for _ in range(size)), len(text)]


def code_point_edits(text: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The same edits in code points; one that splits a character of two units replaces the whole character.

    Args:
        text: before the edits.
        edits: in UTF-16 units, sorted, not overlapping.

    Raises:
        ValueError: an edit lies outside of the text, or they are out of order or overlap.
    """
    places = _places(text)
    found: list[Edit] = []
    last = 0
    for start, end, new in edits:
        if not last <= start <= end < len(places):
            raise ValueError(f"range {start}-{end} does not fit a text of {len(places) - 1} UTF-16 units")
        last = end
        before = _half(text[places[start]], 0) if _cuts(places, start) else ""
        after = _half(text[places[end]], 1) if _cuts(places, end) else ""
        found.append(Edit(places[start], places[end] + bool(after), joined(before + new + after)))
    apply_edits(text, found)
    return tuple(found)


def code_point_offset(text: str, offset: int) -> int:
    """Convert an offset in UTF-16 units to one in code points. Raises ValueError outside of the text."""
    places = _places(text)
    if not 0 <= offset < len(places):
        raise ValueError(f"offset {offset} lies outside of a text of {len(places) - 1} UTF-16 units")
    return places[offset]


def _cuts(places: Sequence[int], offset: int) -> bool:
    """Whether an offset lies between the two units of a character."""
    return offset > 0 and places[offset] == places[offset - 1]


def _half(character: str, number: int) -> str:
    """One surrogate of a character of two units."""
    return character.encode("utf-16-le")[2 * number : 2 * number + 2].decode("utf-16-le", "surrogatepass")


# Enough of a hash to distinguish the texts of a session; the recorder keeps no more.
CONTENT_ID_LENGTH: Final = 24


def content_id(text: str) -> str:
    """The recorder's name of a text: the first 24 characters of the base64 of its SHA-256."""
    data = joined(text).encode("utf-8", "replace")
    return base64.b64encode(hashlib.sha256(data).digest()).decode("ascii")[:CONTENT_ID_LENGTH]


@dataclass(slots=True)
class RecordedDocument:
    """What is known of a document.

    Attributes:
        path: as prompts name it.
        text: None while it is unknown or uncertain.
        version: of the text, None when the log has none.
        opened: the replay has its `Opened` event.
        unsure: a problem says that its text is unknown.
    """

    path: str
    text: str | None = None
    version: int | None = None
    opened: bool = False
    unsure: bool = False


def _edits_of(value: object) -> tuple[Edit, ...]:
    """The edits of an entry, `[[start, end, text], ...]`, sorted. Raises ValueError when they are malformed."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValueError("its edits are not a list")  # noqa: TRY004 - of a file, not an argument
    found: list[Edit] = []
    for each in value:
        if not isinstance(each, Sequence) or len(each) != len(("start", "end", "text")):
            raise ValueError(f"an edit of it is {each!r}, not [start, end, text]")
        start, end, text = each
        numbers = type(start) is int and type(end) is int
        if not numbers or not isinstance(text, str):
            raise ValueError(f"an edit of it is {each!r}, not [start, end, text]")
        found.append(Edit(start, end, text))
    return tuple(sorted(found, key=lambda edit: (edit.start, edit.end)))


# Lines and columns from 1, columns in UTF-16 units.
_RANGE: Final = re.compile(r"\[(\d+),(\d+) -> (\d+),(\d+)\]")


def _edit_of(text: str, result: Mapping[str, Any]) -> Edit:
    """The edit of a suggestion; raises ValueError when it does not fit, KeyError or TypeError when malformed."""
    found = _RANGE.fullmatch(result["range"])
    new = result["text"]
    if found is None or not isinstance(new, str):
        raise ValueError(f"its range is {result['range']!r}, its text {type(new).__name__}")
    numbers = [int(each) for each in found.groups()]
    start, end = _offset(text, *numbers[:2]), _offset(text, *numbers[2:])
    if start > end:
        raise ValueError(f"its range is {result['range']!r}")
    return Edit(start, end, new)


def _offset(text: str, line: int, column: int) -> int:
    lines = [*split_lines(text), ""]
    if line >= len(lines) + (not text or text[-1] in "\r\n"):
        raise ValueError(f"the text has no line {line}")
    try:
        return sum(map(len, lines[: line - 1])) + code_point_offset(lines[line - 1].rstrip("\r\n"), column - 1)
    except ValueError as error:
        raise ValueError(f"line {line} has no column {column}") from error


SOURCE: Final = "TextModel.setChangeReason"


def _reasons(entries: Sequence[Any]) -> dict[tuple[object, object], Cause]:
    """By document and version, the cause of the change that made it; the log has it after the change."""
    found: dict[tuple[object, object], Cause] = {}
    for values in entries:
        data = values.get("data") if isinstance(values, dict) else None
        if isinstance(data, dict) and data.get("sourceId") == SOURCE and values.get("kind") == "documentEvent":
            found[_key(values, data)] = REASONS.get(str(data.get("source")), "other")
    return found


def _key(values: Mapping[str, Any], versioned: Mapping[str, Any]) -> tuple[object, object]:
    number, version = values.get("id"), versioned.get("v")
    return (number if type(number) is int else None, version if type(version) is int else None)


DOCUMENT_TYPE: Final = "workspaceRecording@1.0"
_FETCH: Final = "InlineCompletions.fetch"
# Entries without a text or a place; there is nothing in them to replay.
_ASIDE: Final = frozenset({"meta", "bookmark", "documentEncountered", "setContent", "storeContent", "restoreContent"})
# Written up to 28 s late in the longest recording known.
_LATE: Final = {"focused": 60.0, "documentEvent": 60.0, "event": 60.0}
_MILLISECONDS: Final = 1e-3


def read_recording(
    name: str, entries: Sequence[Any], next_edit: object = None, problem: Problem | None = None
) -> ReplayLog:
    """The events of a recording.

    Args:
        name: of the log.
        entries: its `log`.
        next_edit: its `nextUserEdit`, what the person did next.
        problem: of the file as a whole, if any.
    """
    reader = _Reader(entries)
    for entry, values in enumerate(entries):
        reader.read(entry, values)
    if next_edit is not None:
        reader.expect(len(entries), next_edit)
    reader.settle()
    problems = sorted([*reader.problems, *([problem] if problem else [])], key=lambda each: each.entry)
    return ReplayLog(name, "recording", reader.events, problems, reader.checks)


class _Reader:
    def __init__(self, entries: Sequence[Any]) -> None:
        self.events: list[Event] = []
        self.problems: list[Problem] = []
        self.checks = Checks()
        self._clock = LogClock(self.problems, _MILLISECONDS)
        self._documents: dict[int, RecordedDocument] = {}
        self._stored: dict[str, str] = {}
        # Requests that were sent: document, version of the text, and seconds from the start of the log.
        self._fetches: dict[object, tuple[int, object, float]] = {}
        self._reasons = _reasons(entries)
        self._changes: set[tuple[object, object]] = set()
        # Unknown kinds: the first entry and how many there are.
        self._unknown: dict[str, list[int]] = {}

    def read(self, entry: int, values: Any) -> None:
        kind = values.get("kind") if isinstance(values, dict) else None
        if not isinstance(kind, str):
            self.problems.append(Problem(entry, "Entry without a kind: Calomel skips it."))
            return
        handler = getattr(self, f"_on_{kind}", None) if kind.isalpha() else None
        if handler is None:
            self._unknown.setdefault(f"kind {kind[:80]!r}", []).append(entry)
            return
        if kind not in _ASIDE:
            self._clock.at(entry, values.get("time"), lag=_LATE.get(kind, 0.0))
        try:
            handler(entry, values)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            self._refuse(entry, values, kind, what)

    def settle(self) -> None:
        for what, entries in self._unknown.items():
            more = f", and so are {len(entries) - 1} more of this kind" if len(entries) > 1 else ""
            self.problems.append(Problem(entries[0], f"Calomel does not know entries of {what} and skips it{more}."))

    def expect(self, entry: int, values: Any) -> None:
        """What the person did next: the right text of the document after it."""
        try:
            document = self._by_path(_path(values["relativePath"]))
            text = document.text
            if text is None:
                raise ValueError(f"the text of {document.path} is unknown")  # noqa: TRY301 - one way out for all
            after = apply_edits(text, code_point_edits(text, _edits_of(values["edit"])))
        except (KeyError, TypeError, ValueError) as error:
            self.problems.append(Problem(entry, f"Invalid next edit: {error}. Calomel skips it."))
            return
        self.events.append(Expected(entry, self._clock.now, document.path, (after,), name="next"))

    def _refuse(self, entry: int, values: Mapping[str, Any], kind: str, what: str) -> None:
        document = self._documents.get(values["id"]) if type(values.get("id")) is int else None
        if kind in {"changed", "setContent"} and document is not None:
            self._put_aside(entry, document, f"Invalid {kind} of {document.path}: {what}.")
        else:
            self.problems.append(Problem(entry, f"Invalid {kind}: {what}. Calomel skips it."))

    def _put_aside(self, entry: int, document: RecordedDocument, why: str) -> None:
        """From here on the text is uncertain: entries are left out until it is known."""
        if not document.unsure:
            later = f"Calomel skips this entry and later ones of {document.path} until the log gives its text again."
            self.problems.append(Problem(entry, f"{why} {later}"))
        document.text, document.unsure = None, True

    def _text(self, entry: int, document: RecordedDocument) -> str | None:
        """The document's text; None where it is unknown, so that the entry is useless."""
        if document.text is None:
            self._put_aside(entry, document, f"The text of {document.path} is unknown here.")
        return document.text

    def _document(self, values: Mapping[str, Any]) -> RecordedDocument:
        number = values["id"]
        if type(number) is not int:
            raise ValueError(f"its document is {number!r}, not a number")
        if number not in self._documents:
            self._documents[number] = RecordedDocument(f"document-{number}")
        return self._documents[number]

    def _by_path(self, path: str) -> RecordedDocument:
        """The document whose path has the most trailing parts in common with this one."""
        if not self._documents:
            raise ValueError("the document is missing")
        wanted = path.split("/")[::-1]
        shared = {
            number: common_prefix(wanted, document.path.split("/")[::-1])
            for number, document in self._documents.items()
        }
        best = max(shared, key=lambda number: (shared[number], -number))
        if not shared[best]:
            raise ValueError(f"unknown document {path}")
        return self._documents[best]

    def _on_header(self, entry: int, values: Mapping[str, Any]) -> None:
        found = values.get("documentType")
        if found != DOCUMENT_TYPE:
            self.problems.append(Problem(entry, f"Its kind is {found!r}; Calomel reads it as {DOCUMENT_TYPE!r}."))

    def _on_meta(self, entry: int, values: Mapping[str, Any]) -> None:
        """Where a slice was cut from."""

    _on_applicationStart = _on_bookmark = _on_meta  # noqa: N815 - the format's own words

    def _on_documentEncountered(self, entry: int, values: Mapping[str, Any]) -> None:  # noqa: N802
        path = _path(values["relativePath"])
        number = values["id"]
        document = self._document(values)
        if any(each.path == path for other, each in self._documents.items() if other != number):
            path = f"{path}#{number}"
        if not document.opened:
            document.path = path
        elif document.path != path:
            self.problems.append(Problem(entry, f"{document.path} became {path}; Calomel keeps the first name."))

    def _on_setContent(self, entry: int, values: Mapping[str, Any]) -> None:  # noqa: N802
        text = values["content"]
        if not isinstance(text, str):
            raise ValueError("its content is not text")  # noqa: TRY004 - of a file
        self._set(entry, self._document(values), text, values.get("v"))

    def _on_storeContent(self, entry: int, values: Mapping[str, Any]) -> None:  # noqa: N802
        document, name = self._document(values), values["contentId"]
        text = self._text(entry, document)
        if text is not None and self._check(entry, document, name, text):
            self._stored[name] = text

    def _on_restoreContent(self, entry: int, values: Mapping[str, Any]) -> None:  # noqa: N802
        document, name = self._document(values), values["contentId"]
        text = self._stored[name] if name in self._stored else self._text(entry, document)
        if text is not None and self._check(entry, document, name, text):
            self._set(entry, document, text, values.get("v"))

    def _on_opened(self, entry: int, values: Mapping[str, Any]) -> None:
        document = self._document(values)
        if document.text is not None:
            self._open(entry, document, document.text)

    def _on_closed(self, entry: int, values: Mapping[str, Any]) -> None:
        document = self._document(values)
        if document.opened:
            document.opened = False
            self.events.append(Closed(entry, self._clock.now, document.path))

    def _on_focused(self, entry: int, values: Mapping[str, Any]) -> None:
        document = self._document(values)
        text = self._text(entry, document)
        if text is not None:
            self._open(entry, document, text)
            self.events.append(Focused(entry, self._clock.now, document.path))

    def _on_changed(self, entry: int, values: Mapping[str, Any]) -> None:
        document = self._document(values)
        self._changes.add(_key(values, values))
        text, version = self._text(entry, document), values.get("v")
        if text is None:
            return
        if type(version) is int and document.version is not None and version != document.version + 1:
            if version <= document.version:
                message = f"{document.path} is at version {document.version}; this change makes version {version}"
                self.problems.append(Problem(entry, f"{message}, which exists already. Calomel skips it."))
                return
            raise ValueError(f"changes are missing between version {document.version} and {version}")
        edits = code_point_edits(text, _edits_of(values["edit"]))
        document.version = version if type(version) is int else None
        if not edits:
            return
        self._open(entry, document, text)
        cause = self._reasons.get(_key(values, values)) or cause_of(text, edits)
        if cause == "accept":
            self.checks.accepts += 1
            self.events.append(Accepted(entry, self._clock.now, document.path, edits))
        self.events.append(Changed(entry, self._clock.now, document.path, edits, cause))
        document.text = apply_edits(text, edits)

    def _on_selectionChanged(self, entry: int, values: Mapping[str, Any]) -> None:  # noqa: N802
        document, selection = self._document(values), values["selection"]
        text = self._text(entry, document)
        if text is None or not selection:
            return
        first, last = (code_point_offset(text, int(offset)) for offset in selection[0])
        self._open(entry, document, text)
        self.events.append(Selected(entry, self._clock.now, document.path, first, last, len(selection)))

    def _on_documentEvent(self, entry: int, values: Mapping[str, Any]) -> None:  # noqa: N802
        data = values["data"]
        source = data.get("sourceId")
        if source == _FETCH and data.get("kind") == "start":
            self._document(values)
            self._fetches[data["requestId"]] = values["id"], data.get("v"), self._clock.now
        elif source == SOURCE:
            if _key(values, data) not in self._changes:
                raise ValueError(f"no earlier change made version {data.get('v')}")
        else:
            self._unknown.setdefault(f"source {source!r}", []).append(entry)

    def _on_event(self, entry: int, values: Mapping[str, Any]) -> None:
        data = values["data"]
        if data.get("sourceId") != _FETCH or data.get("kind") != "end":
            self._unknown.setdefault(f"source {data.get('sourceId')!r}", []).append(entry)
            return
        fetch = self._fetches.pop(data["requestId"], None)
        if fetch is None:
            raise ValueError(f"the log never sends request {data['requestId']}")
        number, version, asked = fetch
        document = self._documents[number]
        results = () if data.get("error") else data.get("result") or ()
        text = self._text(entry, document) if results else None
        if text is None or version != document.version:
            # The text has changed since: the editor does not show such an answer.
            return
        for result in results:
            edits = (_edit_of(text, result),)
            source, inline = str(result.get("source") or ""), bool(result.get("isInlineEdit"))
            request, now = str(data["requestId"]), self._clock.now
            self.events.append(Offered(entry, now, document.path, edits, source, request, inline, asked))

    def _check(self, entry: int, document: RecordedDocument, name: str, text: str) -> bool:
        if content_id(text) == name:
            self.checks.content_ids_right += 1
            return True
        self.checks.content_ids_wrong += 1
        self._put_aside(entry, document, f"The text of {document.path} differs from the log's {name!r}.")
        return False

    def _set(self, entry: int, document: RecordedDocument, text: str, version: object) -> None:
        same = document.text == text
        document.text, document.version, document.unsure = text, version if type(version) is int else None, False
        if not same:
            document.opened = False
        self._open(entry, document, text)

    def _open(self, entry: int, document: RecordedDocument, text: str) -> None:
        if not document.opened:
            document.opened = True
            self.events.append(Opened(entry, self._clock.now, document.path, language_of(document.path), text))


def _path(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("its path is not text")  # noqa: TRY004 - of a file
    return value.replace("\\", "/").removeprefix("./")
