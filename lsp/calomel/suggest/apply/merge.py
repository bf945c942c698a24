"""Puts a snippet into the file that it was written for: without a model, and always the same way.

1. Lines of the snippet that are lines of the original are found, best in all (`alignment`, `likeness`).
2. Every run of lines between two markers gets a place, or several where it is not clear (`anchored`, `free`).
3. What comes of it must parse as well as the original, and define nothing twice (`sound`).

A wrong merge is worse than none: where several texts are left, the caller may let a model choose among them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from calomel.prompts.parts import EditRegion, Excerpt, PromptParts
from calomel.suggest.apply.alignment import Alignment, Likeness, Weights, align
from calomel.suggest.apply.anchored import Anchored, Reading, splice
from calomel.suggest.apply.free import Free
from calomel.suggest.apply.snippet import Run, Snippet, divided, read_snippet
from calomel.suggest.apply.source import Source, dialects, grammar_for, read_source
from calomel.suggest.completer import Candidate, CompleteAnswer, CompleteRequest, Draft, ModelInfo
from calomel.suggest.edit import split_lines, with_line_ends_of
from calomel.suggest.in_process import Fills, answer
from calomel.workspace.languages import Grammar

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
        text: the merged file; the original where the merge is not sure.
        sure: whether `text` is what the snippet says.
        ambiguous: otherwise, the files that it may mean, likeliest first; none where there is no place at all.
        warning: what a person should know; quotes nothing.
    """

    text: str
    sure: bool
    ambiguous: tuple[str, ...] = ()
    warning: str | None = None


class Sound:
    """Judges texts that came of merging one snippet into one file.

    Args:
        original: the file.
        snippet: what should become of it.
        grammar: of both, if known.

    Attributes:
        broken: how many texts so far had more syntax errors than the file.
    """

    def __init__(self, original: Source, snippet: Source, grammar: Grammar | None) -> None:
        self._original = original
        self._grammar = grammar
        self._allowed = _definitions(original) | _definitions(snippet)
        self.broken = 0

    def sound(self, text: str) -> bool:
        """Whether it is no worse to parse than the original, and defines nothing twice that was defined once."""
        merged = read_source(text, self._grammar)
        if merged.errors > self._original.errors and not self._other_dialect(text):
            self.broken += 1
            return False
        return all(count <= max(1, self._allowed[key]) for key, count in _definitions(merged).items())

    def _other_dialect(self, text: str) -> bool:
        """Whether another grammar than the one that the file alone suggested reads it."""
        return any(not read_source(text, grammar).errors for grammar in dialects(self._grammar))


def _definitions(source: Source) -> Counter[tuple[str, ...]]:
    """How often each definition is there, by the definitions around it and its name."""
    found: Counter[tuple[str, ...]] = Counter()
    for line, name in source.names.items():
        if source.ends[line] > line + 1:
            path = (source.identity(head) for head in source.path(line) if head in source.names)
            found[*path, name] += 1
    return found


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


# The best text must be so many nats likelier than the next; a single one, than leaving the file as it is.
SURE: Final = 1.0
# Of the file around the places in question, so much is shown on either side.
_AROUND: Final = 6000
_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Decided:
    """A merge, and what it took.

    Attributes:
        text: the merged file; the original where nothing was decided.
        warning: why nothing was decided.
        answers: of the model, when it was asked.
    """

    text: str
    warning: str | None = None
    answers: tuple[CompleteAnswer, ...] = field(default=(), repr=False)


async def decide(
    filler: Fills, info: ModelInfo, merged: Merged, original: str, update: str, *, mask: Callable[[str], str]
) -> Decided:
    """Ask the model where `merged` is ambiguous; cancelling the task cancels the work.

    Args:
        filler: the model.
        info: what it can do.
        merged: what came of merging without it.
        original: the file.
        update: the snippet.
        mask: hides secrets and keeps lengths.

    Raises:
        EngineError: the engine refused or failed.
    """
    if merged.sure or not merged.ambiguous or "edit" not in info.kinds:
        return Decided(merged.text, merged.warning)
    request = await asyncio.to_thread(_request, info, original, update, merged.ambiguous, mask)
    if request is None:
        return Decided(merged.text, merged.warning)
    answered = await answer(filler, info, request)
    chosen = _chosen(answered.candidates, len(merged.ambiguous))
    if chosen is None:
        return Decided(merged.text, merged.warning, (answered,))
    return Decided(merged.ambiguous[chosen], None, (answered,))


def _request(
    info: ModelInfo, original: str, update: str, texts: Sequence[str], mask: Callable[[str], str]
) -> CompleteRequest | None:
    """The question; None when the texts differ over more than the model may rewrite at once."""
    whole = [split_lines(text) for text in (original, *texts)]
    head = _common(whole)
    tail = _common([lines[head:][::-1] for lines in whole])
    start = sum(map(len, whole[0][:head]))
    end = len(original) - sum(map(len, whole[0][len(whole[0]) - tail :]))
    cut = len(original) - end
    regions = [mask(text)[start : len(text) - cut] for text in (original, *texts)]
    if max(map(len, regions)) > info.region.characters:
        return None
    masked = mask(original)
    parts = PromptParts(
        related=(Excerpt("update", 0, mask(update)),),
        prefix=masked[max(0, start - _AROUND) : start],
        suffix=masked[end : end + _AROUND],
        region=EditRegion(regions[0], None),
    )
    drafts = tuple(Draft(text, _maker(number)) for number, text in enumerate(regions[1:]))
    return CompleteRequest(
        kind="edit",
        parts=parts,
        max_tokens=info.region.characters,
        max_context=info.region.context or info.default_context,
        deadline=_SECONDS,
        drafts=drafts,
        own=False,
    )


def _chosen(candidates: Sequence[Candidate], count: int) -> int | None:
    """Which text is clearly the likeliest; None when none is."""
    scores = {each.maker: each.log_prob for each in candidates if each.log_prob is not None}
    keep = next((each.keep_log_prob for each in candidates if each.keep_log_prob is not None), None)
    ranked = sorted(
        ((scores[_maker(number)], number) for number in range(count) if _maker(number) in scores), reverse=True
    )
    if len(ranked) < count or keep is None:
        return None
    second = ranked[1][0] if count > 1 else keep
    return ranked[0][1] if ranked[0][0] - second >= SURE else None


def _maker(number: int) -> str:
    return f"apply{number}"


def _common(texts: Sequence[Sequence[str]]) -> int:
    """How many items all begin with."""
    found = 0
    for items in zip(*texts, strict=False):
        if any(item != items[0] for item in items):
            break
        found += 1
    return found
