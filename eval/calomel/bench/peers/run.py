"""`calomel bench peers`: milliseconds for every character that the author would have kept, ours beside other engines.

The same weights, the same prompts, the same holes, in one run and in turns. The context is warm for all of them: each
is asked once one keystroke earlier, which is not timed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean

from calomel.bench.heldout import read_heldout
from calomel.bench.holes import Hole
from calomel.bench.load import LoadWatch
from calomel.bench.machine import describe_run
from calomel.bench.model import OpenModel, open_model
from calomel.bench.peers.contenders import Contender, Theirs, ours
from calomel.bench.peers.fastest import open_peers
from calomel.bench.peers.moments import accepted, rests_of_lines
from calomel.bench.peers.peer import Peer
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Table, Value, number_cell, put_interval
from calomel.bench.stats import Interval, percentile, ratio_of_sums, wilson
from calomel.suggest.fill import own_renderer

CONTEXT = 8192
HOLES, QUICK_HOLES = 120, 24
# A peer is asked so often with each number of threads and each number type; it runs with what was fastest.
TRIALS = 3

NOTES = (
    (
        "Rests of lines in held-out files. Every contender has encoded the prompt one keystroke earlier, untimed; timed"
        " is rendering and tokenizing the prompt, what is new of it, and the answer up to its end or its line's."
    ),
    "Accepted characters: as many of the answer's beginning as the author wrote. A wrong first one makes it none.",
    (
        "transformers runs its own class of these weights with a cache that is cut back to what prompts have in common;"
        " llama.cpp runs a twin without sliding windows, which its layout does not know: beyond them it is another"
        " model. Each runs with the number type and the threads that were fastest for it before the run."
    ),
    "Brackets are 95 % intervals: Wilson's for shares, a paired bootstrap for ratios.",
)


@dataclass(frozen=True, slots=True)
class PeersOptions:
    """What to measure and where the results go.

    Attributes:
        model: checkpoint folder in our own layout; None is the one that ships.
        context: tokens of prompt.
        holes: None: 120, quick 24.
        threads: numbers of threads to try for the peers; none for 1 and all cores.
    """

    model: Path | None = None
    context: int = CONTEXT
    holes: int | None = None
    seed: int = 1
    quick: bool = False
    threads: tuple[int, ...] = ()
    heldout: Path | None = None
    json: Path | None = None
    results: Path | None = None
    command: str | None = None


@dataclass(slots=True)
class Case:
    """One hole: what every contender took, and how much of its answer was right."""

    milliseconds: dict[str, float] = field(default_factory=dict)
    characters: dict[str, int] = field(default_factory=dict)
    exact: dict[str, bool] = field(default_factory=dict)


def run_peers(options: PeersOptions) -> Report:
    """Measure, write what `options` asks for, and return the report. A peer that is absent is left out, and said so.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError: there is no checkpoint to measure.
    """
    progress = Progress()
    provenance = describe_run(options.command)
    with ExitStack() as stack:
        model = stack.enter_context(open_model(options.model))
        holes = rests_of_lines(
            read_heldout(options.heldout),
            model.measure,
            context=options.context,
            count=options.holes or (QUICK_HOLES if options.quick else HOLES),
            seed=options.seed,
        )
        threads = options.threads or tuple(sorted({1, os.cpu_count() or 1}))
        trial = partial(_trial, model, holes[:TRIALS], options.context)
        peers, missing = stack.enter_context(open_peers(model.folder, options.context, threads, trial, progress.say))
        renderer = own_renderer(model.tokenizer)
        contenders: tuple[Contender, ...] = (*ours(model), *(Theirs(peer, model, renderer) for peer in peers))
        load = LoadWatch()
        cases = measure(holes, contenders, options.context, progress)
        state = load.summary([load.others()])
        report = Report(
            "bench peers quick" if options.quick else "bench peers",
            {
                "quick": options.quick,
                "context": options.context,
                "loaded": state.loaded,
                "load_other_cores": state.others_mean,
                "weights": model.weights_hash,
                "seed": options.seed,
                **{f"settings_{peer.name}": peer.settings for peer in peers},
                **flat_keys(cases, [contender.name for contender in contenders]),
            },
            (_table(cases, [contender.name for contender in contenders]),),
            (*NOTES, *(f"{peer.name}: {peer.settings}." for peer in peers), *(f"Left out: {why}." for why in missing)),
            provenance,
        )
    report.write(json_path=options.json, results=options.results)
    return report


def measure(
    holes: Sequence[Hole],
    contenders: Sequence[Contender],
    context: int,
    progress: Progress,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Case]:
    """Ask every contender in turns, warm."""
    progress.phase("holes", len(holes))
    cases = []
    for turn, hole in enumerate(holes):
        case = Case()
        shift = turn % len(contenders)
        for contender in (*contenders[shift:], *contenders[:shift]):
            contender.fill(replace(hole, prefix=hole.prefix[:-1]), context)
            began = clock()
            text = contender.fill(hole, context)
            case.milliseconds[contender.name] = (clock() - began) * 1e3
            case.characters[contender.name] = accepted(text, hole.answer)
            case.exact[contender.name] = text.rstrip() == hole.answer.rstrip()
        cases.append(case)
        progress.step()
    return cases


def flat_keys(cases: Sequence[Case], names: Sequence[str]) -> dict[str, Value]:
    """Every figure: time for an accepted character and exact match of each, and ours over theirs."""
    flat: dict[str, Value] = {"n": len(cases)}
    for name in names:
        put_interval(flat, f"ms_per_character_{name}", _per_character(cases, name))
        put_interval(flat, f"exact_match_{name}", wilson(sum(case.exact[name] for case in cases), len(cases)))
        times = [case.milliseconds[name] for case in cases]
        flat[f"p50_ms_{name}"], flat[f"p95_ms_{name}"] = percentile(times, 50), percentile(times, 95)
        flat[f"accepted_characters_{name}"] = sum(case.characters[name] for case in cases)
    mine = flat["ms_per_character_ours"]
    for name in names[1:]:
        other = flat[f"ms_per_character_{name}"]
        known = isinstance(mine, float) and isinstance(other, float) and other > 0
        flat[f"vs_{name}"] = mine / other if known else None  # type: ignore[operator]
        ratio = ratio_of_sums(_times(cases, "ours"), _times(cases, name))
        put_interval(flat, f"time_vs_{name}", ratio)
    return flat


def _table(cases: Sequence[Case], names: Sequence[str]) -> Table:
    rows = []
    for name in names:
        times = _times(cases, name)
        per = _per_character(cases, name)
        rows.append(
            (
                name.replace("_", " "),
                number_cell(percentile(times, 50), 1),
                number_cell(percentile(times, 95), 1),
                str(sum(case.characters[name] for case in cases)),
                number_cell(None if per is None else per.value, 1),
                f"{sum(case.exact[name] for case in cases)} of {len(cases)}",
            )
        )
    columns = ("engine", "p50 ms", "p95 ms", "accepted characters", "ms per accepted character", "exact")
    return Table("The same weights, the same holes", columns, tuple(rows))


def _per_character(cases: Sequence[Case], name: str) -> Interval | None:
    return ratio_of_sums(_times(cases, name), [float(case.characters[name]) for case in cases])


def _times(cases: Sequence[Case], name: str) -> list[float]:
    return [case.milliseconds[name] for case in cases]


def _trial(model: OpenModel, holes: Sequence[Hole], context: int, peer: Peer) -> float:
    """Milliseconds that `peer` takes for an answer, warm."""
    contender = Theirs(peer, model, own_renderer(model.tokenizer))
    cases = measure(holes, [contender], context, _Quiet())
    return fmean(_times(cases, peer.name))


class _Quiet(Progress):
    """Says nothing."""

    def say(self, sentence: str) -> None:
        """Nothing."""
