"""Held-out next edits, asked as an editor asks, and judged."""

from __future__ import annotations

from collections.abc import Sequence

from calomel.bench.asked_moments import Contenders, answer, proposals
from calomel.bench.failures.edit_case import Block, EditCase
from calomel.bench.failures.edit_kinds import as_hole, edit_kind
from calomel.bench.failures.verdict import TAIL_CHARACTERS, Verdict, saved_characters
from calomel.bench.failures.words import place_of
from calomel.bench.journal import Journal
from calomel.bench.moments import Moment
from calomel.bench.progress import Progress
from calomel.bench.watched_completer import WatchedCompleter


async def ask_moments(
    moments: Sequence[Moment], contenders: Contenders, journal: Journal, progress: Progress
) -> list[Verdict]:
    """Every moment once.

    Raises:
        SuiteError: the model was not there, or broke.
    """
    progress.phase("edits", len(moments))
    found = []
    for moment in moments:
        record = journal.get(f"edit|{moment.id}")
        if record is None:
            record = judged(await _asked(moment, contenders)).to_json()
            journal.put(f"edit|{moment.id}", record)
        found.append(Verdict.from_json(record))
        progress.step(moment.story.kind)
    return found


def judged(case: EditCase) -> Verdict:
    """What was said, as the lines that it is about."""
    moment = case.moment
    hole = as_hole(case)
    if hole is not None:
        truth, said = hole.truth, hole.answer
    else:
        truth, said = _told(case.wanted_blocks), _told(case.made_blocks)
    language = moment.story.language
    head = moment.text[: moment.cursor]
    return Verdict(
        key=moment.id,
        source="edits",
        row=moment.story.kind,
        language=language,
        place=place_of(head, language),
        kind=None if case.right else edit_kind(case),
        saved=_saved(moment),
        tail=head[-TAIL_CHARACTERS:],
        truth=truth,
        answer=None if case.result is None else said,
    )


async def _asked(moment: Moment, contenders: Contenders) -> EditCase:
    watched = WatchedCompleter(contenders.completer)
    room = contenders.room(moment, watched)
    _, result = await answer(moment, room)
    found = proposals(moment, room, watched)
    return EditCase(moment, result, tuple(text for texts in found.values() for text in texts))


def _saved(moment: Moment) -> int:
    """What the first change to come would have saved; deleting saves nothing."""
    return saved_characters(moment.coming[0].text) if moment.coming else 0


def _told(blocks: Sequence[Block]) -> str:
    return "".join(line for block in blocks[:1] for line in block.lines)
