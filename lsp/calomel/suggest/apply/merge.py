"""Puts a snippet into the file that it was written for: without a model, and always the same way.

1. Lines of the snippet that are lines of the original are found, best in all (`alignment`, `likeness`).
2. Every run of lines between two markers gets a place, or several where it is not clear (`anchored`, `free`).
3. What comes of it must parse as well as the original, and define nothing twice (`sound`).

A wrong merge is worse than none: where several texts are left, the caller may let a model choose among them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import Final

from calomel.suggest.apply.alignment import Alignment, Weights, align
from calomel.suggest.apply.anchored import Anchored
from calomel.suggest.apply.free import Free
from calomel.suggest.apply.grammars import grammar_for
from calomel.suggest.apply.likeness import Likeness
from calomel.suggest.apply.merged import BREAKS, NO_PLACE, TOO_LARGE, UNDECIDED, Merged
from calomel.suggest.apply.pieces import Reading
from calomel.suggest.apply.snippet import Run, Snippet, divided, read_snippet
from calomel.suggest.apply.sound import Sound
from calomel.suggest.apply.source import Source, read_source
from calomel.suggest.apply.splice import splice
from calomel.suggest.line_ends import with_line_ends_of
from calomel.workspace.languages import Grammar

MOST_AMBIGUOUS: Final = 8
# Lines of the snippet times lines of the original.
_MOST_CELLS: Final = 4_000_000
_MOST_LINES: Final = 50_000
# Characters: nobody writes such lines by hand, and what looks at one holds up all others.
_LONGEST_LINE: Final = 100_000
# A snippet that holds so much of the file is the file.
_WHOLE: Final = 0.5
_WHOLE_WITHOUT_DEFINITIONS: Final = 0.7
# Pairs of lines that are tried in other ways, and texts that are looked at, at most.
_OTHER_PAIRS: Final = 6
_MOST_TRIED: Final = 16
_BOM: Final = "\ufeff"


def merge(original: str, snippet: str, language_id: str | None = None, path: str | None = None) -> Merged:
    """Merge `snippet` into `original`.

    Args:
        original: the whole file.
        snippet: what should become of it, with markers for what stays.
        language_id: of the language server protocol; None: by the path, else by the text.
        path: of the file.
    """
    mark = _BOM if original.startswith(_BOM) else ""
    text, update = original.removeprefix(_BOM), snippet.removeprefix(_BOM)
    if not update.strip():
        return Merged(original, sure=False, warning=NO_PLACE)
    if any(_is_too_large(each) for each in (text, update)):
        return Merged(original, sure=False, warning=TOO_LARGE)
    merged = _merge(text, update, grammar_for(text if text.strip() else update, language_id, path))
    if not merged.sure:
        texts = tuple(mark + each for each in merged.ambiguous)
        return Merged(original, sure=False, ambiguous=texts, warning=UNDECIDED if texts else merged.warning)
    return Merged(mark + merged.text, sure=True, warning=merged.warning)


def _is_too_large(text: str) -> bool:
    if text.count("\n") > _MOST_LINES:
        return True
    return len(text) > _LONGEST_LINE and any(len(line) > _LONGEST_LINE for line in text.split("\n"))


@dataclass(frozen=True, slots=True)
class _Question:
    original: Source
    snippet: Snippet
    runs: tuple[Run, ...]
    grammar: Grammar | None
    likeness: Likeness

    def items(self, *, forced: tuple[int, int] | None = None) -> tuple[list[Weights | None], list[int]]:
        """What is aligned, and the line of the snippet of each; markers are -1."""
        items: list[Weights | None] = []
        lines: list[int] = []
        for run in self.runs:
            for line in range(run.start, run.end):
                weights = self.likeness.weights(line)
                if forced is not None and forced[0] == line:
                    weights = {forced[1]: weights.get(forced[1], 1.0)}
                items.append(weights)
                lines.append(line)
            items.append(None)
            lines.append(-1)
        return [None, *items], [-1, *lines]


def _merge(text: str, update: str, grammar: Grammar | None) -> Merged:
    original = read_source(text, grammar)
    snippet = read_snippet(update, original, grammar)
    if not snippet.runs:
        # Markers alone: everything stays.
        return Merged(text, sure=True)
    if not snippet.marked and _whole(original, snippet.source):
        return _replaced(original, snippet.source, grammar)
    runs = snippet.runs if snippet.marked else divided(snippet)
    if len(snippet.source.lines) * len(original.lines) > _MOST_CELLS:
        return Merged(text, sure=False, warning=TOO_LARGE)
    question = _Question(original, snippet, runs, grammar, Likeness(snippet.source, original))
    sound = Sound(original, snippet.source, grammar)
    texts, likeliest, complete = _texts(question, sound)
    if not texts or not complete or len(texts) > MOST_AMBIGUOUS:
        return Merged(text, sure=False, warning=BREAKS if sound.broken and not texts else NO_PLACE)
    if texts == likeliest:
        return Merged(texts[0], sure=True)
    return Merged(text, sure=False, ambiguous=tuple(texts))


def _replaced(original: Source, snippet: Source, grammar: Grammar | None) -> Merged:
    """A snippet that is the whole file; one that holds comments alone shows no language, and may become anything."""
    text = "".join(original.lines)
    merged = _as_file(text, "".join(snippet.lines))
    sound = Sound(original, snippet, grammar)
    if not all(original.is_comment(at) for at in original.filled(0, len(original.lines))):
        sound.sound(merged)
    if sound.broken:
        return Merged(text, sure=False, warning=BREAKS)
    return Merged(merged, sure=True)


def _texts(question: _Question, sound: Sound) -> tuple[list[str], list[str], bool]:
    """The texts that the snippet may mean, likeliest first; the best reading's alone; whether there are no more."""
    items, lines = question.items()
    alignment = align(items, len(question.original.lines))
    found: dict[str, bool] = {}
    for pairs in _alignments(question, alignment, lines):
        for combination in product(*(_readings(question, pairs) or [[]])):
            if len(found) == _MOST_TRIED:
                return _good(found), [], False
            pieces = [piece for reading in combination for piece in reading]
            merged = splice(question.original, question.snippet.source, pieces)
            if merged is not None and merged not in found:
                found[merged] = sound.sound(merged)
    return _good(found), _good(dict([*found.items()][:1])), True


