"""`calomel bench edits --held-out`: next edits in packages that no training corpus contains, beside two baselines.

The suggester is asked once at every moment, as by an editor, so that places elsewhere in the file count.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from calomel.bench.harm import Offered, harms
from calomel.bench.held_summary import (
    CALOMEL,
    DRAFTS,
    MAKER_NOTES,
    NOTES,
    REPEAT,
    Row,
    Said,
    held_figures,
    held_tables,
    losses,
)
from calomel.bench.model import checkpoint_folder
from calomel.bench.room import Room, repeat_last, silences
from calomel.infer.completer import Completer, ModelInfo
from calomel.prompts.parts import Edit, edited
from calomel.replay.events import Changed, Event, Opened, language_of
from calomel.replay.stories import HELDOUT_EDITS, Moment, Story, chosen, package_of, read_stories, turned
from calomel.report.result import CONVERTER, Report, weights_hash
from calomel.report.running import Journal, Progress
from calomel.selectivity.sample import Sample
from calomel.server.upstream import Upstream, open_either
from calomel.storage import write_whole
from calomel.suggest.drafts.propose import drafts
from calomel.suggest.judging import Judged
from calomel.suggest.silence import Silence
from calomel.weights import weights_id
from calomel.workspace.edits import edits_of
from calomel.workspace.settings import Aggressiveness, SuggestSettings


@dataclass(frozen=True, slots=True)
class HeldOptions:
    """What to run.

    Attributes:
        stories: a file of stories in place of the committed one.
        kinds: of stories; empty for all.
        limit: moments at most; None for all.
        baselines: also ask the baselines.
        aggressiveness: of the editor's settings.
        model: checkpoint folder; None for the shipped one.
        device, threads: of the engine.
        upstream: another server, whose model answers instead.
        seed: of the bootstrap.
        resume: continue an interrupted run.
        samples: where to write every candidate that the gate saw; nothing is shown then, and every second story
            makes its changes in another order than the file's.
    """

    stories: Path | None = None
    kinds: tuple[str, ...] = ()
    limit: int | None = None
    baselines: bool = True
    aggressiveness: Aggressiveness = "balanced"
    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    upstream: Upstream | None = None
    seed: int = 0
    resume: bool = True
    samples: Path | None = None


def run_held_edits(options: HeldOptions) -> Report:
    """Run the bench.

    Raises:
        BenchDataError: there are no stories.
        SuiteError: the model failed.
        ValueError: no moment is left to ask.
        What `calomel.server.upstream.open_either` raises.
    """
    stories = read_stories(options.stories)
    if options.samples is not None:
        stories = reordered(stories)
    asked = chosen(stories, options.kinds, options.limit)
    if not asked:
        raise ValueError(f"--kinds {','.join(options.kinds)}: no story is of these kinds")
    rows, info = asyncio.run(_asked(asked, options))
    if options.samples is not None:
        options.samples.parent.mkdir(parents=True, exist_ok=True)
        write_whole(options.samples, "".join(sample.to_line() for row in rows for sample in row.samples))
    return report_of(rows, info, options)


def reordered(stories: Sequence[Story]) -> tuple[Story, ...]:
    """The stories, every second one with its changes in another order."""
    return tuple(turned(story) if int(story.id, 16) % 2 else story for story in stories)


async def ask_moments(
    moments: Sequence[Moment],
    contenders: Contenders,
    progress: Progress,
    journal: Journal | None = None,
    *,
    over: Callable[[], bool] = lambda: False,
) -> list[Row]:
    """All contenders' answers to every moment, or to those before it is `over`.

    Moments in the journal are not asked again.
    """
    progress.phase("moments", len(moments))
    rows = []
    for moment in moments:
        row = None if journal is None else journal.get(moment.id, Row)
        if row is None:
            row = await ask_moment(moment, contenders)
            if journal is not None:
                journal.put(moment.id, row)
        rows.append(row)
        progress.step()
        if over():
            break
    return rows


def report_of(rows: Sequence[Row], info: ModelInfo, options: HeldOptions) -> Report:
    """The result as one page and its keys."""
    notes = [*NOTES, *MAKER_NOTES]
    if "edit" not in info.kinds:
        notes.append(f"{info.id} is not trained for edits: it can only repeat renames.")
    if options.samples is not None:
        notes.append("This run showed nothing and asked about every place: ignore the first tables.")
    told = [{**CONVERTER.unstructure(replace(row, samples=())), "samples": len(row.samples)} for row in rows]
    return Report(
        # A page of its own, so that it does not overwrite the one with the baselines.
        bench="bench edits held-out" if options.baselines else "bench edits held-out alone",
        flat={"model": info.id, "aggressiveness": options.aggressiveness, **held_figures(rows, options.seed)},
        tables=held_tables(rows, options.seed),
        notes=(*notes, *silences(row.said[CALOMEL].reason for row in rows)),
        details={"loss": losses(rows), "rows": told},
    )


def _weights(model: Path | None) -> str:
    """What tells two models apart; of a GGUF file, which no folder stands for, its id."""
    return weights_hash(checkpoint_folder(model)) if model is None or model.is_dir() else weights_id(model)


async def _asked(moments: Sequence[Moment], options: HeldOptions) -> tuple[list[Row], ModelInfo]:
    settings = SuggestSettings(debounce_seconds=0.0, aggressiveness=options.aggressiveness)
    depends_on = {
        "stories": hashlib.sha256((options.stories or HELDOUT_EDITS).read_bytes()).hexdigest(),
        "weights": _weights(options.model),
        "upstream": None if options.upstream is None else asdict(options.upstream),
        "device": options.device,
        "aggressiveness": options.aggressiveness,
        "baselines": options.baselines,
        "samples": options.samples is not None,
    }
    async with aclosing(open_either(options.model, options.device, options.threads, options.upstream)) as completer:
        contenders = Contenders(completer, settings, baselines=options.baselines, audit=options.samples is not None)
        journal = Journal("edits", depends_on, resume=options.resume)
        return await ask_moments(moments, contenders, Progress(), journal), await completer.info()


# Seconds between two changes, for a person who knows what to do.
_PACE = 2.0
# At most this many offers are accepted in a row: more would be another change.
_FOLLOWED = 8


@dataclass(frozen=True, slots=True)
class Contenders:
    """Who is asked.

    Attributes:
        completer: the model with all makers.
        settings: of the editor.
        baselines: also ask the baselines.
        audit: show nothing, so that every place is asked about.
    """

    completer: Completer
    settings: SuggestSettings | None = None
    baselines: bool = False
    audit: bool = False

    def room(self, moment: Moment) -> Room:
        """An editor at this moment."""
        room = Room(self.completer, self.settings, audit=self.audit)
        # The last change is not settled: the editor asks while its cursor is right after it.
        room.play(events_of(moment))
        if room.document(moment.story.path).text != moment.text:
            raise ValueError(f"{moment.id}: its changes do not produce its text")
        return room


async def ask_moment(moment: Moment, contenders: Contenders) -> Row:
    """All contenders' answers to one moment.

    Raises:
        SuiteError: the model was unavailable, or failed.
    """
    room = contenders.room(moment)
    hunks = room.hunks(moment.story.path)
    said = {CALOMEL: await answer(moment, room)}
    found = drafts(moment.text, hunks, moment.cursor, moment.story.path)
    # All drafts are known, wherever they are; the model judged only some of them.
    results = [(draft.maker, draft.apply(moment.text)) for draft in found]
    drafted = {maker for maker, _ in results}
    judged = [(seen.maker, edited(moment.text, edits_of(seen.edits))) for seen in room.decisions.all]
    results += [each for each in judged if each[0] not in drafted]
    proposed: dict[str, list[bool]] = defaultdict(list)
    for maker, result in results:
        proposed[maker].append(moment.right(result))
    if contenders.baselines:
        edit = repeat_last(moment.text, hunks, moment.cursor)
        said[REPEAT] = _plain(moment, None if edit is None else edited(moment.text, [edit]), "repeat")
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
        proposed={maker: tuple(right) for maker, right in proposed.items()},
        samples=tuple(moment_sample(moment, decision) for decision in room.decisions.all),
        offers=await followed(moment, contenders) if said[CALOMEL].shown else (),
    )


def events_of(moment: Moment) -> tuple[Event, ...]:
    """Events that open the file and make the moment's changes."""
    path = moment.story.path
    opened = Opened(0, 0.0, path, language_of(path), moment.story.text)
    changes = (Changed(number, number * _PACE, path, (change,)) for number, change in enumerate(moment.done, 1))
    return (opened, *changes)


