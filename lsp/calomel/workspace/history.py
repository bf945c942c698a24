"""The diff stream: every change of every document, as the edits that a person would name."""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import pairwise
from typing import Final

from calomel.prompts.parts import SIZE_LIMIT, Hunk, text_hunks
from calomel.workspace.documents import Document, Origin, TextChange

# A change that reverts more than this many others is a rewrite, not an undo.
_UNDO_DEPTH: Final = 64


class Listener:
    """Is notified of every event of documents that a model may see, after it has happened.

    A document that becomes hidden from models is closed for it, and is opened when it may be seen again.
    """

    def opened(self, document: Document) -> None:
        """The document was opened, or its text was replaced by the editor's."""

    def changed(self, document: Document, change: TextChange, origin: Origin) -> None:
        """The document was changed once; it holds the text after the change."""

    def saved(self, document: Document) -> None:
        """The document was written to its file."""

    def closed(self, document: Document) -> None:
        """The document is not open any more."""

    def withdrawn(self) -> None:
        """Something may not be seen any more, or the rules have changed: drop whatever was derived from it."""


class _Steps:
    """The latest changes of one document, to recognise undo and redo.

    Attributes:
        latest: what the last change was recognised as.
    """

    def __init__(self) -> None:
        self.latest: Origin | None = None
        self._done: deque[TextChange] = deque(maxlen=_UNDO_DEPTH)
        self._undone: deque[TextChange] = deque(maxlen=_UNDO_DEPTH)

    def add(self, change: TextChange, origin: Origin) -> Origin:
        """UNDO or REDO when the change reverts the latest ones or repeats an undone one; else `origin`.

        A deleted single character is a correction, not an undo: people type it.
        """
        if origin is Origin.TYPED and (change.inserted or len(change.removed) > 1):
            if self._undone and _inverse(change, self._undone[-1]):
                origin = Origin.REDO
            elif self._takes_back(change):
                origin = Origin.UNDO
        self._done.append(change)
        if origin is Origin.UNDO:
            self._undone.append(change)
        elif origin is Origin.REDO:
            self._undone.pop()
        else:
            self._undone.clear()
        self.latest = origin
        return origin

    def _takes_back(self, change: TextChange) -> bool:
        """Whether some of the latest changes, played backwards, turn the removed text into the inserted one."""
        text, start = change.removed, change.start
        for step in reversed(self._done):
            low, high = step.start - start, step.start - start + len(step.inserted)
            if low < 0 or high > len(text) or text[low:high] != step.inserted:
                return False
            text = text[:low] + step.removed + text[high:]
            if text == change.inserted:
                return True
        return False


def _inverse(one: TextChange, other: TextChange) -> bool:
    return one.start == other.start and one.inserted == other.removed and one.removed == other.inserted


# As the best open client groups them: neighbours are at most this many lines from the latest change.
LINE_SPAN: Final = 8
# After such a pause two edits are separate, even in one place.
PAUSE_SECONDS: Final = 1.0


class Episode:
    """One edit, open until another one begins. It holds whole texts, which Python shares rather than copies.

    At a pause it keeps the text of that moment, so that readers see two edits where only one is stored.
    """

    def __init__(self, document: Document, change: TextChange, *, predicted: bool, now: float) -> None:
        self.uri = document.uri
        self.path = prompt_path(document)
        self.predicted = predicted
        self._base = text_before(document, change)
        self._paused: str | None = None
        self._updated = now
        self._latest = change.start_line

    def takes(self, document: Document, change: TextChange, *, predicted: bool) -> bool:
        """Whether the change belongs to this edit."""
        return predicted == self.predicted and self.is_near(document, change.start_line, change.end_line)

    def is_near(self, document: Document, first: int, last: int) -> bool:
        """Whether these lines are where it was."""
        return document.uri == self.uri and first <= self._latest + LINE_SPAN and last >= self._latest - LINE_SPAN

    def add(self, document: Document, change: TextChange, now: float) -> None:
        """Add a change; the document holds the text after it."""
        if now - self._updated >= PAUSE_SECONDS:
            self._paused = text_before(document, change)
        self._updated = now
        self._latest = change.start_line + change.inserted.count("\n")

    def hunks(self, text: str) -> tuple[Hunk, ...]:
        """What the edit did until the document had `text`, split where the user paused."""
        texts = [self._base, text] if self._paused is None else [self._base, self._paused, text]
        return tuple(
            hunk for old, new in pairwise(texts) for hunk in text_hunks(self.path, old, new, predicted=self.predicted)
        )


def prompt_path(document: Document) -> str:
    """How prompts name a document: its path, else the last part of its uri."""
    return document.path or document.uri.rpartition("/")[2] or document.uri


def text_before(document: Document, change: TextChange) -> str:
    """The document's text before its latest change."""
    text = document.text
    return text[: change.start] + change.removed + text[change.start + len(change.inserted) :]


# A model reads the last few; more than these only cost memory and context.
MAX_HUNKS: Final = 48
MAX_CHARACTERS: Final = 32_768
# The share kept when the limit is reached: after one long hop, the start of the prompt stays the same for long.
_KEPT_SHARE: Final = 0.5


