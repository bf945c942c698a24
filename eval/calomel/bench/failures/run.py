"""`calomel bench failures`: what the model gets wrong, by kind and by what a right answer would have been worth."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from calomel.bench.asked_moments import Contenders
from calomel.bench.failures.holes_asked import AskedHole, ask_holes
from calomel.bench.failures.moments_asked import ask_moments
from calomel.bench.failures.samples_read import judge_samples
from calomel.bench.failures.summary import failure_keys, failure_tables, likelihood_table, quoted
from calomel.bench.failures.verdict import Ranked, Verdict, ranked
from calomel.bench.heldout import read_heldout
from calomel.bench.holes import make_holes
from calomel.bench.journal import Journal, cache_folder
from calomel.bench.machine import describe_run, source_hash, weights_hash
from calomel.bench.model import checkpoint_folder, open_model
from calomel.bench.moments import chosen
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Table, Value
from calomel.bench.stories import read_stories
from calomel.selectivity.sample import read_samples
from calomel.workspace.preferences import SuggestSettings

HOLES_PER_KIND, QUICK_HOLES_PER_KIND = 120, 24
EDITS, QUICK_EDITS = 240, 40
QUICK_SECONDS = 90.0
LISTED = 100
QUOTED = 20

NOTES = (
    (
        "A kind is the first rule that holds, in the order of `eval/calomel/bench/failures/hole_kinds.py` and"
        " `edit_kinds.py`: what is nearly right comes first. `Also holds` counts where a rule would have held later."
    ),
    (
        "Characters: what a right answer would have saved, without indentation and one key; deletions save none. The"
        " value of a single failure is its characters times the share of its kind in its source."
    ),
    (
        "Holes are those of `bench infill`, asked once with the shipped policy; moments those of"
        " `bench edits --held-out`. Replayed questions are texts at the cursor that `calomel replay --samples FILE"
        " --prompts` wrote; one is right when any of its candidates was taken."
    ),
    "Brackets are 95 % intervals (Wilson).",
)


@dataclass(frozen=True, slots=True)
class FailuresOptions:
    """What to ask, and where the results go.

    Attributes:
        model: checkpoint folder; None is the one that ships.
        holes_per_kind: held-out holes of each kind, all languages together; None: 120, quick 24; 0 for none.
        edits: moments of held-out edits; None: 240, quick 40; 0 for none.
        samples: files that `calomel replay --samples FILE --prompts` wrote.
        listing: file for the most valuable failures with their texts, those of samples among them.
        json: figures, and the failures of held-out data.
        heldout: held-out files; None is the committed ones.
        stories: held-out stories; None is the committed ones.
        cache: folder of the journal; None is the user's cache folder.
        command: the command line to record; None is this process's own.
    """

    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    holes_per_kind: int | None = None
    edits: int | None = None
    samples: tuple[Path, ...] = ()
    seed: int = 1
    quick: bool = False
    resume: bool = True
    listing: Path | None = None
    json: Path | None = None
    results: Path | None = None
    heldout: Path | None = None
    stories: Path | None = None
    cache: Path | None = None
    command: str | None = None


def run_failures(options: FailuresOptions) -> Report:
    """Ask, judge, write what `options` asks for, and return the report.

    Raises:
        BenchDataError: held-out data is absent or damaged.
        CheckpointError: there is no checkpoint to ask.
        SampleError, OSError: a file of samples can not be read.
        SuiteError: the model broke while it was asked for edits.
    """
    provenance = describe_run(options.command)
    folder = checkpoint_folder(options.model)
    replayed, left_out = judge_samples(read_samples(options.samples))
    weights = weights_hash(folder)
    depends_on = {
        "weights": weights,
        "sources": source_hash(),
        "seed": options.seed,
        "device": options.device,
        "heldout": options.heldout,
        "stories": options.stories,
    }
    progress = Progress()
    with Journal(options.cache or cache_folder(), "failures", depends_on, resume=options.resume) as journal:
        asked = _holes(options, journal, progress)
        edits = _edits(options, journal, progress)
    verdicts = [*(each.verdict for each in asked), *edits, *replayed]
    likelihoods = [each.likelihood for each in asked if each.likelihood is not None]
    tables: list[Table] = list(failure_tables(verdicts))
    flat: dict[str, Value] = {
        "quick": options.quick,
        "seed": options.seed,
        "weights": weights,
        "questions": len(verdicts),
        "replay_left_out": left_out,
        **failure_keys(verdicts),
    }
    if likelihoods:
        table, keys = likelihood_table(likelihoods)
        tables.append(table)
        flat |= keys
    notes = list(NOTES)
    if left_out:
        notes.append(f"Replayed questions left out, since what was wanted is not known: {left_out}.")
    failures = ranked(verdicts)
    name = "bench failures quick" if options.quick else "bench failures"
    report = Report(name, flat, tuple(tables), tuple(notes), provenance, _details(failures))
    _write(options, report, failures)
    return report


def listed(report: Report) -> str:
    """The most valuable failures of held-out data, as a list in Markdown."""
    failures = [Ranked(Verdict.from_json(each["verdict"]), each["value"]) for each in report.details["failures"]]
    return quoted(failures, "The most valuable failures")


def spread(failures: Sequence[Ranked], count: int) -> list[Ranked]:
    """Some of each kind, the kinds in turns, the most valuable ones first: no kind fills the list."""
    turns: dict[tuple[str, str | None], list[Ranked]] = {}
    for failure in failures:
        turns.setdefault((failure.verdict.source, failure.verdict.kind), []).append(failure)
    rows = sorted(turns.values(), key=lambda row: -sum(failure.verdict.saved for failure in row))
    dealt = [row[turn] for turn in range(max(map(len, rows), default=0)) for row in rows if turn < len(row)]
    return dealt[:count]


def _holes(options: FailuresOptions, journal: Journal, progress: Progress) -> list[AskedHole]:
    wanted = options.holes_per_kind
    per_kind = (QUICK_HOLES_PER_KIND if options.quick else HOLES_PER_KIND) if wanted is None else wanted
    if per_kind == 0:
        return []
    deadline = time.monotonic() + QUICK_SECONDS if options.quick else None
    with open_model(options.model, device=options.device, threads=options.threads) as model:
        holes = make_holes(read_heldout(options.heldout), model.measure, per_kind=per_kind, seed=options.seed)
        return ask_holes(holes, model, journal, progress, deadline=deadline)


def _edits(options: FailuresOptions, journal: Journal, progress: Progress) -> list[Verdict]:
    limit = (QUICK_EDITS if options.quick else EDITS) if options.edits is None else options.edits
    if limit == 0:
        return []
    from calomel.suggest.in_process import open_completer  # imports torch

    moments = chosen(read_stories(options.stories), limit=limit)

    async def asked() -> list[Verdict]:
        completer = open_completer(options.model, options.device, options.threads)
        try:
            contenders = Contenders(completer, settings=SuggestSettings(debounce_seconds=0.0))
            return await ask_moments(moments, contenders, journal, progress)
        finally:
            await completer.aclose()

    return asyncio.run(asked())


def _details(failures: Sequence[Ranked]) -> dict[str, Any]:
    """The most valuable failures of held-out data: what people typed elsewhere stays out of files that are shared."""
    held_out = [failure for failure in failures if failure.verdict.source != "replay"]
    return {
        "failures": [{"value": failure.value, "verdict": failure.verdict.to_json()} for failure in held_out[:LISTED]]
    }


def _write(options: FailuresOptions, report: Report, failures: Sequence[Ranked]) -> None:
    report.write(json_path=options.json, results=None)
    if options.results is not None:
        held_out = [failure for failure in failures if failure.verdict.source != "replay"]
        # The figures alone: a list of a hundred pieces of other people's code is not for a repository.
        replace(report, details={}).write(json_path=None, results=options.results)
        page = options.results / f"{report.bench.replace(' ', '-')}.md"
        examples = quoted(spread(held_out, QUOTED), "Examples, of every kind in turn")
        page.write_text(page.read_text(encoding="utf-8") + "\n" + examples, encoding="utf-8")
    if options.listing is not None:
        options.listing.parent.mkdir(parents=True, exist_ok=True)
        options.listing.write_text(quoted(failures[:LISTED], "The most valuable failures"), encoding="utf-8")