async def answer(moment: Moment, room: Room) -> Said:
    """The answer of the room's model. Raises SuiteError when the model was unavailable, or failed."""
    found, milliseconds = await room.ask(moment.id, moment.story.path, moment.cursor)
    await room.suggester.aclose()
    surest = room.decisions.surest()
    probability = None if surest is None else surest.probability
    if isinstance(found, Silence):
        said = Said(shown=False, right=moment.silent, reason=str(found.reason), probability=probability)
    else:
        right = moment.right(edited(moment.text, found.edits))
        said = Said(shown=True, right=right, maker=found.candidate.maker, probability=found.probability)
    return replace(said, milliseconds=milliseconds)


async def followed(moment: Moment, contenders: Contenders) -> tuple[tuple[str, ...], ...]:
    """What is wrong with each offer when all are accepted in a row until none comes; usually nothing."""
    room = contenders.room(moment)
    path, text, cursor, changes = moment.story.path, moment.text, moment.cursor, list[Edit](moment.done)
    found: list[tuple[str, ...]] = []
    while len(found) < _FOLLOWED:
        offer, _ = await room.ask(moment.id, path, cursor)
        if isinstance(offer, Silence):
            break
        found.append(harms(Offered(text, offer.edits, cursor, path, moment.story.text, changes)))
        room.play([Changed(len(changes), room.clock() + _PACE, path, offer.edits)])
        room.suggester.accepted(offer.id)
        # From last to first, so that none shifts another's offsets.
        changes += reversed(offer.edits)
        text, cursor = edited(text, offer.edits), offer.cursor_after or cursor
    await room.suggester.aclose()
    return tuple(found)


def _plain(moment: Moment, result: str | None, maker: str | None) -> Said:
    """The answer of a baseline, which shows whatever it has."""
    if result is None or result == moment.text:
        return Said(shown=False, right=moment.silent, reason="nothing")
    return Said(shown=True, right=moment.right(result), maker=maker)


def moment_sample(moment: Moment, decision: Judged) -> Sample:
    """A sample of a decision; `accepted` means right, as there is no user to accept it."""
    path = moment.story.path
    return Sample(
        question=moment.id,
        kind=decision.kind,
        outcome="accepted" if moment.right(edited(moment.text, edits_of(decision.edits))) else "rejected",
        maker=decision.maker,
        language=language_of(path),
        group=package_of(path),
        signals=decision.signals.known(),
        shown=False,
    )
