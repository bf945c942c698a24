"""Where a next edit is looked for: at the cursor, then where the last edits probably go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from calomel.prompts.parts import Hunk, region_around
from calomel.suggest.completer import ModelInfo
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.drafts.propose import drafts
from calomel.suggest.judging import Answered, Found, Held
from calomel.suggest.locations import Location, Why, continuations
from calomel.suggest.pace import Run
from calomel.suggest.question import Diagnostic, Question
from calomel.suggest.session import Session
from calomel.suggest.silence import SilenceReason
from calomel.workspace.history import Origin, prompt_path

# Places elsewhere in the file that one question looks at.
_PLACES: Final = 2
_RENAMES: Final = 3
# Lines of other documents, and other documents, that imports are looked for in.
_HEAD: Final = 80
_HEADS: Final = 8
# What stays so when the model is asked about another place.
_FINAL: Final = frozenset({SilenceReason.STALE})


async def look_around(
    session: Session,
    run: Run,
    question: Question,
    info: ModelInfo,
    diagnostics: Sequence[Diagnostic],
) -> Answered:
    """The first place with something worth offering; if there is none, what was held back, or why there is nothing."""
    uri = run.owner.uri
    situation = question.situation
    hunks = () if _undone(session, uri) else last_edits(session, uri)
    own = own_hunks(session, uri, hunks)
    places = continuations(question.text, own, situation.offset, diagnostics)
    if "edit" not in info.kinds:
        return await _renames(session, run, question, places)
    masked = _masked(question, hunks)
    question = replace(question, making=_masked(question, session.workspace.history.open_edit()))
    proposed = drafts(situation.text, masked, situation.offset, _path(session, uri), _others(session, question, uri))
    extended = session.state(uri).extended
    session.state(uri).extended = False
    found = await session.asker.rewrite(question, situation, extended=extended, drafts=proposed)
    if isinstance(found, Found) or (isinstance(found, SilenceReason) and found in _FINAL):
        return found
    bounds = question.region.extended() if extended else question.region
    asked = [region_around(question.text, situation.offset, bounds)]
    for place in _elsewhere(proposed, places):
        if any(start <= place < end for start, end in asked):
            continue
        there = None if run.changes else session.workspace.situation(uri, place)
        if there is None:
            return SilenceReason.STALE
        asked.append(region_around(question.text, place, question.region))
        other = await session.asker.rewrite(question, there, extended=False, drafts=proposed)
        if isinstance(other, Found):
            return other
        found = other if isinstance(other, Held) and not isinstance(found, Held) else found
        if len(asked) > _PLACES:
            break
    return found


def _masked(question: Question, hunks: Sequence[Hunk]) -> tuple[Hunk, ...]:
    return tuple(replace(each, before=question.mask(each.before), after=question.mask(each.after)) for each in hunks)


def _elsewhere(proposed: Sequence[EditDraft], places: Sequence[Location]) -> Iterator[int]:
    """Where to look next, likeliest first: a draft knows what to do there, a place only that something may be to do."""
    yield from (draft.start for draft in proposed)
    yield from (place.start for place in places)


async def _renames(session: Session, run: Run, question: Question, places: tuple[Location, ...]) -> Answered:
    """What a model that only fills in can do: put the new name of a rename into other places."""
    held: Answered = SilenceReason.NOT_TRAINED_FOR_EDITS
    renames = [place for place in places if place.why is Why.SAME_TEXT and place.replacement]
    for place in renames[:_RENAMES]:
        if run.changes:
            return SilenceReason.STALE
        found = await session.asker.continue_rename(question, place)
        if isinstance(found, Found):
            return found
        held = found if isinstance(found, Held) else held
    return held


def last_edits(session: Session, uri: str) -> tuple[Hunk, ...]:
    """The last edits of all documents, newest last, the one that is being made in this one included."""
    history = session.workspace.history
    path = _path(session, uri)
    return (*history.settled(), *(hunk for hunk in history.open_edit() if hunk.path == path))


def own_hunks(session: Session, uri: str, hunks: Sequence[Hunk]) -> tuple[Hunk, ...]:
    """Those of one document."""
    path = _path(session, uri)
    return tuple(hunk for hunk in hunks if hunk.path == path)


def _others(session: Session, question: Question, uri: str) -> tuple[str, ...]:
    """The beginnings of the other open documents, where imports stand, and the excerpts that the prompt has anyway."""
    heads = [
        question.mask("".join(document.lines(0, _HEAD)))
        for document in session.workspace.shown()
        if document.uri != uri
    ]
    return (*heads[:_HEADS], *(excerpt.text for excerpt in question.situation.related))


def _path(session: Session, uri: str) -> str | None:
    document = session.workspace.documents.get(uri)
    return None if document is None else prompt_path(document)


def _undone(session: Session, uri: str) -> bool:
    """Whether the user has just taken something back: whatever was being done is not to be gone on with."""
    return session.workspace.history.latest(uri) is Origin.UNDO
