"""Puts the cases of a suite to a model, through the same workspace, context and suggestions as an editor does."""

from __future__ import annotations

import time

from calomel.bench.cases import Case, SuiteError
from calomel.bench.repeat_edit import repeat_last
from calomel.bench.room import BROKEN, Room, uri_of
from calomel.bench.suite_score import Reply
from calomel.context.counter import TokenCounter
from calomel.replay.events import Changed, Closed, Focused, Opened
from calomel.suggest.completer import Completer, Kind
from calomel.suggest.drafts.propose import drafts
from calomel.suggest.gate import Gate
from calomel.suggest.silence import Silence
from calomel.suggest.suggestion import apply
from calomel.suggest.trigger import Trigger
from calomel.workspace.preferences import SuggestSettings


async def ask(
    case: Case,
    completer: Completer,
    *,
    kind: Kind = "edit",
    settings: SuggestSettings | None = None,
    counter: TokenCounter | None = None,
    gate: Gate | None = None,
) -> Reply:
    """What the model has to say to a case.

    For a next edit it is asked as by a key, since the scenarios say so and since not all have an edit to begin with;
    for text at the cursor as after a keystroke, since by a key it would have to say something.

    Raises:
        SuiteError: the model was not there, or broke; that is no silence of its own.
    """
    room = Room(completer, settings, counter, gate)
    _enter(room, case)
    uri = uri_of(case.scenario.file)
    started = time.perf_counter()
    if kind == "fill":
        answer = await room.suggester.inline(uri, case.fill_offset, Trigger.EDIT)
    else:
        answer = await room.suggester.next_edit(uri, None, case.offset, trigger=Trigger.EXPLICIT)
    latency_ms = (time.perf_counter() - started) * 1000
    await room.suggester.aclose()
    if isinstance(answer, Silence):
        if answer.reason in BROKEN:
            raise SuiteError(f"{case.name}: the model did not answer: {answer.reason}. {answer.message}")
        return Reply(None, str(answer.reason), latency_ms)
    return Reply(apply(case.text, answer.edits), None, latency_ms)


def repeated(case: Case, completer: Completer) -> Reply:
    """What the repetition of the last edit has to say; `completer` is not asked."""
    room = Room(completer)
    _enter(room, case)
    edit = repeat_last(case.text, room.hunks(case.scenario.file), case.offset)
    return Reply(None, "nothing to repeat") if edit is None else Reply(apply(case.text, [edit]))


def drafted(case: Case, completer: Completer) -> Reply:
    """What the best draft has to say; `completer` is not asked."""
    room = Room(completer)
    _enter(room, case)
    found = drafts(case.text, room.hunks(case.scenario.file), case.offset, case.scenario.file)
    return Reply(found[0].apply(case.text)) if found else Reply(None, "no draft")


def _enter(room: Room, case: Case) -> None:
    """Play what happened before the question."""
    log = case.log()
    room.play([event for event in log.events if isinstance(event, Opened | Changed | Closed | Focused)])
    # What a scenario calls its history is finished.
    room.settle()
    document = room.document(case.scenario.file)
    if document is None or document.text != case.text:
        raise ValueError(f"{case.name}: its history does not lead to its text")
