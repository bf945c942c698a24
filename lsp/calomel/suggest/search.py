"""The search for the next edit: at the cursor, then where the last edits probably continue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from rapidfuzz import fuzz

from calomel.code.budget import SpentError, check
from calomel.code.lines import Rows
from calomel.code.names import COMMON, Names
from calomel.code.tokens import changes, tokens, words
from calomel.infer.fitting import is_half_word, is_inert, line_rest
from calomel.prompts.parts import Hunk
from calomel.suggest.candidates import CandidateSource
from calomel.suggest.drafts.evidence import EditDraft, LineEdit, evidence
from calomel.suggest.drafts.propose import drafts
from calomel.suggest.drafts.rename import renamed_words
from calomel.suggest.judging import Answered, Judged, better, shows
from calomel.suggest.recent import standing
from calomel.suggest.silence import SilenceReason
from calomel.suggest.snapshot import Diagnostic, Snapshot

_SHORTEST_NAME: Final = 3
_ALIKE: Final = 80.0
_LOCATIONS: Final = 8
_HUNKS: Final = 3
# Lines are compared one by one; in a longer file, only those nearest to the cursor.
_COMPARED_LINES: Final = 4000


class Why(StrEnum):
    """What makes a place likely, likeliest first."""

    SAME_TEXT = "same_text"
    DIAGNOSTIC = "diagnostic"
    SAME_NAME = "same_name"
    ALIKE = "alike"


_WEIGHTS: Final = {Why.SAME_TEXT: 1.0, Why.DIAGNOSTIC: 0.8, Why.SAME_NAME: 0.6, Why.ALIKE: 0.5}


@dataclass(frozen=True, slots=True)
class Location:
    """A place where the last edit may continue.

    Attributes:
        start: offset of what was found.
        row: its line.
        why: what makes it likely.
    """

    start: int
    row: int
    why: Why


def continuations(
    text: str,
    hunks: Sequence[Hunk],
    cursor: int,
    diagnostics: Iterable[Diagnostic] = (),
    names: Names = COMMON,
) -> tuple[Location, ...]:
    """Places outside of the last edit itself, likeliest first, then nearest to the cursor; one for each line.

    Args:
        text: the document's.
        hunks: its own last edits, newest last.
        cursor: offset.
        diagnostics: problems that the editor shows.
        names: of the document's language.
    """
    rows = Rows(text, names)
    row = rows.row(cursor)
    # A new line changes no old one, so it tells nothing about similar lines.
    results = [
        place
        for edit in evidence(rows, standing(text, hunks, None)[-_HUNKS:]).edits[:_HUNKS]
        for place in (*_renamed(rows, edit), *_alike(rows, edit, row))
    ]
    results += [
        Location(problem.start, rows.row(problem.start), Why.DIAGNOSTIC)
        for problem in diagnostics
        if 0 <= problem.start <= problem.end <= len(text)
    ]
    best: dict[int, Location] = {}
    for location in sorted(results, key=lambda place: (-_WEIGHTS[place.why], place.start)):
        best.setdefault(location.row, location)
    below_first = sorted(best.values(), key=lambda place: (-_WEIGHTS[place.why], abs(place.row - row), place.row < row))
    return tuple(below_first[:_LOCATIONS])


def _renamed(rows: Rows, edit: LineEdit) -> Iterator[Location]:
    """The places of names that an edit replaced by others."""
    for old, _ in renamed_words(edit.old, edit.new, rows.names):
        for match in rows.uses(old) if len(old) >= _SHORTEST_NAME else ():
            yield Location(match.start(), rows.row(match.start()), Why.SAME_TEXT)


def _alike(rows: Rows, edit: LineEdit, row: int) -> Iterator[Location]:
    """Lines that use the name before the edited place, or that look like the edited line before the edit."""
    name = _name_before(edit)
    low = max(0, row - _COMPARED_LINES // 2)
    for at, line in enumerate(rows.lines[low : low + _COMPARED_LINES], low):
        check()
        if at == edit.row or not line.strip() or line == edit.new:
            continue
        if name and any(rows.names.uses(line, name)):
            yield Location(rows.start(at), at, Why.SAME_NAME)
        elif fuzz.ratio(edit.old.strip(), line.strip(), score_cutoff=_ALIKE):
            yield Location(rows.start(at), at, Why.ALIKE)


def _name_before(edit: LineEdit) -> str | None:
    """The name whose list an edit is in: `connect` in `connect(host, |port)`."""
    old = tokens(edit.old)
    first = next(iter(changes(old, tokens(edit.new)))).first
    called, opening, _ = "".join(token.text for token in old[:first]).rpartition("(")
    long = [name for name in words(called) if len(name) >= _SHORTEST_NAME]
    return long[-1] if long and opening else None


# How many places elsewhere in the file one question looks at.
_PLACES: Final = 2
_AGREED: Final = 3


async def next_edits(source: CandidateSource, snapshot: Snapshot) -> list[Answered]:
    """What is worth offering, best first; else what was held back, or why there is nothing.

    At the cursor, then where the last edits probably continue.
    """
    proposed: Sequence[EditDraft] = ()
    places: Sequence[Location] = ()
    with suppress(SpentError):  # the model may know more
        proposed, places = await source.aside(look, snapshot)
    if "edit" not in snapshot.info.kinds:
        return [await agreed(source, snapshot, proposed)]
    within = snapshot.within
    low, high = within or (0, len(snapshot.text))
    regions: list[tuple[int, int]] = []
    answers: list[Answered] = []
    best: Answered | None = None
    for place in _likely(snapshot.situation.offset, proposed, places, low, high):
        if any(start <= place < end for start, end in regions):
            continue
        situation = replace(snapshot.situation, offset=place)
        bounds = snapshot.region.extended() if snapshot.extended and not regions else snapshot.region
        start, end = snapshot.region_at(place, bounds.within(bounds.context or snapshot.context_tokens))
        regions.append((max(start, low), min(end, high)))
        answered = await source.rewrite(snapshot, situation, regions[-1], proposed)
        best = better(best, answered)
        if isinstance(answered, Judged) and answered.reason is None and _apart(answered, answers):
            answers.append(answered)
        if len(regions) > _PLACES or (answers and within is None):
            break
    if snapshot.finishing and not answers and await _is_unfinished(source, snapshot):
        finished = await source.finish(snapshot)
        # If it is held back, a rewrite that is held back tells more.
        if shows(finished) or not isinstance(best, Judged):
            best = better(best, finished)
    return answers or [best or SilenceReason.NO_CHANGE]


def look(snapshot: Snapshot) -> tuple[Sequence[EditDraft], Sequence[Location]]:
    """Texts for the model to judge, best first; and where the last edits may continue, likeliest first."""
    if snapshot.drafts is not None:
        return snapshot.drafts, ()
    cursor, names = snapshot.situation.offset, snapshot.names
    places = continuations(snapshot.text, snapshot.own, cursor, snapshot.diagnostics, names)
    return drafts(snapshot.situation.text, snapshot.hunks, cursor, snapshot.path, names), places


async def agreed(source: CandidateSource, snapshot: Snapshot, proposed: Sequence[EditDraft]) -> Answered:
    """A draft confirmed by a model that only fills holes: it writes the draft's text, or fills its hole, by itself."""
    held: Answered = SilenceReason.NOT_TRAINED_FOR_EDITS
    for draft in proposed[:_AGREED]:
        answer = await source.put(snapshot, draft)
        if isinstance(answer, Judged):
            held = better(held, answer)
            if answer.reason is None:
                break
    return held


async def _is_unfinished(source: CandidateSource, snapshot: Snapshot) -> bool:
    try:
        return await source.aside(unfinished, snapshot)
    except SpentError:
        return False


def unfinished(snapshot: Snapshot) -> bool:
    """Whether the edit at the cursor stops within a word or at a syntax error."""
    text, at = snapshot.text, snapshot.situation.offset
    errors = snapshot.errors(at, at, "")
    broken = errors is not None and errors[0] > 0 and is_inert(line_rest(text[at:]))
    return broken or is_half_word(text[:at], text[at:])


def _likely(
    cursor: int, proposed: Sequence[EditDraft], places: Sequence[Location], low: int, high: int
) -> Iterator[int]:
    """Where to look, likeliest first: drafts, which know the change, before places, where something may be to do."""
    if low <= cursor <= high:
        yield cursor
    yield from (draft.start for draft in proposed if low <= draft.start and draft.end <= high)
    yield from (place.start for place in places if low <= place.start <= high)


def _apart(decision: Judged, answers: Sequence[Answered]) -> bool:
    """Whether a decision touches none of those already found."""
    others = [edit for each in answers if isinstance(each, Judged) for edit in each.edits]
    return all(edit.end < other.start or other.end < edit.start for edit in decision.edits for other in others)
