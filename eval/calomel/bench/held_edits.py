"""`calomel bench edits --held-out`: next edits in packages that no training corpus contains, beside three baselines.

Every moment is asked once through the suggester, as an editor does it, so that places elsewhere in the file count.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calomel.bench.baselines import repeat_last
from calomel.bench.harm import Offered, harms
from calomel.bench.held_summary import (
    CALOMEL,
    DRAFTS,
    LEFT_TO_RIGHT,
    MAKER_NOTES,
    NOTES,
    REPEAT,
    Row,
    Said,
    held_figures,
    held_tables,
)
from calomel.bench.room import BROKEN, Room, WatchedCompleter, uri_of
from calomel.bench.suite import SuiteError
from calomel.context.budget import TokenCounter
from calomel.replay.events import Changed, Edit, Event, Opened, language_of
from calomel.replay.stories import package_of
from calomel.replay.watching import Decision, HideAll
from calomel.report.result import Report, describe_run, source_hash, weights_hash
from calomel.report.running import Journal, Progress, cache_folder
from calomel.report.stories import HELDOUT_EDITS, Change, Moment, chosen, read_stories
from calomel.selectivity.sample import Sample
from calomel.storage import write_whole
from calomel.suggest.completer import Completer, ModelInfo
from calomel.suggest.drafts.propose import drafts
from calomel.suggest.gate import Gate
from calomel.suggest.judging import known_signals
from calomel.suggest.outcome_signals import signals_of
from calomel.suggest.planned import plan
from calomel.suggest.silence import Silence, SilenceReason
from calomel.suggest.suggestion import apply
from calomel.workspace.settings import Aggressiveness, SuggestSettings


@dataclass(frozen=True, slots=True)
class HeldOptions:
    """What to run.

    Attributes:
        stories: another file of stories than the committed one.
        kinds: of stories; empty for all.
        limit: moments at most; None for all.
        baselines: ask them, too.
        aggressiveness: of the editor's settings.
        model: checkpoint folder; None for the shipped one.
        device, threads: of the engine.
        seed: of the bootstrap.
        resume: go on where an interrupted run stopped.
        samples: where to write every candidate that the gate saw; nothing is shown then.
        json, results: where to write.
    """

    stories: Path | None = None
    kinds: tuple[str, ...] = ()
    limit: int | None = None
    baselines: bool = True
    aggressiveness: Aggressiveness = "balanced"
    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    seed: int = 0
    resume: bool = True
    samples: Path | None = None
    json: Path | None = None
    results: Path | None = None


def run_held_edits(options: HeldOptions) -> Report:
    """Ask, and write what was asked for.

    Raises:
        BenchDataError: there are no stories.
        SuiteError: the model broke.
        ValueError: no moment is left to ask.
        What `calomel.suggest.in_process.open_completer` raises.
    """
    asked = chosen(read_stories(options.stories), options.kinds, options.limit)
    if not asked:
        raise ValueError(f"--kinds {','.join(options.kinds)}: no story is of these kinds")
    rows, info = asyncio.run(_asked(asked, options))
    report = report_of(rows, info, options)
    report.write(json_path=options.json, results=options.results)
    if options.samples is not None:
        lines = [sample.to_line() for row in rows for sample in row.samples]
        options.samples.parent.mkdir(parents=True, exist_ok=True)
        write_whole(options.samples, "".join(lines))
    return report


async def ask_moments(
    moments: Sequence[Moment], contenders: Contenders, progress: Progress, journal: Journal | None = None
) -> list[Row]:
    """Everybody's answer to every moment; those that the journal knows are not asked again."""
    progress.phase("moments", len(moments))
    rows = []
    for moment in moments:
        known = None if journal is None else journal.get(moment.id)
        row = await ask_moment(moment, contenders) if known is None else Row.from_json(known)
        if known is None and journal is not None:
            journal.put(moment.id, row.to_json())
        rows.append(row)
        progress.step(moment.story.kind)
    return rows


