"""Merges a snippet into its file: without a model, and deterministically.

1. Lines of the snippet are matched with lines of the original by the best alignment (`alignment`).
2. Every run of lines between two markers gets a place, or several if that is ambiguous (`placing`).
3. The result must parse as well as the original, and define nothing twice.

A wrong merge is worse than none: if several results remain, the original is returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice, product
from typing import Final

from calomel.suggest.apply.alignment import Likeness, align
from calomel.suggest.apply.placing import Pairs, Places, Reading, splice
from calomel.suggest.apply.snippet import read_snippet
from calomel.suggest.apply.source import Source, dialects, grammar_for, read_source
from calomel.suggest.edit import with_line_ends_of

NO_PLACE: Final = "The update could not be placed in the original code; the original code is returned."
TOO_LARGE: Final = "The original code and the update are too long to be compared; the original code is returned."
BREAKS: Final = (
    "The update would make syntax errors that the original code does not have; the original code is returned."
)
UNDECIDED: Final = "The update fits more than one place in the original code; the original code is returned."


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge.

    Attributes:
        text: the merged file; the original if the merge is not certain.
        warning: why it is not certain; quotes nothing.
    """

    text: str
    warning: str | None = None


# Limit of snippet lines times original lines.
_MOST_CELLS: Final = 4_000_000
_MOST_LINES: Final = 50_000
# Characters; nobody writes such lines by hand, and processing one would block all other requests.
_LONGEST_LINE: Final = 100_000
# A snippet with at least this share of the file is the whole file.
_WHOLE: Final = 0.5
_WHOLE_WITHOUT_DEFINITIONS: Final = 0.7
# Limits of the alignments and texts that are tried.
_MOST_ALIGNMENTS: Final = 7
_MOST_TRIED: Final = 16
_BOM: Final = "\ufeff"


def merge(original: str, snippet: str) -> Merged:
    """Merge `snippet`, which has markers for what stays, into `original`, the whole file."""
    text, update = original.removeprefix(_BOM), snippet.removeprefix(_BOM)
    if not update.strip():
        return Merged(original, NO_PLACE)
    if _is_too_large(text) or _is_too_large(update):
        return Merged(original, TOO_LARGE)
    merged = _Merge(text, update).merged()
    return replace(merged, text=original[: len(original) - len(text)] + merged.text)


def _is_too_large(text: str) -> bool:
    lines = text.split("\n")
    return len(lines) > _MOST_LINES or any(len(line) > _LONGEST_LINE for line in lines)


