"""`calomel bench edits --held-out`: next edits in packages that no training corpus contains, beside three baselines.

Every moment is asked once through the suggester, as an editor does it, so that places elsewhere in the file count.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calomel.bench.asked_moments import Contenders, ask_moment
from calomel.bench.held_summary import MAKER_NOTES, NOTES, held_figures, held_tables
from calomel.bench.journal import Journal, cache_folder
from calomel.bench.machine import describe_run, source_hash, weights_hash
from calomel.bench.moment_row import CALOMEL, Row
from calomel.bench.moments import Moment, chosen
from calomel.bench.progress import Progress
from calomel.bench.report import Report
from calomel.bench.stories import HELDOUT_EDITS, read_stories
from calomel.replay.watched_gate import HideAll
from calomel.suggest.completer import ModelInfo
from calomel.workspace.preferences import Aggressiveness, SuggestSettings


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
        options.samples.write_text("".join(lines), encoding="utf-8")
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
        bench="bench edits held-out",
        flat={"model": info.id, "aggressiveness": options.aggressiveness, **held_figures(rows, options.seed)},
        tables=held_tables(rows, options.seed),
        notes=tuple(notes),
        provenance=describe_run(),
        details={"rows": [{**row.to_json(), "samples": len(row.samples)} for row in rows]},
    )


async def _asked(moments: Sequence[Moment], options: HeldOptions) -> tuple[list[Row], ModelInfo]:
    from calomel.bench.left_to_right import LeftToRight
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