def report_of(rows: Sequence[Row], info: ModelInfo, options: HeldOptions) -> Report:
    """The result as one page and its keys."""
    notes = [*NOTES, *MAKER_NOTES]
    if "edit" not in info.kinds:
        notes.append(f"{info.id} is not trained for edits: it can only repeat renames.")
    if options.samples is not None:
        notes.append("Nothing was shown, so that every place was asked about: the first tables say nothing here.")
    silences: dict[str, int] = {}
    for row in rows:
        reason = row.said[CALOMEL].reason
        if reason:
            silences[reason] = silences.get(reason, 0) + 1
    notes.append("Silences: " + ", ".join(f"{reason} {count}" for reason, count in sorted(silences.items())) + ".")
    return Report(
        # A page of its own: it does not take the place of one that has the baselines.
        bench="bench edits held-out" if options.baselines else "bench edits held-out alone",
        flat={"model": info.id, "aggressiveness": options.aggressiveness, **held_figures(rows, options.seed)},
        tables=held_tables(rows, options.seed),
        notes=tuple(notes),
        provenance=describe_run(),
        details={"rows": [{**row.to_json(), "samples": len(row.samples)} for row in rows]},
    )


async def _asked(moments: Sequence[Moment], options: HeldOptions) -> tuple[list[Row], ModelInfo]:
    from calomel.bench.baselines import LeftToRight
    from calomel.suggest.filler import Filler
    from calomel.suggest.in_process import open_completer

    completer = open_completer(options.model, options.device, options.threads)
    try:
        info = await completer.info()
        rival = None
        if options.baselines and isinstance(completer.filler, Filler):
            rival = LeftToRight(completer, completer.filler)
        settings = SuggestSettings(debounce_seconds=0.0, aggressiveness=options.aggressiveness)
        contenders = Contenders(completer, rival, settings, HideAll() if options.samples else None)
        journal = Journal(cache_folder(), "edits", _depends_on(options), resume=options.resume)
        try:
            return await ask_moments(moments, contenders, Progress(), journal), info
        finally:
            journal.close()
    finally:
        await completer.aclose()


def _depends_on(options: HeldOptions) -> dict[str, object]:
    from calomel.weights import nano_path

    stories = options.stories or HELDOUT_EDITS
    return {
        "stories": hashlib.sha256(stories.read_bytes()).hexdigest(),
        "weights": weights_hash(options.model or nano_path()),
        "sources": source_hash(),
        "device": options.device,
        "aggressiveness": options.aggressiveness,
        "baselines": options.baselines,
        "samples": options.samples is not None,
    }


# Seconds between two changes: a person who knows what to do.
_PACE = 2.0
# Offers that are taken one behind another: more are another change.
_FOLLOWED = 8


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
        offers=await followed(moment, contenders) if said[CALOMEL].shown else (),
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


async def followed(moment: Moment, contenders: Contenders) -> tuple[tuple[str, ...], ...]:
    """What is wrong with each offer when all are taken, one behind another, until there is none; mostly nothing."""
    room = contenders.room(moment, contenders.completer)
    path, text, cursor, changes = moment.story.path, moment.text, moment.cursor, list(moment.done)
    found: list[tuple[str, ...]] = []
    while len(found) < _FOLLOWED:
        offer = await room.suggester.next_edit(uri_of(path), None, cursor)
        if isinstance(offer, Silence):
            break
        found.append(harms(Offered(text, offer.edits, cursor, path, moment.story.text, changes)))
        edits = tuple(Edit(edit.start, edit.end, edit.text) for edit in offer.edits)
        room.play([Changed(len(changes), room.clock() + _PACE, path, edits)])
        room.suggester.accepted(offer.id)
        # From the last to the first, so that none moves another.
        changes += [Change(edit.start, edit.end, edit.text) for edit in reversed(offer.edits)]
        text, cursor = apply(text, offer.edits), offer.cursor_after or cursor
    await room.suggester.aclose()
    return tuple(found)


def _plain(moment: Moment, result: str | None, maker: str | None) -> Said:
    """What one says who shows whatever there is."""
    if result is None or result == moment.text:
        return Said(shown=False, right=moment.silent, reason="nothing")
    return Said(shown=True, right=moment.right(result), maker=maker)


def moment_sample(moment: Moment, decision: Decision) -> Sample:
    """Accepted means right: nobody is there who could accept it."""
    signals = decision.signals
    right = moment.right(apply(moment.text, signals.edits))
    path = moment.story.path
    return Sample(
        question=moment.id,
        kind=signals.kind,
        outcome="accepted" if right else "rejected",
        maker=decision.candidate.maker,
        language=language_of(path),
        group=package_of(path),
        signals=known_signals(signals_of(decision.candidate, plan(moment.text, signals.edits), signals)),
        filters=signals.filters,
        shown=False,
    )
