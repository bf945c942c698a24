"""Reads recordings of Visual Studio Code: `workspaceRecording@1.0`, as microsoft/vscode-copilot-chat keeps them.

The order of entries is the order of their positions. Some are stamped when something happened and written down later:
the text of a document with the time of its first opening, requests with their own. Those times do not drive the clock
backwards, and are a problem only when they lie further back than such a recorder is late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

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
)
from calomel.replay.language_ids import language_of
from calomel.replay.log_clock import LogClock
from calomel.replay.recorded_document import RecordedDocument, content_id, edits_of
from calomel.replay.recorded_offers import Fetch, answer_of
from calomel.replay.recorded_reasons import SOURCE, reasons_of
from calomel.replay.units import code_point_edits, code_point_offset

DOCUMENT_TYPE: Final = "workspaceRecording@1.0"
_FETCH: Final = "InlineCompletions.fetch"
# Entries without a text or a place; nothing is to be replayed of them.
_ASIDE: Final = frozenset({"meta", "bookmark", "documentEncountered", "setContent", "storeContent", "restoreContent"})
# Written down up to 28 s late in the longest recording known.
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
    metadata = {name: str(count) for name, count in sorted(reader.counts.items())}
    return ReplayLog(name, "recording", reader.events, problems, reader.checks, metadata)


class _Reader:
    def __init__(self, entries: Sequence[Any]) -> None:
        self.events: list[Event] = []
        self.problems: list[Problem] = []
        self.checks = Checks()
        self.counts: Counter[str] = Counter()
        self._clock = LogClock(self.problems, _MILLISECONDS)
        self._documents: dict[int, RecordedDocument] = {}
        self._stored: dict[str, str] = {}
        self._fetches: dict[object, Fetch] = {}
        self._reasons = reasons_of(entries)
        # Kinds that no reader knows: the first entry and how many there are.
        self._unknown: dict[str, list[int]] = {}

    def read(self, entry: int, values: Any) -> None:
        kind = values.get("kind") if isinstance(values, dict) else None
        if not isinstance(kind, str):
            self.problems.append(Problem(entry, "It is no entry: it has no kind. It is left out."))
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
        self._clock.settle()
        for document in self._documents.values():
            document.settle(self.problems)
        for what, entries in self._unknown.items():
            more = f", and so are {len(entries) - 1} more of this kind" if len(entries) > 1 else ""
            self.problems.append(Problem(entries[0], f"Entries of {what} are not known: it is left out{more}."))

    def expect(self, entry: int, values: Any) -> None:
        """What the person did next: the right text of the document after it."""
        try:
            document = self._by_path(_path(values["relativePath"]))
            text = document.text
            if text is None:
                raise ValueError(f"the text of {document.path} is not known")  # noqa: TRY301 - one way out for all
            after = apply_edits(text, code_point_edits(text, edits_of(values["edit"])))
        except (KeyError, TypeError, ValueError) as error:
            self.problems.append(Problem(entry, f"The next edit of the person is left out: {error}."))
            return
        self.events.append(Expected(entry, self._clock.now, document.path, (after,), name="next"))

    def _refuse(self, entry: int, values: Mapping[str, Any], kind: str, what: str) -> None:
        document = self._documents.get(values["id"]) if type(values.get("id")) is int else None
        if kind in {"changed", "setContent"} and document is not None:
            document.put_aside(entry, f"Wrong {kind} of {document.path}: {what}.")
        else:
            self.problems.append(Problem(entry, f"Wrong {kind}: {what}. It is left out."))

    def _document(self, values: Mapping[str, Any]) -> RecordedDocument:
        number = values["id"]
        if type(number) is not int:
            raise ValueError(f"its document is {number!r}, no number")
        if number not in self._documents:
            self._documents[number] = RecordedDocument(f"document-{number}")
        return self._documents[number]

    def _by_path(self, path: str) -> RecordedDocument:
        """The document whose path has most last parts in common with this one."""
        if not self._documents:
            raise ValueError("there is no document")
        wanted = path.split("/")[::-1]
        shared = {
            number: _common(wanted, document.path.split("/")[::-1]) for number, document in self._documents.items()
        }
        best = max(shared, key=lambda number: (shared[number], -number))
        if not shared[best]:
            raise ValueError(f"there is no document {path}")
        return self._documents[best]

    def _on_header(self, entry: int, values: Mapping[str, Any]) -> None:
        found = values.get("documentType")
        if found != DOCUMENT_TYPE:
            self.problems.append(Problem(entry, f"It says {found!r}, not {DOCUMENT_TYPE!r}; it is read as the latter."))

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
            self.problems.append(Problem(entry, f"{document.path} is called {path} from here on; it keeps its name."))

    def _on_setContent(self, entry: int, values: Mapping[str, Any]) -> None:  # noqa: N802
        text = values["content"]
        if not isinstance(text, str):
            raise ValueError("its content is no text")  # noqa: TRY004 - of a file
        self._set(entry, self._document(values), text, values.get("v"))

    def _on_storeContent(self, entry: int, values: Mapping[str, Any]) -> None:  # noqa: N802
        document, name = self._document(values), values["contentId"]
        if document.text is None:
            document.leave_out(entry)
        elif self._check(entry, document, name, document.text):
            self._stored[name] = document.text

    def _on_restoreContent(self, entry: int, values: Mapping[str, Any]) -> None:  # noqa: N802
        document, name = self._document(values), values["contentId"]
        text = self._stored.get(name, document.text)
        if text is None:
            document.leave_out(entry)
        elif self._check(entry, document, name, text):
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
        if document.text is None:
            document.leave_out(entry)
            return
        self._open(entry, document, document.text)
        self.events.append(Focused(entry, self._clock.now, document.path))

    def _on_changed(self, entry: int, values: Mapping[str, Any]) -> None:
        document = self._document(values)
        text, version = document.text, values.get("v")
        if text is None:
            document.leave_out(entry)
            return
        if type(version) is int and document.version is not None and version != document.version + 1:
            if version <= document.version:
                message = f"{document.path} is at version {document.version}, this change makes version {version} of it"
                self.problems.append(Problem(entry, f"{message}: a second time. It is left out."))
                return
            raise ValueError(f"changes are missing between version {document.version} and {version}")
        edits = code_point_edits(text, edits_of(values["edit"]))
        document.version = version if type(version) is int else None
        if not edits:
            return
        self._open(entry, document, text)
        cause: Cause = document.finder.cause(text, edits, self._reasons.get(entry))
        if cause == "accept":
            self.checks.accepts += 1
            self.events.append(Accepted(entry, self._clock.now, document.path, edits))
        self.events.append(Changed(entry, self._clock.now, document.path, edits, cause))
        document.text = apply_edits(text, edits)

    def _on_selectionChanged(self, entry: int, values: Mapping[str, Any]) -> None:  # noqa: N802
        document, selection = self._document(values), values["selection"]
        if document.text is None:
            document.leave_out(entry)
            return
        if not selection:
            return
        first, last = (code_point_offset(document.text, int(offset)) for offset in selection[0])
        self._open(entry, document, document.text)
        self.events.append(Selected(entry, self._clock.now, document.path, first, last, len(selection)))

    def _on_documentEvent(self, entry: int, values: Mapping[str, Any]) -> None:  # noqa: N802
        data = values["data"]
        source = data.get("sourceId")
        if source == _FETCH and data.get("kind") == "start":
            self._document(values)
            self._fetches[data["requestId"]] = Fetch(values["id"], data.get("v"), self._clock.now)
        elif source == SOURCE:
            self.counts[f"reason {data.get('source')}"] += 1
            if not self._reasons.has(values, data):
                raise ValueError(f"there is no change to version {data.get('v')} before it that it could explain")
        else:
            self._unknown.setdefault(f"source {source!r}", []).append(entry)

    def _on_event(self, entry: int, values: Mapping[str, Any]) -> None:
        data = values["data"]
        if data.get("sourceId") != _FETCH or data.get("kind") != "end":
            self._unknown.setdefault(f"source {data.get('sourceId')!r}", []).append(entry)
            return
        fetch = self._fetches.pop(data["requestId"], None)
        if fetch is None:
            raise ValueError(f"request {data['requestId']} was never sent")
        self.counts["requests"] += 1
        results = data.get("result") or ()
        document = self._documents[fetch.document]
        if data.get("error"):
            self.counts[f"requests {data['error']}"] += 1
        elif not results:
            self.counts["requests empty"] += 1
        elif document.text is None:
            document.leave_out(entry)
        elif fetch.version != document.version:
            # The text moved on in the meantime: the editor shows no such answer.
            self.counts["requests late"] += 1
        else:
            for result in results:
                answer = answer_of(document.text, result)
                self.events.append(
                    Offered(
                        entry,
                        self._clock.now,
                        document.path,
                        (answer.edit,),
                        answer.source,
                        str(data["requestId"]),
                        answer.inline_edit,
                        fetch.time,
                    )
                )

    def _check(self, entry: int, document: RecordedDocument, name: str, text: str) -> bool:
        if content_id(text) == name:
            self.checks.content_ids_right += 1
            return True
        self.checks.content_ids_wrong += 1
        document.put_aside(entry, f"The text of {document.path} is not the one that the log names {name!r}.")
        return False

    def _set(self, entry: int, document: RecordedDocument, text: str, version: object) -> None:
        same = document.text == text
        document.known(text, version if type(version) is int else None, entry, self.problems)
        if not same:
            document.opened = False
        self._open(entry, document, text)

    def _open(self, entry: int, document: RecordedDocument, text: str) -> None:
        if not document.opened:
            document.opened = True
            self.events.append(Opened(entry, self._clock.now, document.path, language_of(document.path), text))


def _path(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("its path is no text")  # noqa: TRY004 - of a file
    return value.replace("\\", "/").removeprefix("./")


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
