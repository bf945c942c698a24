"""`calomel bench infill`: how good fillings are, next to the same weights decoding left to right.

Held-out packages by kind of hole (exact match), HumanEval-Infilling (exact match and pass@1), every row for the policy
and for `left_to_right`, greedily. With `policies`, a table over many policies instead.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from calomel.bench.answer import BASELINE, Answerer, Contender, ModelAnswerer, Oracle
from calomel.bench.collect import Outcome, collect, run_tests
from calomel.bench.heldout import BenchDataError, read_heldout
from calomel.bench.holes import Hole, TokenMeasure, make_holes
from calomel.bench.humaneval import RANDOM_SPAN, SINGLE_LINE, Task, data_folder, read_tasks
from calomel.bench.journal import Journal, cache_folder
from calomel.bench.load import LoadWatch
from calomel.bench.machine import Provenance, describe_run, source_hash
from calomel.bench.model import PlainMeasure, open_model
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Table, Value
from calomel.bench.summary import flat_keys, language_table, quality_table, sweep
from calomel.suggest.filler import DEFAULT_MAX_STEPS, DEFAULT_POLICY
from calomel.suggest.manner import Manner

if TYPE_CHECKING:
    from calomel.engine.quantize import Quantization  # imports torch

# A full run: 400 holes of each kind, 100 a language, keep a Wilson interval within five points.
HOLES_PER_KIND = 400
# A quick run stops asking after this time, so that loading, the programs' tests and the report fit into three minutes.
QUICK_SECONDS = 120.0
QUICK_HOLES_PER_KIND = 48
QUICK_SINGLE_LINE, QUICK_RANDOM_SPAN = 60, 24

NOTES = (
    (
        "Exact match compares the spliced lines with spaces at the ends of lines removed. Holes are cut at any"
        " character; `rest_of_line_token_aligned` begins where a token begins, for orientation."
    ),
    "Single-line HumanEval answers are cut behind their first line, for every policy alike. Random spans are not cut.",
    (
        "Tokens per forward: kept answer tokens plus one end token, over all forwards after prefill, length probe and"
        " verification included; the overall figure is over the five held-out kinds."
    ),
    (
        "Time / left to right: total time over left-to-right's, same holes, same run, taking turns at being first, with"
        " the context already in the prefix cache. The key `vs_left_to_right_cold` adds the encoding of the context to"
        " both, `vs_left_to_right_same_answer` counts the holes that both answered alike."
    ),
    "Brackets are 95 % intervals: Wilson's for shares, a paired bootstrap for ratios and differences.",
)


@dataclass(frozen=True, slots=True)
class InfillOptions:
    """What to measure, on what, and where the results go.

    Attributes:
        model: checkpoint folder; None is the one that ships.
        policy: reveal policy (also `POLICY@STEPS`); None is the shipped default.
        policies: a sweep over these, `default` among them if wanted, instead of the one policy.
        holes_per_kind: held-out holes of each kind, all languages together; None: 400, quick 48.
        quick: a seeded subset within three minutes.
        seconds: ask no more holes after this time; None: no bound, quick 120.
        oracle: answer with what was there, without a model: everything must come out as 100 %.
        human_eval: include HumanEval-Infilling (skipped, and said so, where its files are absent).
        data: folder of public data; None is `CALOMEL_DATA` or `../shared/data`.
        heldout: held-out files; None is the committed ones.
        cache: folder of the journals that runs resume from; None is the user's cache folder.
        command: the command line to record; None is this process's own.
        contexts: sizes of context in tokens: compares these instead, with related code in front of the holes.
        quantize: weights in eight bits, `int8` or `fp8`.
    """

    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    policy: str | None = None
    max_steps: int | None = None
    policies: tuple[str, ...] = ()
    holes_per_kind: int | None = None
    seed: int = 1
    quick: bool = False
    seconds: float | None = None
    oracle: bool = False
    human_eval: bool = True
    data: Path | None = None
    heldout: Path | None = None
    cache: Path | None = None
    resume: bool = True
    json: Path | None = None
    results: Path | None = None
    command: str | None = None
    contexts: tuple[int, ...] = ()
    quantize: Quantization | None = None


def run_infill(options: InfillOptions) -> Report:
    """Measure, write what `options` asks for, and return the report.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError: there is no checkpoint to measure.
        ValueError: a policy's bound on steps is no number.
    """
    if options.contexts:
        # Brings the editor's side with it.
        from calomel.bench.contexts import run_contexts

        return run_contexts(options)
    progress = Progress()
    with ExitStack() as stack:
        if options.oracle:
            report = measure_infill(options, Oracle(), PlainMeasure(), progress, weights="oracle")
        else:
            opened = open_model(
                options.model, device=options.device, threads=options.threads, quantize=options.quantize
            )
            model = stack.enter_context(opened)
            report = measure_infill(
                options,
                ModelAnswerer(model),
                model.measure,
                progress,
                weights=model.weights_hash,
                baseline=model.verifiable,
                manner=model.filler.manner,
            )
    report.write(json_path=options.json, results=options.results)
    return report


def measure_infill(
    options: InfillOptions,
    answerer: Answerer,
    measure: TokenMeasure,
    progress: Progress,
    *,
    weights: str,
    baseline: bool = True,
    manner: Manner | None = None,
) -> Report:
    """The bench over any answerer; writes nothing but its journal. Without `baseline`, left to right is left out.

    `manner` is how the model is asked by default, where it is not as our own.
    """
    provenance = describe_run(options.command)
    contenders = tuple(one for one in contenders_of(options) if baseline or one != BASELINE)
    holes, tasks, skipped = _work(options, measure)
    depends_on = {
        "weights": weights,
        "sources": source_hash(),
        "seed": options.seed,
        "device": options.device,
        "threads": options.threads,
        "quantize": options.quantize,
        "contenders": contenders,
        "heldout": options.heldout,
    }
    load = LoadWatch()
    seconds = QUICK_SECONDS if options.seconds is None and options.quick else options.seconds
    deadline = None if seconds is None else time.monotonic() + seconds
    with Journal(options.cache or cache_folder(), "infill", depends_on, resume=options.resume) as journal:
        outcomes = collect(holes, contenders, answerer, journal, progress, deadline=deadline, load=load)
        by_key = {task.hole.key: task for task in tasks}
        judged, confinement = run_tests(outcomes, by_key, journal, progress)
        resumed = journal.resumed
    state = load.summary([outcome.others for outcome in outcomes])
    flat: dict[str, Value] = {
        "quick": options.quick,
        "loaded": state.loaded,
        "load_other_cores": state.others_mean,
        "load_other_cores_max": state.others_max,
        "loadavg": state.loadavg,
        "resumed_records": resumed,
        "weights": weights,
        "quantize": options.quantize,
        "seed": options.seed,
        "sandbox": confinement,
        "human_eval_skipped": skipped,
        **_policy_keys(contenders[0], manner),
    }
    return _report(options, contenders, judged, flat, provenance, skipped)


def contenders_of(options: InfillOptions) -> tuple[Contender, ...]:
    """The policies to compare, left to right last; raises ValueError for a bad bound on steps."""
    if options.oracle:
        return (Contender("oracle"),)
    if options.policies:
        # The default first: it is the one that the detailed tables show.
        names = sorted(dict.fromkeys(options.policies), key=lambda text: text != "default")
        swept = [Contender.parse(text) for text in names]
        return (*(contender for contender in swept if contender != BASELINE), BASELINE)
    ours = Contender.chosen(options.policy, options.max_steps)
    return (ours, BASELINE) if ours != BASELINE else (BASELINE,)


def _work(options: InfillOptions, measure: TokenMeasure) -> tuple[list[Hole], list[Task], str | None]:
    """The holes of both sources, dealt into one sequence; the tasks among them; why there are none, if so."""
    per_kind = options.holes_per_kind or (QUICK_HOLES_PER_KIND if options.quick else HOLES_PER_KIND)
    held_out = make_holes(read_heldout(options.heldout), measure, per_kind=per_kind, seed=options.seed)
    tasks: list[Task] = []
    skipped: str | None = None if options.human_eval else "not asked for"
    if options.human_eval:
        limits = (QUICK_SINGLE_LINE, QUICK_RANDOM_SPAN) if options.quick else (None, None)
        try:
            tasks = list(
                read_tasks(
                    options.data or data_folder(), seed=options.seed, single_line=limits[0], random_span=limits[1]
                )
            )
        except BenchDataError as error:
            skipped = str(error)
    human_eval = ([task.hole for task in tasks if task.hole.row == row] for row in (SINGLE_LINE, RANDOM_SPAN))
    return _deal(held_out, *human_eval), tasks, skipped


def _deal(*parts: Sequence[Hole]) -> list[Hole]:
    """The parts merged in proportion, so that a run that ends early has seen all of them."""
    placed = [((index + 0.5) / len(part), part[index]) for part in parts for index in range(len(part))]
    return [hole for _, hole in sorted(placed, key=lambda entry: entry[0])]


def _policy_keys(ours: Contender, manner: Manner | None) -> dict[str, Value]:
    """What was measured, with the defaults that stand behind None spelled out."""
    return {
        "policy": ours.policy or (DEFAULT_POLICY if manner is None else manner.policy),
        "max_steps": ours.max_steps or (DEFAULT_MAX_STEPS if manner is None else manner.max_steps),
        "policy_is_default": ours.policy is None and ours.max_steps is None,
    }


def _report(
    options: InfillOptions,
    contenders: Sequence[Contender],
    outcomes: Sequence[Outcome],
    flat: dict[str, Value],
    provenance: Provenance,
    skipped: str | None,
) -> Report:
    ours, baseline = contenders[0].name, BASELINE.name
    tables: list[Table] = []
    if options.policies:
        table, keys = sweep(outcomes, [contender.name for contender in contenders], baseline)
        tables.append(table)
        flat |= keys
    flat |= flat_keys(outcomes, ours, baseline)
    tables += [quality_table(outcomes, ours, baseline), language_table(outcomes, ours)]
    notes = [*NOTES, f"HumanEval-Infilling was left out: {skipped}."] if skipped else list(NOTES)
    name = "infill quick" if options.quick else "infill"
    return Report(f"bench {name}", flat, tuple(tables), tuple(notes), provenance)
