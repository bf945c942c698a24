"""Where a next edit is looked for: at the cursor, then where the last edit probably goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calomel.prompts.parts import Hunk
from calomel.suggest.asker import Found, Question
from calomel.suggest.completer import ModelInfo
from calomel.suggest.flight import Run
from calomel.suggest.locations import Location, Why, continuations
from calomel.suggest.session import Session
from calomel.suggest.silence import SilenceReason
from calomel.suggest.trigger import Diagnostic

# Places elsewhere in the file that one question looks at.
_PLACES: Final = 2
_RENAMES: Final = 3


async def look_around(
    session: Session,
    run: Run,
    question: Question,
    info: ModelInfo,
    diagnostics: Sequence[Diagnostic],
) -> Found | SilenceReason:
    """The first place with something worth offering; if there is none, why the likeliest one has none."""
    uri = run.owner.uri
    situation = question.situation
    hunks = own_hunks(session, situation.path)
    places = continuations(question.text, hunks, situation.offset, diagnostics)
    if "edit" not in info.kinds:
        return await _renames(session, run, question, places)
    extended = session.state(uri).extended
    session.state(uri).extended = False
    found = await session.asker.rewrite(question, situation, extended=extended)
    if isinstance(found, Found) or found not in {SilenceReason.NO_CHANGE, SilenceReason.EMPTY}:
        return found
    for place in places[:_PLACES]:
        there = None if run.changes else session.workspace.situation(uri, place.start)
        if there is None:
            return SilenceReason.STALE
        other = await session.asker.rewrite(question, there, extended=False)
        if isinstance(other, Found):
            return other
    return found


async def _renames(
    session: Session, run: Run, question: Question, places: tuple[Location, ...]
) -> Found | SilenceReason:
    """What a model that only fills in can do: put the new name of a rename into other places."""
    reason = SilenceReason.NOT_TRAINED_FOR_EDITS
    renames = [place for place in places if place.why is Why.SAME_TEXT and place.replacement]
    for place in renames[:_RENAMES]:
        if run.changes:
            return SilenceReason.STALE
        found = await session.asker.continue_rename(question, place)
        if isinstance(found, Found):
            return found
    return reason


def own_hunks(session: Session, path: str | None) -> tuple[Hunk, ...]:
    """The last edits of one document, newest last, the one that is being made included."""
    history = session.workspace.history
    return tuple(hunk for hunk in (*history.settled(), *history.open_edit()) if hunk.path == path)