def _good(found: dict[str, bool]) -> list[str]:
    return [text for text, good in found.items() if good]


def _alignments(question: _Question, alignment: Alignment, lines: list[int]) -> list[list[int | None]]:
    """The pairs of the best alignment, and of those that are as good and place the edge of a run elsewhere."""
    count = len(question.snippet.source.lines)

    def by_line(pairs: tuple[int | None, ...]) -> list[int | None]:
        found: list[int | None] = [None] * count
        for line, at in zip(lines, pairs, strict=True):
            if line >= 0:
                found[line] = at
        return found

    best = by_line(alignment.pairs)
    found = [best]
    edges: set[int] = set()
    for run in question.runs:
        matched = [line for line in question.snippet.source.filled(run.start, run.end) if best[line] is not None]
        edges.update(matched[:1] + matched[-1:])
    for number, others in alignment.others.items():
        if lines[number] in edges:
            for at in others:
                if len(found) > _OTHER_PAIRS:
                    return found
                forced, _ = question.items(forced=(lines[number], at))
                found.append(by_line(align(forced, len(question.original.lines)).pairs))
    return found


def _readings(question: _Question, pairs: list[int | None]) -> list[list[Reading]] | None:
    """What each run may mean; None when one of them has no place."""
    snippet, original = question.snippet.source, question.original
    anchored = Anchored(snippet, original, question.likeness, pairs)
    free = Free(snippet, original, question.likeness, pairs)
    matches = [anchored.matches(run) for run in question.runs]
    if not any(matches) and not question.snippet.marked:
        # Words without any line of the file, and without a marker: nothing says that they are code at all.
        return None
    found: list[list[Reading]] = []
    low = 0
    for number, run in enumerate(question.runs):
        high = next((after[0][1] for after in matches[number + 1 :] if after), len(original.lines))
        if matches[number]:
            readings = anchored.readings(run, low, high)
        else:
            first = number == 0 and not run.marked_before
            final = number == len(question.runs) - 1 and not run.marked_after
            readings = free.readings(run, low, high, first=first, final=final)
        if not readings:
            return None
        found.append(readings)
        if matches[number] and readings[0]:
            low = max(low, readings[0][-1].end)
    return found


def _whole(original: Source, snippet: Source) -> bool:
    """Whether a snippet without markers is the whole file."""
    filled = original.filled(0, len(original.lines))
    if not filled:
        return True
    ours = Counter(snippet.keys[at] for at in snippet.filled(0, len(snippet.lines)))
    theirs = Counter(original.keys[at] for at in filled)
    share = (ours & theirs).total() / theirs.total()
    names = {name for at, name in original.names.items() if original.ends[at] > at + 1}
    if names:
        return share >= _WHOLE and names <= set(snippet.names.values())
    return share >= _WHOLE_WITHOUT_DEFINITIONS


def _as_file(original: str, update: str) -> str:
    """A whole file in the line ends of the one before, and with its last line ended as there."""
    text = with_line_ends_of(update, original) if original else update
    if original.strip() and not original.endswith(("\n", "\r")):
        return text.rstrip("\r\n")
    if original.strip() and not text.endswith(("\n", "\r")):
        return text + with_line_ends_of("\n", original)
    return text
