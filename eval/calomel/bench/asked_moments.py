"""Puts moments of stories to a model and to its baselines, as an editor would."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass

from calomel.bench.cases import SuiteError
from calomel.bench.moment_row import CALOMEL, DRAFTS, LEFT_TO_RIGHT, REPEAT, Row, Said
from calomel.bench.moment_sample import moment_sample
from calomel.bench.moments import Moment
from calomel.bench.repeat_edit import repeat_last
from calomel.bench.room import BROKEN, Room, uri_of
from calomel.bench.watched_completer import WatchedCompleter
from calomel.context.counter import TokenCounter
from calomel.replay.events import Changed, Edit, Event, Opened
from calomel.replay.language_ids import language_of
from calomel.suggest.completer import Completer
from calomel.suggest.drafts.propose import drafts
from calomel.suggest.gate import Gate
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.suggestion import apply
from calomel.workspace.preferences import SuggestSettings

# Seconds between two changes: a person who knows what to do.
_PACE = 2.0


@dataclass(frozen=True, slots=True)
class Contenders:
    """Who is asked.

    Attributes:
        completer: the model with all makers.
        rival: the same model left to right; None asks no baseline.
        settings: of the editor.
        gate: decides for both; None for a bare threshold.
        counter: of tokens.
    """

    completer: Completer
    rival: Completer | None = None
    settings: SuggestSettings | None = None
    gate: Gate | None = None
    counter: TokenCounter | None = None

    def room(self, moment: Moment, completer: Completer) -> Room:
        """An editor at that moment."""
        room = Room(completer, self.settings, self.counter, self.gate)
        # The last change is not settled: the editor asks while its cursor stands behind it.
        room.play(events_of(moment))
        return room


async def ask_moment(moment: Moment, contenders: Contenders) -> Row:
    """Everybody's answer to one moment.

    Raises:
        SuiteError: the model was not there, or broke.
    """
    watched = WatchedCompleter(contenders.completer)
    room = contenders.room(moment, watched)
    said = {CALOMEL: (await answer(moment, room))[0]}
    proposed = proposals(moment, room, watched)
    found = drafts(moment.text, room.hunks(moment.story.path), moment.cursor, moment.story.path)
    if contenders.rival is not None:
        said[LEFT_TO_RIGHT] = (await answer(moment, contenders.room(moment, contenders.rival)))[0]
        edit = repeat_last(moment.text, room.hunks(moment.story.path), moment.cursor)
        said[REPEAT] = _plain(moment, None if edit is None else apply(moment.text, [edit]), "repeat")
        said[DRAFTS] = _plain(moment, *((found[0].apply(moment.text), found[0].maker) if found else (None, None)))
    return Row(
        id=moment.id,
        story=moment.story.id,
        path=moment.story.path,
        kind=moment.story.kind,
        language=moment.story.language,
        silent=moment.silent,
        half=moment.half,
        said=said,
        proposed={maker: tuple(map(moment.right, results)) for maker, results in proposed.items()},
        samples=tuple(moment_sample(moment, decision) for decision in room.seen),
    )


def proposals(moment: Moment, room: Room, watched: WatchedCompleter) -> dict[str, list[str]]:
    """By maker, the documents that its proposals lead to, its best one first; the room has been asked."""
    found: dict[str, list[str]] = defaultdict(list)
    for draft in drafts(moment.text, room.hunks(moment.story.path), moment.cursor, moment.story.path):
        found[draft.maker].append(draft.apply(moment.text))
    drafted = set(found)
    for proposal in watched.proposals(moment.text):
        # Of drafts all are known, wherever they are; the model was asked about some of them.
        if proposal.maker not in drafted:
            found[proposal.maker].append(proposal.apply(moment.text))
    return found


def events_of(moment: Moment) -> tuple[Event, ...]:
    """The file is opened, and then changed as far as the moment says."""
    path = moment.story.path
    opened = Opened(0, 0.0, path, language_of(path), moment.story.text)
    changes = (
        Changed(number, number * _PACE, path, (Edit(change.start, change.end, change.text),))
        for number, change in enumerate(moment.done, 1)
    )
    return (opened, *changes)


async def answer(moment: Moment, room: Room) -> tuple[Said, str | None]:
    """What the room's model says, and the document that it leads to; None where it is silent.

    Raises:
        SuiteError: the model was not there, or broke.
    """
    document = room.document(moment.story.path)
    if document is None or document.text != moment.text:
        raise ValueError(f"{moment.id}: its changes do not lead to its text")
    began = time.perf_counter()
    found = await room.suggester.next_edit(uri_of(moment.story.path), None, moment.cursor)
    milliseconds = (time.perf_counter() - began) * 1e3
    await room.suggester.aclose()
    probability = max((each.verdict.probability for each in room.seen), default=None)
    if isinstance(found, Silence):
        # Somebody who waits for an answer that does not come sees nothing.
        if found.reason in BROKEN and found.reason is not SilenceReason.TIMEOUT:
            raise SuiteError(f"{moment.id}: the model did not answer: {found.reason}. {found.message}")
        reason = str(found.reason)
        return Said(shown=False, right=moment.silent, reason=reason, probability=probability,
                    milliseconds=milliseconds), None  # fmt: skip
    result = apply(moment.text, found.edits)
    maker, right = found.candidate.maker, moment.right(result)
    return Said(shown=True, right=right, maker=maker, probability=found.probability, milliseconds=milliseconds), result


def _plain(moment: Moment, result: str | None, maker: str | None) -> Said:
    """What one says who shows whatever there is."""
    if result is None or result == moment.text:
        return Said(shown=False, right=moment.silent, reason="nothing")
    return Said(shown=True, right=moment.right(result), maker=maker)
