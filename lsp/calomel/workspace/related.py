"""Code of other files that helps at a cursor: definitions, usages, imports, recent places, similar chunks.

The files were read before (`Indexer`); a question only looks up, ranks and cuts, within a fixed time. An answer stands
until the cursor leaves what it was made for, so that a keystroke does not change the prompt without need.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from calomel.prompts.parts import Excerpt
from calomel.workspace.analysis import family_of
from calomel.workspace.answer import Answer, RankedExcerpt, Taken, in_order, keys
from calomel.workspace.candidates import Candidate, Question, from_index, snap, weigh
from calomel.workspace.clock import Clock
from calomel.workspace.documents import Document, TextChange
from calomel.workspace.history import Origin
from calomel.workspace.imports import imports_in, resolve
from calomel.workspace.index import Index
from calomel.workspace.indexer import Indexer
from calomel.workspace.languages import grammar_of
from calomel.workspace.merge import Merged, merge
from calomel.workspace.paths import file_of
from calomel.workspace.recent import RecentPlaces
from calomel.workspace.shelf import Passage, Shelf
from calomel.workspace.source_files import Permission, is_source
from calomel.workspace.syntax import SyntaxTrees
from calomel.workspace.watch import Watch

__all__ = ["RankedExcerpt", "Related"]

# Around the cursor: what similar code is looked for with.
_NEARBY: Final = 20
# Around a place that was edited or looked at.
_AROUND: Final = 12
# Each next recent place counts so much less.
_OLDER: Final = 0.9
_ONLY_VIEWED: Final = 0.8
_LIMIT: Final = 32


class Related:
    """A listener of the workspace that knows the code around it. Used from one thread; reads files in another."""

    def __init__(
        self,
        syntax: SyntaxTrees,
        privacy: Permission | None = None,
        *,
        clock: Clock = time.monotonic,
        message: Callable[[str], None] | None = None,
        watch: bool = True,
    ) -> None:
        """`message` is called from other threads, with sentences for the user."""
        self.index = Index()
        self._syntax = syntax
        self._privacy = privacy
        self._clock = clock
        self._indexer = Indexer(self.index, privacy, message)
        self._watch = Watch(self._files_changed, privacy, message) if watch else None
        self._recent = RecentPlaces()
        # Open documents that may be shown, by absolute path, or by uri where they have none.
        self._documents: dict[str, Document] = {}
        # Those whose text is not on the disk, and those of which the index has been given the text.
        self._unsaved: dict[str, Document] = {}
        self._held: set[str] = set()
        self._answers: dict[str, Answer] = {}
        self._shelf = Shelf(self.index, self._documents)

    @property
    def ready(self) -> bool:
        """Whether every file of the folders has been read once."""
        return self._indexer.ready

    @property
    def progress(self) -> tuple[int, int]:
        """Files read, and files found so far."""
        return self._indexer.progress

    @property
    def restarts(self) -> int:
        """How often the reading began anew because of a mistake."""
        return self._indexer.restarts

    @property
    def worker_pid(self) -> int | None:
        """Of the process that reads the files."""
        return self._indexer.worker_pid

    def start(
        self,
        folders: Sequence[Path],
        progress: Callable[[int, int], None] | None = None,
        *,
        most_files: int | None = None,
    ) -> None:
        """Read the folders in the background, and watch them; again for other folders, none included.

        `progress` gets the files read and the files found, once more when all is read. It is called from another
        thread. `most_files` limits the index.
        """
        self._indexer.start(folders, progress, most_files=most_files)
        if self._watch is not None:
            # Setting up the watches walks through the folders.
            threading.Thread(target=self._watch.start, args=(folders,), name="calomel-watch-start", daemon=True).start()

    def stop(self) -> None:
        """End the background work; may be called twice."""
        if self._watch is not None:
            self._watch.stop()
        self._indexer.stop()

    def wait(self, seconds: float) -> bool:
        """Wait until the files are read, for those who have the time; whether they are."""
        return self._indexer.wait(seconds)

    def excerpts_for(self, document: Document, offset: int) -> tuple[Excerpt, ...]:
        """The excerpts alone, the best last."""
        return tuple(each.excerpt for each in self.excerpts(document, offset))

    def excerpts(
        self, document: Document, offset: int, *, budget_seconds: float = 0.012, limit: int = _LIMIT
    ) -> tuple[RankedExcerpt, ...]:
        """What helps at the cursor, the best last; with what was found within the time, which one step may exceed."""
        now = self._clock()
        line = document.line_of(offset)
        scopes = keys(self._syntax.scopes(document, offset))
        elsewhere = self._elsewhere(document.uri)
        complete = self.ready
        before = self._answers.get(document.uri)
        stands = before is not None and before.limit == limit and before.stands(scopes, line)
        if before is not None and stands and before.is_current(self.index, now, elsewhere, complete=complete):
            return before.excerpts
        self._recent.add(document.uri, line, line + 1, edited=False)
        self._give_unsaved(document)
        deadline = now + budget_seconds
        generation = self.index.generation
        found, taken = self._find(document, offset, limit, lambda: self._clock() > deadline)
        answer = Answer(
            in_order(found, before), tuple(taken), scopes, line, now, generation, complete, elsewhere, limit,
            whole=self._clock() <= deadline,
        )  # fmt: skip
        self._answers[document.uri] = answer
        return answer.excerpts

    def refresh(self, paths: Sequence[Path]) -> None:
        """The editor says that these files were created, changed or deleted."""
        self._files_changed(paths)

    def opened(self, document: Document) -> None:
        """The document was opened."""
        key = _key(document.uri)
        path = file_of(document.uri)
        allowed = self._privacy is None or path is None or self._privacy.allowed(path).allowed
        self._answers.pop(document.uri, None)
        if allowed:
            self._documents[key] = document
        else:
            self._documents.pop(key, None)

    def changed(self, document: Document, change: TextChange, origin: Origin) -> None:  # noqa: ARG002 (a listener's)
        """The document was changed: the place counts as recent."""
        self._recent.shift(document.uri, change)
        line = change.start_line
        self._recent.add(document.uri, line, line + 1 + change.inserted.count("\n"), edited=True)
        answer = self._answers.get(document.uri)
        if answer is not None and change.start_line < answer.line:
            answer.line += change.inserted.count("\n") - (change.end_line - change.start_line)
        key = _key(document.uri)
        if key in self._documents and is_source(Path(key)):
            self._unsaved[key] = document

    def saved(self, document: Document) -> None:
        """The document was written: its file is read again."""
        self._back_to_disk(document)

    def closed(self, document: Document) -> None:
        """The document was closed: its file counts again."""
        self._answers.pop(document.uri, None)
        self._documents.pop(_key(document.uri), None)
        self._back_to_disk(document)

    def _find(
        self, document: Document, offset: int, limit: int, late: Callable[[], bool]
    ) -> tuple[list[RankedExcerpt], list[Taken]]:
        question = self._question(document, offset)
        candidates = [*self._recent_places(document.uri)]
        candidates += self._in_live_lines(from_index(self.index, question, late))
        found: list[RankedExcerpt] = []
        taken: list[Taken] = []
        texts: set[str] = set()
        for each in merge(candidates):
            passage = self._read(each)
            if passage is None:
                continue
            text = "".join(passage.lines)
            # The end of a file may lack its line end; an excerpt has whole lines.
            text = text if text.endswith(("\n", "\r")) else text + "\n"
            bare = text.strip()
            if not bare or bare in texts:
                continue
            texts.add(bare)
            if each.best.path not in self._documents:
                taken.append(Taken(each.best.path, passage.start, tuple(passage.lines)))
            excerpt = Excerpt(passage.name, passage.start, text)
            found.append(RankedExcerpt(excerpt, each.best.source, round(each.score, 6)))
            if len(found) == limit or late():
                break
        return found, taken

    def _question(self, document: Document, offset: int) -> Question:
        path = file_of(document.uri)
        grammar = grammar_of(document.language_id, document.path)
        known = str(path) if path is not None else document.path or ""
        family = family_of(known if grammar is None else f"x{grammar.suffixes[0]}")
        imported: dict[str, None] = {}
        for each in imports_in(document.text, family) if path is not None else ():
            imported.update(dict.fromkeys(resolve(each, str(path), self.index.named)))
        imported.pop(known, None)
        line = document.line_of(offset)
        return Question(
            path=str(path) if path is not None else None,
            family=family,
            names=self._syntax.identifiers_near(document, offset),
            imported=tuple(imported),
            nearby="".join(document.lines(line - _NEARBY, line + _NEARBY + 1)),
        )

    def _recent_places(self, uri: str) -> Iterator[Candidate]:
        for rank, place in enumerate(self._recent.others(uri)):
            key = _key(place.uri)
            document = self._documents.get(key)
            start, end = place.start - _AROUND, place.end + _AROUND
            if document is not None:
                start, end = snap(self._syntax.block_starts(document), start, min(end, document.line_count))
            elif key not in self.index:
                continue
            part = _OLDER**rank * (1.0 if place.edited else _ONLY_VIEWED)
            yield Candidate(key, max(0, start), end, "recent", weigh("recent", part))

    def _in_live_lines(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """What the index knows of open documents, with the lines it stands in now."""
        for each in candidates:
            if each.path not in self._documents:
                yield each
                continue
            passage = self._shelf.read(each.path, each.start, each.end, live=False)
            if passage is not None:
                yield replace(each, start=passage.start, end=passage.start + len(passage.lines))

    def _read(self, merged: Merged) -> Passage | None:
        best = merged.best
        passage = self._shelf.read(best.path, merged.start, merged.end, live=True)
        if passage is not None and best.word and not any(best.word in line for line in passage.lines):
            return None
        return passage

    def _elsewhere(self, uri: str) -> tuple[int, int]:
        """What the user did in other documents, as numbers that only grow."""
        revisions = sum(document.revision for document in self._documents.values() if document.uri != uri)
        return self._recent.news_of_others(uri), revisions

    def _give_unsaved(self, current: Document) -> None:
        """What was typed in the documents that the user has left is part of the workspace too."""
        for key, document in tuple(self._unsaved.items()):
            if document is not current:
                del self._unsaved[key]
                self._held.add(key)
                self._indexer.hold(Path(key), document.text)

    def _back_to_disk(self, document: Document) -> None:
        key = _key(document.uri)
        self._unsaved.pop(key, None)
        path = file_of(document.uri)
        if path is None:
            return
        if key in self._held:
            self._held.discard(key)
            self._indexer.release(path)
        else:
            self._indexer.refresh((path,))

    def _files_changed(self, paths: Sequence[Path]) -> None:
        if any(path.name == ".gitignore" for path in paths):
            self._indexer.rescan()
        self._indexer.refresh(paths)


def _key(uri: str) -> str:
    path = file_of(uri)
    return uri if path is None else str(path)
