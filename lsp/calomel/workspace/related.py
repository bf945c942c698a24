"""Code of other files that helps at a cursor: definitions, usages, imports, recent places, similar chunks.

The files were read before (`Indexer`); a query only looks up, ranks and cuts, within a fixed time. An answer stays
valid until the cursor leaves its surroundings, so that a keystroke does not change the prompt without need.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from calomel.code.definitions import Definition
from calomel.code.languages import grammar_of
from calomel.prompts.parts import Excerpt
from calomel.workspace.candidates import Passage, Question, from_index, imports_in, merge, resolve, snap, weigh
from calomel.workspace.documents import Document, TextChange, file_of
from calomel.workspace.history import Listener
from calomel.workspace.index import Index
from calomel.workspace.indexer import MOST_FILES, Indexer, ReportProgress, ShowMessage
from calomel.workspace.privacy import Privacy
from calomel.workspace.segment import family_of
from calomel.workspace.source_files import Watch, is_source
from calomel.workspace.syntax import SyntaxTrees

_MOST: Final = 24
# Within this many lines it is the same place.
_SAME: Final = 20


@dataclass(frozen=True, slots=True)
class RecentPlace:
    """Some lines of a document.

    Attributes:
        uri: of the document.
        start, end: lines, `end` excluded.
        edited: something was changed here.
    """

    uri: str
    start: int
    end: int
    edited: bool


class RecentPlaces:
    """A short list that follows the edits."""

    def __init__(self) -> None:
        self._places: list[RecentPlace] = []
        # Per document, how many new places there were.
        self._news = Counter[str]()

    def add(self, uri: str, start: int, end: int, *, edited: bool) -> None:
        """The user looks at these lines, or edits them."""
        for at, place in enumerate(self._places):
            if place.uri == uri and start <= place.end + _SAME and end >= place.start - _SAME:
                edited = place.edited or edited
                del self._places[at]
                break
        else:
            self._news[uri] += 1
        self._places = [RecentPlace(uri, start, end, edited), *self._places[: _MOST - 1]]

    def shift(self, uri: str, change: TextChange) -> None:
        """Lines above a place were added or removed."""
        inserted = change.inserted
        lines = inserted.count("\n") + inserted.count("\r") - inserted.count("\r\n")
        lines -= change.end_line - change.start_line
        if lines == 0:
            return
        for at, place in enumerate(self._places):
            if place.uri == uri and place.start > change.start_line:
                start = max(change.start_line, place.start + lines)
                self._places[at] = replace(place, start=start, end=max(start + 1, place.end + lines))

    def others(self, uri: str) -> tuple[RecentPlace, ...]:
        """The places in other documents, the newest first."""
        return tuple(place for place in self._places if place.uri != uri)

    def news_of_others(self, uri: str) -> int:
        """A number that grows when the user comes to a new place in another document."""
        return self._news.total() - self._news[uri]


# How many lines away a passage is searched after lines were added or removed above it.
_REACH: Final = 300
# If at least this share of its lines is still there, it is the same passage.
_STILL: Final = 0.6
_TELLING: Final = 8


def _found_again(document: Document, start: int, lines: list[str]) -> int | None:
    """Where the lines are in the document now."""
    if _alike(document.lines(start, start + len(lines)), lines):
        return start
    telling = next((at for at, line in enumerate(lines) if len(line.strip()) >= _TELLING), None)
    if telling is None:
        return None
    wanted = lines[telling].rstrip()
    first = max(0, start + telling - _REACH)
    around = document.lines(first, start + telling + _REACH)
    places = [first + at - telling for at, line in enumerate(around) if line.rstrip() == wanted]
    for at in sorted(places, key=lambda place: abs(place - start)):
        if at >= 0 and _alike(document.lines(at, at + len(lines)), lines):
            return at
    return None


def _alike(lines: list[str], wanted: list[str]) -> bool:
    same = sum(one.rstrip() == other.rstrip() for one, other in zip(lines, wanted, strict=False))
    return same >= _STILL * len(wanted)


# How many lines the cursor may move, within its function or outside any, before other code matters.
_WITHIN: Final = 60
_OUTSIDE: Final = 30
# Between two functions, or while an unfinished statement hides the function from the parser.
_BESIDE: Final = 3
# How old an answer must be before a better one may replace it, while the index grows, and after that.
_WHILE_GROWING: Final = 5.0
_SETTLED: Final = 30.0
# An answer that ran out of time is retried after this.
_UNFINISHED: Final = 1.0


@dataclass(slots=True)
class CachedExcerpts:
    """One answer, and the state in which it was made.

    Attributes:
        taken: the index's lines in the excerpts, as path, first line and lines: the answer is stale once they change.
        scopes: kinds and names around the cursor.
        line: of the cursor; follows edits above it.
        elsewhere: counts what the user did in other documents.
        whole: everything was queried within the time.
    """

    excerpts: tuple[Excerpt, ...]
    taken: list[tuple[str, int, list[str]]]
    scopes: tuple[tuple[str, str], ...]
    line: int
    time: float
    generation: int
    complete: bool
    elsewhere: tuple[int, int]
    whole: bool

    def stands(self, scopes: tuple[tuple[str, str], ...], line: int) -> bool:
        """Whether the cursor is still where the answer was made for."""
        distance = abs(line - self.line)
        if distance <= _BESIDE:
            return True
        return scopes == self.scopes and distance <= (_WITHIN if scopes else _OUTSIDE)

    def is_current(self, index: Index, now: float, elsewhere: tuple[int, int], *, complete: bool) -> bool:
        """Whether the files are still the same, as far as it matters."""
        age = now - self.time
        unfinished = not self.whole and age >= _UNFINISHED
        if elsewhere != self.elsewhere or unfinished or (complete and not self.complete):
            return False
        if self.generation == index.generation:
            return True
        if age >= (_SETTLED if complete else _WHILE_GROWING):
            return False
        # Other changes are considered only when the answer has become old.
        return all(index.lines(path, start, start + len(lines)) == lines for path, start, lines in self.taken)


def keys(scopes: Sequence[Definition]) -> tuple[tuple[str, str], ...]:
    """What identifies the scopes while the text in and above them changes."""
    return tuple((scope.kind, scope.name) for scope in scopes if scope.kind != "block")


def in_order(candidates: Sequence[tuple[float, Excerpt]], before: CachedExcerpts | None) -> tuple[Excerpt, ...]:
    """The best last; but those of the previous answer stay in front, in order, since the model has read them."""
    ranked = [each for _, each in sorted(candidates, key=lambda pair: (pair[0], pair[1].path, pair[1].start_line))]
    stayed = [each for each in (() if before is None else before.excerpts) if each in ranked]
    return (*stayed, *(each for each in ranked if each not in stayed))


# Lines around the cursor that similar code is searched with.
_NEARBY: Final = 20
# Lines around a place that was edited or looked at.
_AROUND: Final = 12
# Each older recent place counts this much less.
_OLDER: Final = 0.9
_ONLY_VIEWED: Final = 0.8
_LIMIT: Final = 32


class Related(Listener):
    """A listener of the workspace that finds related code. Used from one thread; reads files in another."""

    def __init__(
        self,
        syntax: SyntaxTrees,
        privacy: Privacy | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        message: ShowMessage | None = None,
        watch: bool = True,
    ) -> None:
        """`message` is called from other threads, with messages for the user."""
        self.index = Index()
        self._syntax = syntax
        self._privacy = privacy
        self._clock = clock
        self.indexer = Indexer(self.index, privacy, message)
        self._watch = Watch(self.refresh, privacy, message) if watch else None
        self._recent = RecentPlaces()
        # Open documents that may be shown, by absolute path, or by uri if they have none.
        self._documents: dict[str, Document] = {}
        # Those with unsaved text, and those whose text the index holds.
        self._unsaved: dict[str, Document] = {}
        self._held: set[str] = set()
        self._answers: dict[str, CachedExcerpts] = {}
        # Up to which revision of a document its changes were taken in.
        self._revisions: dict[str, int] = {}

    def start(
        self, folders: Sequence[Path], progress: ReportProgress | None = None, *, most_files: int = MOST_FILES
    ) -> None:
        """Index the folders in the background, and watch them; call it again for other folders, or none.

        `progress` gets the numbers of files read and found, once more when all are read. It is called from another
        thread. `most_files` limits the index.
        """
        self.indexer.start(folders, progress, most_files=most_files)
        if self._watch is not None:
            self._watch.start(folders)

    def stop(self) -> None:
        """End the background work; may be called twice."""
        if self._watch is not None:
            self._watch.stop()
        self.indexer.stop()

    def excerpts(self, document: Document, offset: int, *, budget_seconds: float = 0.012) -> tuple[Excerpt, ...]:
        """What helps at the cursor, the best last, as found within the time, which one step may exceed."""
        self._follow()
        now = self._clock()
        line = document.line_of(offset)
        scopes = keys(self._syntax.scopes(document, offset))
        # What the user did in other documents, as numbers that only grow.
        revisions = sum(each.revision for each in self._documents.values() if each.uri != document.uri)
        elsewhere = self._recent.news_of_others(document.uri), revisions
        complete = self.indexer.ready
        before = self._answers.get(document.uri)
        if (
            before is not None
            and before.stands(scopes, line)
            and before.is_current(self.index, now, elsewhere, complete=complete)
        ):
            return before.excerpts
        self._recent.add(document.uri, line, line + 1, edited=False)
        self._give_unsaved(document)
        deadline = now + budget_seconds
        generation = self.index.generation
        results, taken = self._find(document, offset, lambda: self._clock() > deadline)
        answer = CachedExcerpts(
            in_order(results, before), taken, scopes, line, now, generation, complete, elsewhere,
            whole=self._clock() <= deadline,
        )  # fmt: skip
        self._answers[document.uri] = answer
        return answer.excerpts

    def refresh(self, paths: Sequence[Path]) -> None:
        """These files were created, changed or deleted."""
        if any(path.name == ".gitignore" for path in paths):
            self.indexer.rescan()
        self.indexer.refresh(paths)

    def opened(self, document: Document) -> None:
        """The document was opened."""
        key = _key(document.uri)
        path = file_of(document.uri)
        allowed = self._privacy is None or path is None or self._privacy.allowed(path).allowed
        self._answers.pop(document.uri, None)
        if allowed:
            self._documents[key], self._revisions[key] = document, document.revision
        else:
            self._documents.pop(key, None)

    def saved(self, document: Document) -> None:
        """The document was written: its file is read again."""
        self._follow()
        self._back_to_disk(document)

    def closed(self, document: Document) -> None:
        """The document was closed: its file on disk counts again."""
        self._follow()
        self._answers.pop(document.uri, None)
        self._documents.pop(_key(document.uri), None)
        self._back_to_disk(document)

    def withdrawn(self) -> None:
        """Files that were read may be excluded now: all are looked at again."""
        self._answers.clear()
        self.indexer.rescan()

    def _follow(self) -> None:
        """Take in what was changed in documents since the last question: those places count as recent."""
        for key, document in self._documents.items():
            revision = self._revisions.get(key, 0)
            if revision == document.revision:
                continue
            self._revisions[key] = document.revision
            answer = self._answers.get(document.uri)
            for each in document.since(revision) or [document.latest]:
                change = each.change
                line, new = change.start_line, change.inserted.count("\n")
                self._recent.shift(document.uri, change)
                self._recent.add(document.uri, line, line + 1 + new, edited=True)
                if answer is not None and line < answer.line:
                    answer.line += new - (change.end_line - line)
            if is_source(Path(key)):
                self._unsaved[key] = document

    def _find(
        self, document: Document, offset: int, late: Callable[[], bool]
    ) -> tuple[list[tuple[float, Excerpt]], list[tuple[str, int, list[str]]]]:
        """Excerpts with scores, comparable only within one answer, and the lines they were made of."""
        indexed = map(self._live, from_index(self.index, self._question(document, offset), late))
        candidates = [*self._recent_places(document.uri), *(each for each in indexed if each is not None)]
        results: list[tuple[float, Excerpt]] = []
        taken: list[tuple[str, int, list[str]]] = []
        texts: set[str] = set()
        for each in merge(candidates):
            name, lines = self._read(each)
            text = "".join(lines)
            bare = text.strip()
            if not bare or bare in texts or each.word not in text:
                continue
            texts.add(bare)
            if each.path not in self._documents:
                taken.append((each.path, each.start, lines))
            # The end of a file may lack its line end; an excerpt has whole lines.
            whole = text if text.endswith(("\n", "\r")) else text + "\n"
            results.append((round(each.score, 6), Excerpt(name, each.start, whole)))
            if len(results) == _LIMIT or late():
                break
        return results, taken

    def _question(self, document: Document, offset: int) -> Question:
        path = file_of(document.uri)
        grammar = grammar_of(document.language_id, document.path)
        name = str(path) if path is not None else document.path or ""
        family = family_of(name if grammar is None else f"x{grammar.suffixes[0]}")
        imported: dict[str, None] = {}
        for each in imports_in(document.text, family) if path is not None else ():
            imported.update(dict.fromkeys(resolve(each, str(path), self.index.named)))
        imported.pop(name, None)
        line = document.line_of(offset)
        return Question(
            path=str(path) if path is not None else None,
            family=family,
            names=self._syntax.identifiers_near(document, offset),
            imported=tuple(imported),
            nearby="".join(document.lines(line - _NEARBY, line + _NEARBY + 1)),
        )

    def _recent_places(self, uri: str) -> Iterator[Passage]:
        for rank, place in enumerate(self._recent.others(uri)):
            key = _key(place.uri)
            document = self._documents.get(key)
            start, end = place.start - _AROUND, place.end + _AROUND
            if document is not None:
                start, end = snap(self._syntax.block_starts(document), start, min(end, document.line_count))
            elif key not in self.index:
                continue
            part = _OLDER**rank * (1.0 if place.edited else _ONLY_VIEWED)
            yield Passage(key, max(0, start), end, "recent", weigh("recent", part))

    def _live(self, each: Passage) -> Passage | None:
        """A candidate from the index, moved to its present lines if the document is open; None if they are gone."""
        document = self._documents.get(each.path)
        if document is None:
            return each
        lines = self.index.lines(each.path, each.start, each.end)
        at = _found_again(document, each.start, lines) if lines else None
        return None if at is None else replace(each, start=at, end=min(at + len(lines), document.line_count))

    def version(self, path: Path) -> tuple[str, tuple[tuple[int, int], ...]] | None:
        """The text of an indexed file as it was read, and the secrets in it; None if it is not in the index."""
        place = self.index.place(str(path))
        return None if place is None else place.segment.version(place.number)

    def _read(self, each: Passage) -> tuple[str, list[str]]:
        """A file's name in prompts, and the lines of a candidate."""
        document, place = self._documents.get(each.path), self.index.place(each.path)
        if document is not None:
            return document.path or each.path.rpartition("/")[2], document.lines(each.start, each.end)
        if place is None:
            return "", []
        return place.file.name, place.segment.lines(place.number, each.start, each.end)

    def _give_unsaved(self, current: Document) -> None:
        """Give the index what was typed in other documents: it is part of the workspace too."""
        for key, document in tuple(self._unsaved.items()):
            if document is not current:
                del self._unsaved[key]
                self._held.add(key)
                self.indexer.hold(Path(key), document.text)

    def _back_to_disk(self, document: Document) -> None:
        key = _key(document.uri)
        self._unsaved.pop(key, None)
        path = file_of(document.uri)
        if path is None:
            return
        if key in self._held:
            self._held.discard(key)
            self.indexer.release(path)
        else:
            self.indexer.refresh((path,))


def _key(uri: str) -> str:
    path = file_of(uri)
    return uri if path is None else str(path)