class History:
    """The diff stream of all documents.

    The stream is append-only: a returned hunk never changes and keeps its place, until a limit is reached and the older
    half is dropped, or a document is forgotten.
    """

    def __init__(self) -> None:
        self._stream: list[Hunk] = []
        # The document of each hunk.
        self._uris: list[str] = []
        self._characters = 0
        # The last text of closed documents with edits in the stream.
        self._texts: dict[str, str] = {}
        self._open: Episode | None = None
        # The document of the open edit.
        self._document: Document | None = None
        self._steps: defaultdict[str, _Steps] = defaultdict(_Steps)
        # Counts the hops of the stream's beginning: whoever keeps a copy of the stream starts anew when it grows.
        self.hops = 0

    def record(self, document: Document, change: TextChange, origin: Origin, now: float) -> Origin:
        """Record a change; the document holds the text after it. Returns what the change was recognised as."""
        if max(len(change.inserted), len(change.removed)) > SIZE_LIMIT:
            origin = Origin.EXTERNAL
        origin = self._steps[document.uri].add(change, origin)
        if origin is Origin.EXTERNAL:
            self._settle_before(document, change)
            return origin
        predicted = origin is Origin.PREDICTED
        if self._open is not None and self._open.takes(document, change, predicted=predicted):
            self._open.add(document, change, now)
        else:
            self._settle_before(document, change)
            self._open = Episode(document, change, predicted=predicted, now=now)
            self._document = document
        return origin

    def settled(self) -> tuple[Hunk, ...]:
        """The append-only stream, oldest first. The edit in progress is not in it."""
        return tuple(self._stream)

    def open_edit(self) -> tuple[Hunk, ...]:
        """The edit in progress, as it is now; empty when there is none."""
        if self._open is None or self._document is None:
            return ()
        return self._open.hunks(self._document.text)

    def edits(self, path: str) -> tuple[Hunk, ...]:
        """All edits of the documents that prompts call `path`, oldest first, the one in progress last."""
        return tuple(hunk for hunk in (*self._stream, *self.open_edit()) if hunk.path == path)

    def closed_texts(self, path: str) -> tuple[str, ...]:
        """The last text of each closed document that prompts call `path`, if it has edits in the stream."""
        uris = {uri for hunk, uri in zip(self._stream, self._uris, strict=True) if hunk.path == path}
        return tuple(self._texts[uri] for uri in uris if uri in self._texts)

    def settle(self) -> None:
        """Finish the edit in progress: the user went to another file, or saved."""
        if self._open is not None:
            self._append(self._open.uri, self.open_edit())
        self._open = None

    def goes_on(self, document: Document, line: int) -> bool:
        """Whether typing in this line would continue the edit in progress."""
        return self._open is not None and self._open.is_near(document, line, line)

    @property
    def uris(self) -> frozenset[str]:
        """The documents with edits in the stream, including the one in progress."""
        return frozenset(self._uris) | (frozenset() if self._open is None else {self._open.uri})

    def forget(self, uri: str) -> None:
        """Forget a document: nothing of it may be shown any more, whatever was returned before."""
        if self._open is not None and self._open.uri == uri:
            self._open = None
        self._steps.pop(uri, None)
        self._texts.pop(uri, None)
        if uri in self._uris:
            kept = [(hunk, of) for hunk, of in zip(self._stream, self._uris, strict=True) if of != uri]
            self._stream, self._uris = [hunk for hunk, _ in kept], [of for _, of in kept]
            self._characters = sum(map(_size, self._stream))
            self.hops += 1

    def closed(self, document: Document) -> None:
        """A document was closed; its settled edits stay."""
        if self._open is not None and self._open.uri == document.uri:
            self.settle()
        self._steps.pop(document.uri, None)
        if document.uri in self._uris:
            self._texts[document.uri] = document.text

    def latest(self, uri: str) -> Origin | None:
        """What the latest change of a document was recognised as; None when it has none."""
        steps = self._steps.get(uri)
        return None if steps is None else steps.latest

    def _settle_before(self, document: Document, change: TextChange) -> None:
        """Settle the open edit as it was before `change`, which is not part of it."""
        if self._open is None:
            return
        if self._open.uri == document.uri:
            self._append(document.uri, self._open.hunks(text_before(document, change)))
        else:
            self._append(self._open.uri, self.open_edit())
        self._open = None

    def _append(self, uri: str, hunks: tuple[Hunk, ...]) -> None:
        self._stream += hunks
        self._uris += [uri] * len(hunks)
        self._characters += sum(map(_size, hunks))
        if len(self._stream) <= MAX_HUNKS and self._characters <= MAX_CHARACTERS:
            return
        while self._stream and (
            len(self._stream) > MAX_HUNKS * _KEPT_SHARE or self._characters > MAX_CHARACTERS * _KEPT_SHARE
        ):
            self._characters -= _size(self._stream.pop(0))
            del self._uris[0]
        self._texts = {uri: text for uri, text in self._texts.items() if uri in self._uris}
        self.hops += 1


def _size(hunk: Hunk) -> int:
    return len(hunk.before) + len(hunk.after)
