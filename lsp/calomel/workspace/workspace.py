"""The one place where the editor's events arrive, and where the rest of the program asks for the state."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calomel.prompts.parts import Excerpt, Hunk
from calomel.workspace.documents import Change, Document, Documents, Origin, TextChange, file_of, paths_in, prompt_name
from calomel.workspace.history import History, Listener, prompt_path
from calomel.workspace.privacy import MAX_BYTES, Privacy, Verdict
from calomel.workspace.related import Related
from calomel.workspace.secrets import SHORTEST_REPEATED
from calomel.workspace.syntax import SyntaxTrees


@dataclass(frozen=True, slots=True)
class Situation:
    """One cursor in one document.

    Attributes:
        uri: of the document.
        path: as prompts name it.
        language_id: as the editor names it.
        text: the whole document.
        offset: of the cursor, in code points.
        hunks: the settled edits, oldest first; append-only while `hops` stays the same.
        hops: grows whenever the beginning of `hunks` was dropped.
        related: excerpts of other files, the most useful one last.
        blocks: lines of the document, ascending, that are good beginnings of an excerpt.
        withdrawals: grows whenever something may not be shown any more: then nothing chosen earlier is kept.
        pauses: how often the typing has paused; between two pauses, each key waits for what changes in the prompt.
    """

    uri: str
    path: str | None
    language_id: str
    text: str
    offset: int
    hunks: tuple[Hunk, ...] = ()
    hops: int = 0
    related: tuple[Excerpt, ...] = ()
    blocks: tuple[int, ...] = ()
    withdrawals: int = 0
    pauses: int = 0


# Each of them is looked at for each question.
_MOST_GIVEN: Final = 64
# Git is asked about a file, and about each folder around it that is a repository.
_MOST_ROUNDS: Final = 8
# Places at which one message changes what a person typed; at more, a program did: as an edit each would cost a text.
_MOST_PLACES: Final = 64
# Characters of a text that is looked through in a thread.
_LONG: Final = 16_384
# Parts of a text, as start and end.
Spans = tuple[tuple[int, int], ...]
# An accepted suggestion reaches the document within this time, or never.
_EXPECTED_SECONDS: Final = 3.0


class Workspace:
    """Folders, open documents and the diff stream of one editor. Used from one thread."""

    def __init__(
        self,
        folders: Sequence[Path],
        clock: Callable[[], float],
        *,
        privacy: Privacy | None = None,
        syntax: SyntaxTrees | None = None,
        related: Related | None = None,
    ) -> None:
        self.folders = tuple(folders)
        self.documents = Documents()
        self.history = History()
        self.privacy = privacy
        self.syntax = syntax
        self.related = related
        self.focused: str | None = None
        self.listeners: list[Listener] = []
        # Whether a typed change accepts a visible suggestion: editors report an acceptance after its change, or never.
        self.is_acceptance: Callable[[str, TextChange], bool] | None = None
        self._clock = clock
        # Open documents that no model may see: neither listeners nor history are told about them.
        self._hidden: set[str] = set()
        # Documents, also closed ones with edits, whose file was there when it was last looked for.
        self._on_disk: set[str] = set()
        # The open documents by their names in prompts; empty until it is needed.
        self._names: dict[str, list[Document]] = {}
        self._expected: dict[str, tuple[str, float]] = {}
        # Files of which excerpts were given: if one may not be seen any more, nothing chosen earlier is kept.
        self._given: set[str] = set()
        # The secrets in open documents, as of a revision.
        self._secrets: dict[str, tuple[Document, int, Spans]] = {}
        # The value of `Privacy.changes` at the last check.
        self._rule_changes = 0
        self._withdrawals = 0
        # What waits for git after documents were opened.
        self._showing: set[asyncio.Future[None]] = set()
        # Documents with edits of which git has yet to say whether they may be seen.
        self._asking: set[str] = set()

    def set_folders(self, folders: Sequence[Path]) -> None:
        """Use other folders; open documents are renamed accordingly."""
        self.folders = tuple(folders)
        self._names.clear()
        for document in tuple(self.documents.values()):
            document.path = prompt_name(document.uri, self.folders)

    def open(self, uri: str, language_id: str, version: int | None, text: str) -> Document:
        """The editor opened a document, or sends one again after it fell out of sync."""
        before = self.documents.get(uri)
        if before is not None:
            self.history.closed(before)
        document = self.documents.open(uri, language_id, version, text, prompt_name(uri, self.folders))
        self._names.clear()
        was_hidden = uri in self._hidden
        if self.verdict(document).asking:
            self._hidden.add(uri)
            showing = asyncio.ensure_future(self.settled(document))
            self._showing.add(showing)
            showing.add_done_callback(self._showing.discard)
        elif self.shows(document) and not was_hidden:
            self._tell_opened(document)
        self.look_again()
        return document

    async def settled(self, document: Document) -> None:
        """Wait until git has said what may be shown: a document, and what was edited. Then the listeners know."""
        for _ in range(_MOST_ROUNDS):
            if self.documents.get(document.uri) is not document:
                return
            self.shows(document)
            if self.privacy is None or not await self.privacy.answered():
                return
            self.look_again()

    def change(
        self, uri: str, version: int | None, changes: Sequence[Change], origin: Origin = Origin.TYPED
    ) -> tuple[TextChange, ...]:
        """The editor changed a document; returns the changes, none for a document that no model may see.

        Raises ResyncNeeded; changes before the invalid one have been applied.
        """
        # Whether it may still be seen is asked again at the next question, before anything is made of it.
        shown = uri not in self._hidden
        if uri in self._expected:
            origin = self._expected_origin(uri, changes, origin)
        if origin is Origin.TYPED and len(changes) > _MOST_PLACES:
            origin = Origin.EXTERNAL
        done = []
        for document, change in self.documents.change(uri, version, changes):
            if not shown:
                continue
            accepts = origin is Origin.TYPED and self.is_acceptance is not None and self.is_acceptance(uri, change)
            source = Origin.PREDICTED if accepts else origin
            now = self._clock()
            recognised = self.history.record(document, change, source, now)
            document.latest.origin, document.latest.when = recognised, now
            done.append(change)
            for listener in self.listeners:
                listener.changed(document, change, recognised)
        return tuple(done)

    def save(self, uri: str) -> None:
        """The editor wrote a document to its file."""
        document = self.documents.get(uri)
        if document is not None and uri not in self._hidden:
            for listener in self.listeners:
                listener.saved(document)

    def close(self, uri: str) -> None:
        """The editor closed a document."""
        document = self.documents.pop(uri, None)
        self._names.clear()
        self._expected.pop(uri, None)
        self._secrets.pop(uri, None)
        if uri in self._hidden:
            self._hidden.discard(uri)
        elif document is not None:
            self.history.closed(document)
            for listener in self.listeners:
                listener.closed(document)
        if uri not in self.history.uris:
            self._on_disk.discard(uri)

    def focus(self, uri: str | None) -> None:
        """The user looks at another document: the edit in the last one is finished."""
        if uri != self.focused and self.focused is not None:
            self.history.settle()
        self.focused = uri
        if uri is not None:
            self.documents.touch(uri)

    def expect_prediction(self, uri: str, after: str) -> None:
        """A suggestion was accepted: the change that gives the document the text `after` comes from the model."""
        self._expected[uri] = (after, self._clock() + _EXPECTED_SECONDS)

    def verdict(self, document: Document) -> Verdict:
        """Whether a model may see an open document now; not if its file is gone: it may be in a hidden place now."""
        rules = self.privacy
        if rules is None:
            return Verdict(allowed=True)
        path, verdict = file_of(document.uri), None
        if path is not None and self._is_gone(document.uri, path):
            return Verdict(allowed=False, reason="moved")
        if path is None:
            verdict = rules.named(paths_in(document.uri), document.language_id)
        verdict = verdict or rules.allowed(path, document.language_id)
        return Verdict(allowed=False, reason="too_large") if verdict.allowed and len(document) > MAX_BYTES else verdict

    def shows(self, document: Document) -> bool:
        """Like `verdict`; when it has changed, the listeners are told, and a hidden document's edits are forgotten.

        While git is asked, nobody is told, and it is not shown.
        """
        verdict, hidden = self.verdict(document), document.uri in self._hidden
        allowed = verdict.allowed
        if verdict.asking:
            return False
        if allowed and hidden:
            self._hidden.discard(document.uri)
            self._tell_opened(document)
        elif not allowed and not hidden:
            self._hidden.add(document.uri)
            self.history.forget(document.uri)
            for listener in self.listeners:
                listener.closed(document)
            self._withdraw()
        return allowed

    def permits(self, name: str) -> bool:
        """Whether a model may see this name of prompts: each open document and each file that has it, at least one."""
        if not self._names:
            for document in self.documents.values():
                self._names.setdefault(prompt_path(document), []).append(document)
        documents, files = self._names.get(name, ()), [folder / name for folder in self.folders]
        if not all(map(self.shows, documents)):
            return False
        rules = self.privacy
        if rules is not None and not all(rules.allowed(file).allowed for file in files):
            return False
        return bool(documents) or any(map(os.path.exists, files))

    def situation(self, uri: str, offset: int) -> Situation | None:
        """What is known around a cursor; None for a document that is not open, or that no model may see, or not yet."""
        document = self.documents.get(uri)
        shown = document is not None and self.shows(document)
        self.look_again()
        if document is None or not shown or self._asking:
            return None
        related = () if self.related is None else self.related.excerpts(document, offset)
        permitted = {name for name in {each.path for each in related} if self.permits(name)}
        self._given |= permitted
        if len(self._given) > _MOST_GIVEN or not all(map(self.permits, self._given)):
            self._given = permitted
            self._withdraw()
        return Situation(
            uri=uri,
            path=document.path,
            language_id=document.language_id,
            text=document.text,
            offset=max(0, min(offset, len(document))),
            hunks=self.history.settled(),
            hops=self.history.hops,
            related=tuple(each for each in related if each.path in permitted),
            blocks=() if self.syntax is None else self.syntax.block_starts(document),
            withdrawals=self._withdrawals,
        )

    # What is asked when text leaves (`calomel.infer.door`).

    @property
    def masks(self) -> bool:
        """Whether the user wants secrets hidden."""
        return self.privacy is not None and self.privacy.masks

    def versions(self, name: str) -> Sequence[tuple[str, Spans]]:
        """The newest text of each document or file that prompts call `name`, and the secrets in it."""
        self.permits(name)  # collects the names
        found = [(document.text, self._secrets_of(document)) for document in self._names.get(name, ())]
        if not found and self.privacy is not None:
            texts = self.history.closed_texts(name)
            found = [(text, tuple(span[:2] for span in self.privacy.spans(text))) for text in texts]
        if not found and self.related is not None:
            versions = (self.related.version(folder / name) for folder in self.folders)
            found = [version for version in versions if version is not None]
        return found

    def edits(self, name: str) -> Sequence[Hunk]:
        """All edits of the documents that prompts call `name`, oldest first."""
        return self.history.edits(name)

    def permits_edits(self, name: str) -> bool:
        """Whether a model may still see edits of a document with this name, as `look_again` found it."""
        return not self._asking and bool(self.history.edits(name))

    async def look_for_secrets(self) -> None:
        """Find the secrets of long texts in a thread, before they are asked for."""
        for document in tuple(self.documents.values()):
            known = self._secrets.get(document.uri)
            same = known is not None and known[0] is document and known[1] == document.revision
            if self.privacy is not None and not same and len(document) > _LONG and document.uri not in self._hidden:
                await asyncio.to_thread(self.privacy.spans, document.text)

    def values(self) -> Iterator[str]:
        """Secrets of the open documents that a model may see, those long enough to be told from words."""
        for document in tuple(self.documents.values()):
            if document.uri not in self._hidden:
                spans = self._secrets_of(document)
                yield from (document.text[low:high] for low, high in spans if high - low >= SHORTEST_REPEATED)

    def _secrets_of(self, document: Document) -> Spans:
        known = self._secrets.get(document.uri)
        if known is None or known[0] is not document or known[1] != document.revision:
            spans = () if self.privacy is None else tuple(each[:2] for each in self.privacy.spans(document.text))
            known = self._secrets[document.uri] = document, document.revision, spans
        return known[2]

    def look_again(self) -> None:
        """Forget edits that no model may see any more: rules, names and links may have changed.

        Any other text of an open document is looked at where it is used: there may be thousands of them.
        """
        rules = self.privacy
        if rules is None:
            return
        self._asking.clear()
        for uri in self.history.uris:
            path, document = file_of(uri), self.documents.get(uri)
            if document is not None:
                if not self.shows(document) and uri not in self._hidden:
                    self._asking.add(uri)
                continue
            if path is None:
                verdict, gone = rules.named(paths_in(uri)) or Verdict(allowed=True), False
            else:
                gone = self._is_gone(uri, path) or (path.parent.is_dir() and not path.exists())
                verdict = rules.allowed(path)
            if verdict.asking and not gone:
                self._asking.add(uri)
            elif gone or not verdict.allowed:
                self.history.forget(uri)
                self._on_disk.discard(uri)
                self._withdraw()
        if rules.changes != self._rule_changes:
            self._rule_changes = rules.changes
            self._withdraw()

    def _is_gone(self, uri: str, path: Path) -> bool:
        """Whether a document's file was there and is not any more.

        It, or a folder above it, may have been renamed or moved, and its new name is unknown here.
        """
        if os.path.exists(path):  # noqa: PTH110 (Path.exists raises for names that no file can have)
            self._on_disk.add(uri)
            return False
        return uri in self._on_disk

    def _withdraw(self) -> None:
        self._withdrawals += 1
        self._secrets.clear()
        for listener in self.listeners:
            listener.withdrawn()

    def _tell_opened(self, document: Document) -> None:
        for listener in self.listeners:
            listener.opened(document)

    def _expected_origin(self, uri: str, changes: Sequence[Change], origin: Origin) -> Origin:
        """PREDICTED when the changes give the document its expected text."""
        after, until = self._expected[uri]
        document = self.documents.get(uri)
        if document is None or self._clock() > until:
            del self._expected[uri]
            return origin
        trial = Document(uri, document.language_id, None, document.text)
        for change in changes:
            trial.apply(change)
        if trial.text != after:
            return origin
        del self._expected[uri]
        return Origin.PREDICTED