class _Merge:
    def __init__(self, text: str, update: str) -> None:
        self._text = text
        self._grammar = grammar_for(text if text.strip() else update)
        self._original = read_source(text, self._grammar)
        self._snippet, self._runs = read_snippet(update, self._original, self._grammar)
        self._allowed = _definitions(self._original) | _definitions(self._snippet)
        # Whether one of the texts had more syntax errors than the file.
        self._broken = False

    def merged(self) -> Merged:
        original, snippet = self._original, self._snippet
        if not snippet.left_out and self._is_whole():
            return self._replaced()
        if len(snippet.lines) * len(original.lines) > _MOST_CELLS:
            return Merged(self._text, TOO_LARGE)
        tried = tuple(islice(self._texts(), _MOST_TRIED + 1))
        texts = tuple(filter(self._is_sound, tried)) if len(tried) <= _MOST_TRIED else ()
        if texts and texts == tried[:1]:
            # The likeliest reading, and no other sound one.
            return Merged(texts[0])
        return Merged(self._text, UNDECIDED if texts else BREAKS if self._broken else NO_PLACE)

    def _replaced(self) -> Merged:
        """Replace the file by a snippet that is all of it; a file of comments only has no language to check by."""
        text = _as_file(self._text, "".join(self._snippet.lines))
        if not all(map(self._original.is_comment, self._original.filled())):
            self._is_sound(text)
        return Merged(self._text, BREAKS) if self._broken else Merged(text)

    def _is_whole(self) -> bool:
        """Whether a snippet without markers is the whole file."""
        original, snippet = self._original, self._snippet
        ours, theirs = (Counter(each.keys[at] for at in each.filled()) for each in (snippet, original))
        if not theirs:
            return True
        share = (ours & theirs).total() / theirs.total()
        names = {name for at, name in original.names.items() if original.defines(at)}
        least = _WHOLE if names else _WHOLE_WITHOUT_DEFINITIONS
        return share >= least and names <= set(snippet.names.values())

    def _is_sound(self, text: str) -> bool:
        """Whether a text parses no worse than the original, and defines nothing twice that was defined once."""
        merged, most = read_source(text, self._grammar), self._original.errors
        # A grammar other than the one found for the original may parse it.
        if merged.errors > most and all(read_source(text, each).errors for each in dialects(self._grammar)):
            self._broken = True
            return False
        return all(count <= max(1, self._allowed[key]) for key, count in _definitions(merged).items())

    def _texts(self) -> Iterator[str]:
        """The possible results of the merge, likeliest first, without duplicates."""
        likeness = Likeness(self._snippet, self._original)
        found = set()
        for pairs in islice(self._alignments(likeness), _MOST_ALIGNMENTS):
            readings = self._readings(Places(self._snippet, self._original, likeness, pairs))
            for pieces in map(chain.from_iterable, product(*readings)):
                merged = splice(self._original, self._snippet, pieces)
                if merged is not None and merged not in found:
                    found.add(merged)
                    yield merged

    def _alignments(self, likeness: Likeness) -> Iterator[Pairs]:
        """The pairs of the best alignment, and of equally good ones that place the edge of a run elsewhere."""
        lines = [-1]
        for run in self._runs:
            lines += [*range(run.start, run.end), -1]
        items = [None if line < 0 else likeness.weights[line] for line in lines]

        def aligned(at: int = 0, weights: dict[int, float] | None = None) -> tuple[Pairs, dict[int, list[int]]]:
            pairs, others = align([*items[:at], weights, *items[at + 1 :]], len(self._original.lines))
            by_line = dict(zip(lines, pairs, strict=True))
            return [by_line.get(line) for line in range(len(self._snippet.lines))], others

        best, others = aligned()
        yield best
        edges: set[int] = set()
        for run in self._runs:
            matched = [line for line in self._snippet.filled(run.start, run.end) if best[line] is not None]
            edges.update(matched[:1] + matched[-1:])
        for number, others_of in others.items():
            for at in others_of if lines[number] in edges else ():
                yield aligned(number, {at: likeness.weights[lines[number]][at]})[0]

    def _readings(self, places: Places) -> list[list[Reading]]:
        """The readings of each run; empty if one of them has no place."""
        matches = [places.matches(run) for run in self._runs]
        if not any(matches) and not self._snippet.left_out:
            # No line of the file and no marker: nothing shows that the snippet is code at all.
            return [[]]
        found: list[list[Reading]] = []
        low, last = 0, len(self._runs) - 1
        for number, run in enumerate(self._runs):
            high = next((after[0][1] for after in matches[number + 1 :] if after), len(self._original.lines))
            if matches[number]:
                found.append(places.anchored(run, low, high))
                low = max(low, found[-1][0][-1].end)
            else:
                first, final = number == 0 and not run.marked_before, number == last and not run.marked_after
                found.append(places.free(run, low, high, first=first, final=final))
        return found


def _definitions(source: Source) -> Counter[tuple[str, ...]]:
    """How often each definition occurs, by the enclosing definitions and its name."""
    found: Counter[tuple[str, ...]] = Counter()
    for line, name in source.names.items():
        if source.defines(line):
            found[*(source.identity(head) for head in source.path(line) if head in source.names), name] += 1
    return found


def _as_file(original: str, update: str) -> str:
    """A new whole file with the line ends of the old one, also at its end."""
    text = with_line_ends_of(update, original) if original else update
    if original.strip() and not original.endswith(("\n", "\r")):
        return text.rstrip("\r\n")
    if original.strip() and not text.endswith(("\n", "\r")):
        return text + with_line_ends_of("\n", original)
    return text
