"""`calomel bench infill`: how good fillings are, next to the same weights decoding left to right.

Held-out packages by kind of hole and HumanEval-Infilling, every row for the policy and for `left_to_right`, greedily.
With `policies`, a table over many policies as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from calomel.bench.holes import KINDS, REST_OF_LINE, TOKEN_ALIGNED, TokenMeasure, make_holes
from calomel.bench.model import BASELINE, Contender, OpenModel, open_model
from calomel.report.heldout import (
    RANDOM_SPAN,
    SINGLE_LINE,
    BenchDataError,
    Hole,
    data_folder,
    read_heldout,
    read_humaneval,
)
from calomel.report.result import (
    Report,
    Table,
    Value,
    describe_run,
    number_cell,
    percent_cell,
    put_interval,
    source_hash,
    value_of,
)
from calomel.report.running import Journal, LoadWatch, Progress, cache_folder
from calomel.report.stats import Interval, paired_difference, percentile, ratio_of_sums, wilson
from calomel.suggest.filler import DEFAULT_MAX_STEPS, DEFAULT_POLICY
from calomel.suggest.manner import Manner

if TYPE_CHECKING:
    from calomel.engine.quantize import Quantization  # imports torch

# A full run: 400 holes of each kind, 100 a language, keep a Wilson interval within five points.
HOLES_PER_KIND: Final = 400
# A quick run stops asking after this time, so that loading and the report fit into three minutes.
QUICK_SECONDS: Final = 120.0
QUICK_HOLES_PER_KIND: Final = 48
QUICK_SINGLE_LINE, QUICK_RANDOM_SPAN = 60, 24
HUMAN_EVAL: Final = (SINGLE_LINE, RANDOM_SPAN)
ROWS: Final = (*KINDS, TOKEN_ALIGNED, *HUMAN_EVAL)

NOTES: Final = (
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
        human_eval: include HumanEval-Infilling (skipped, and said so, where its files are absent).
        data: folder of public data; None is `CALOMEL_DATA` or `../shared/data`.
        heldout: held-out files; None is the committed ones.
        cache: folder of the journals that runs resume from; None is the user's cache folder.
        command: the command line to record; None is this process's own.
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
    human_eval: bool = True
    data: Path | None = None
    heldout: Path | None = None
    cache: Path | None = None
    resume: bool = True
    json: Path | None = None
    results: Path | None = None
    command: str | None = None
    quantize: Quantization | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer to one hole.

    Attributes:
        text: what would be inserted.
        kept_tokens: tokens of `text`, plus one where the answer ended by an end token that counted.
        forwards: all forwards after prefill, length probe and verification included.
        milliseconds: the whole call with a warm prefix cache: rendering, the rest of the prefill, denoising, decoding.
    """

    text: str
    kept_tokens: int
    forwards: int
    milliseconds: float
    finish_reason: str


class Answerer(Protocol):
    """Answers holes; `prime` fills the prefix cache for one, so that the order of contenders does not matter."""

    def prime(self, hole: Hole) -> float:
        """Encode the hole's context; returns the milliseconds that took."""
        ...

    def attempt(self, hole: Hole, contender: Contender) -> Attempt:
        """Answer the hole as `contender`."""
        ...


class ModelAnswerer:
    """Answers with a model, through the same `Filler` as every door."""

    def __init__(self, model: OpenModel, clock: Callable[[], float] = time.perf_counter) -> None:
        self._model = model
        self._clock = clock

    def prime(self, hole: Hole) -> float:
        """One token in one step: what it leaves behind is the cached context."""
        fill = self._model.fill(hole, policy=None, max_steps=1, max_tokens=1)
        return fill.result.prefill_seconds * 1e3

    def attempt(self, hole: Hole, contender: Contender) -> Attempt:
        """Fill, and cut behind the first line where the hole is a single line by definition."""
        started = self._clock()
        fill = self._model.fill(
            hole,
            policy=contender.policy,
            max_steps=contender.max_steps,
            max_tokens=hole.max_tokens,
            as_doors=contender.policy is None,
        )
        milliseconds = (self._clock() - started) * 1e3
        text, kept = fill.text, fill.completion_tokens + (fill.result.end_log_prob is not None)
        if hole.first_line_only:
            line, _, rest = text.partition("\n")
            text = f"{line}\n"
            # What was cut off is not kept, nor the end behind it.
            kept = min(kept, self._model.measure.count(text)) if rest else kept
        return Attempt(text, kept, fill.forwards, milliseconds, fill.finish_reason)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A judged attempt.

    Attributes:
        cold_milliseconds: what encoding the context from nothing took, measured once for all contenders.
        others: cores that other processes used around that time.
    """

    hole: Hole
    contender: str
    attempt: Attempt
    correct: bool
    cold_milliseconds: float
    others: float


def run_infill(options: InfillOptions) -> Report:
    """Measure, write what `options` asks for, and return the report.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError: there is no checkpoint to measure.
        ValueError: a policy's bound on steps is no number.
    """
    with open_model(options.model, device=options.device, threads=options.threads, quantize=options.quantize) as model:
        report = measure_infill(
            options,
            ModelAnswerer(model),
            model.measure,
            Progress(),
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
    holes, skipped = _work(options, measure)
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
    deadline = time.monotonic() + QUICK_SECONDS if options.quick else None
    with Journal(options.cache or cache_folder(), "infill", depends_on, resume=options.resume) as journal:
        outcomes = collect(holes, contenders, answerer, journal, progress, deadline=deadline, load=load)
        resumed = journal.resumed
    ours, theirs = contenders[0], BASELINE.name
    flat: dict[str, Value] = {
        "quick": options.quick,
        **load.keys([outcome.others for outcome in outcomes]),
        "resumed_records": resumed,
        "weights": weights,
        "quantize": options.quantize,
        "seed": options.seed,
        "human_eval_skipped": skipped,
        # What was measured, with the defaults that stand behind None spelled out.
        "policy": ours.policy or (DEFAULT_POLICY if manner is None else manner.policy),
        "max_steps": ours.max_steps or (DEFAULT_MAX_STEPS if manner is None else manner.max_steps),
        "policy_is_default": ours.policy is None and ours.max_steps is None,
    }
    tables: list[Table] = []
    if options.policies:
        table, keys = sweep(outcomes, [contender.name for contender in contenders])
        tables.append(table)
        flat |= keys
    flat |= flat_keys(outcomes, ours.name, theirs)
    tables += [quality_table(outcomes, ours.name, theirs), language_table(outcomes, ours.name)]
    notes = (*NOTES, f"HumanEval-Infilling was left out: {skipped}.") if skipped else NOTES
    return Report("bench infill quick" if options.quick else "bench infill", flat, tuple(tables), notes, provenance)


def contenders_of(options: InfillOptions) -> tuple[Contender, ...]:
    """The policies to compare, left to right last; raises ValueError for a bad bound on steps."""
    if options.policies:
        # The default first: it is the one that the detailed tables show.
        names = sorted(dict.fromkeys(options.policies), key=lambda text: text != "default")
        swept = [Contender.parse(text) for text in names]
        return (*(contender for contender in swept if contender != BASELINE), BASELINE)
    ours = Contender.chosen(options.policy, options.max_steps)
    return (ours, BASELINE) if ours != BASELINE else (BASELINE,)


def _work(options: InfillOptions, measure: TokenMeasure) -> tuple[list[Hole], str | None]:
    """The holes of both sources, in proportion, so that a run that ends early has seen all; why some are missing."""
    per_kind = options.holes_per_kind or (QUICK_HOLES_PER_KIND if options.quick else HOLES_PER_KIND)
    parts: list[Sequence[Hole]] = [
        make_holes(read_heldout(options.heldout), measure, per_kind=per_kind, seed=options.seed)
    ]
    skipped: str | None = None if options.human_eval else "not asked for"
    if options.human_eval:
        limits = (QUICK_SINGLE_LINE, QUICK_RANDOM_SPAN) if options.quick else (None, None)
        data = options.data or data_folder()
        try:
            parts += [
                read_humaneval(row, data, seed=options.seed, limit=limit)
                for row, limit in zip(HUMAN_EVAL, limits, strict=True)
            ]
        except BenchDataError as error:
            skipped = str(error)
    placed = [((index + 0.5) / len(part), hole) for part in parts for index, hole in enumerate(part)]
    return [hole for _, hole in sorted(placed, key=lambda entry: entry[0])], skipped


def collect(
    holes: Sequence[Hole],
    contenders: Sequence[Contender],
    answerer: Answerer,
    journal: Journal,
    progress: Progress,
    *,
    deadline: float | None = None,
    load: LoadWatch | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Outcome]:
    """Outcomes hole by hole, all contenders of a hole or none; ends early at `deadline` (of `clock`).

    Contenders take turns at being first. What the journal knows is not asked again and costs no time of the deadline.
    """
    watch = load if load is not None else LoadWatch()
    found: list[Outcome] = []
    progress.phase("answers", len(holes))
    for turn, hole in enumerate(holes):
        keys = [f"{hole.key}|{contender.name}" for contender in contenders]
        records = [record for key in keys if (record := journal.get(key)) is not None]
        if len(records) < len(keys):
            if deadline is not None and clock() > deadline:
                continue
            cold = answerer.prime(hole)
            shift = turn % len(contenders)
            order = (*contenders[shift:], *contenders[:shift])
            attempts = {contender.name: asdict(answerer.attempt(hole, contender)) for contender in order}
            others = watch.others()
            records = [
                {"attempt": attempts[contender.name], "cold_milliseconds": cold, "others": others}
                for contender in contenders
            ]
            for key, record in zip(keys, records, strict=True):
                journal.put(key, record)
        pairs = zip(contenders, records, strict=True)
        found += [_outcome(hole, contender.name, record) for contender, record in pairs]
        progress.step()
    return found


def _outcome(hole: Hole, contender: str, record: Mapping[str, Any]) -> Outcome:
    attempt = Attempt(**record["attempt"])
    return Outcome(hole, contender, attempt, matches(hole, attempt.text), record["cold_milliseconds"], record["others"])


def matches(hole: Hole, text: str) -> bool:
    """Whether `text` is what was there, spaces at the ends of lines aside.

    The end of the last line is behind the hole: what follows the hole on its line is part of the comparison.
    """
    tail = hole.suffix.split("\n", 1)[0]
    ours, theirs = ([line.rstrip() for line in f"{each}{tail}".split("\n")] for each in (text, hole.answer))
    return ours == theirs


# Figures: one row a kind of hole, for the contender and for left to right.


def exact_match(outcomes: Sequence[Outcome]) -> Interval | None:
    """Share of answers that equal what was there."""
    return wilson(sum(outcome.correct for outcome in outcomes), len(outcomes))


def tokens_per_forward(outcomes: Sequence[Outcome]) -> Interval | None:
    """Kept tokens with their end tokens, over all forwards after prefill."""
    kept = [outcome.attempt.kept_tokens for outcome in outcomes]
    return ratio_of_sums(kept, [outcome.attempt.forwards for outcome in outcomes])


def time_ratio(ours: Sequence[Outcome], theirs: Sequence[Outcome], *, cold: bool = False) -> Interval | None:
    """Our total time over theirs on the same holes; `cold` adds to both what encoding the context took."""
    if len(ours) != len(theirs):
        return None
    sides = (
        [outcome.attempt.milliseconds + cold * outcome.cold_milliseconds for outcome in each] for each in (ours, theirs)
    )
    return ratio_of_sums(*sides)


def select(outcomes: Sequence[Outcome], contender: str, *rows: str) -> list[Outcome]:
    """The outcomes of one contender in some rows, in the order of their holes."""
    return [outcome for outcome in outcomes if outcome.contender == contender and outcome.hole.row in rows]


def flat_keys(outcomes: Sequence[Outcome], ours: str, baseline: str) -> dict[str, Value]:
    """Every figure of the two contenders, over the held-out kinds first and then by row and by language."""
    flat: dict[str, Value] = {}
    mine, theirs = select(outcomes, ours, *KINDS), select(outcomes, baseline, *KINDS)
    put_interval(flat, "tokens_per_forward", tokens_per_forward(mine))
    put_interval(flat, "tokens_per_forward_left_to_right", tokens_per_forward(theirs))
    put_interval(flat, "vs_left_to_right", time_ratio(mine, theirs))
    put_interval(flat, "vs_left_to_right_cold", time_ratio(mine, theirs, cold=True))
    alike = [pair for pair in zip(mine, theirs, strict=False) if pair[0].attempt.text == pair[1].attempt.text]
    same = time_ratio([pair[0] for pair in alike], [pair[1] for pair in alike])
    put_interval(flat, "vs_left_to_right_same_answer", same)
    for name, group in (("", mine), ("_left_to_right", theirs)):
        times = [outcome.attempt.milliseconds for outcome in group]
        flat[f"warm_p50_ms{name}"], flat[f"warm_p95_ms{name}"] = percentile(times, 50), percentile(times, 95)
    right = ([outcome.correct for outcome in select(outcomes, each, REST_OF_LINE)] for each in (ours, baseline))
    put_interval(flat, "exact_match_minus_left_to_right", paired_difference(*right))
    for row in ROWS:
        mine, theirs = select(outcomes, ours, row), select(outcomes, baseline, row)
        _put_row(flat, row, mine, theirs)
        for language in sorted({outcome.hole.language for outcome in mine}) if row not in HUMAN_EVAL else ():
            _put_row(flat, f"{row}.{language}", _speaking(mine, language), _speaking(theirs, language))
    return flat


def quality_table(outcomes: Sequence[Outcome], ours: str, baseline: str) -> Table:
    """Exact match, tokens per forward and time by row."""
    rows = []
    for row in ROWS:
        mine, theirs = select(outcomes, ours, row), select(outcomes, baseline, row)
        if mine:
            cells = (percent_cell(exact_match(mine)), percent_cell(exact_match(theirs)))
            ratios = (tokens_per_forward(mine), time_ratio(mine, theirs))
            rows.append((row, str(len(mine)), *cells, *(number_cell(value_of(each)) for each in ratios)))
    columns = ("holes", "n", "exact match", "left to right", "tokens per forward", "time / left to right")
    return Table(f"Policy {ours} and the same weights left to right", columns, tuple(rows))


def language_table(outcomes: Sequence[Outcome], ours: str) -> Table:
    """Exact match of the held-out kinds by language."""
    languages = sorted({outcome.hole.language for outcome in outcomes if outcome.hole.row in KINDS})
    rows = tuple(
        (row, *(percent_cell(exact_match(_speaking(select(outcomes, ours, row), language))) for language in languages))
        for row in (*KINDS, TOKEN_ALIGNED)
    )
    return Table(f"Exact match by language, policy {ours}", ("holes", *languages), rows)


def sweep(outcomes: Sequence[Outcome], contenders: Sequence[str]) -> tuple[Table, Mapping[str, Value]]:
    """One line a policy: exact match, tokens per forward and time, to choose a default by."""
    flat: dict[str, Value] = {}
    rows = []
    theirs = select(outcomes, BASELINE.name, *KINDS)
    for name in contenders:
        mine = select(outcomes, name, *KINDS)
        times = [outcome.attempt.milliseconds for outcome in mine]
        figures = {
            "rest_of_line.exact_match": exact_match(select(outcomes, name, REST_OF_LINE)),
            "exact_match": exact_match(mine),
            "tokens_per_forward": tokens_per_forward(mine),
            "vs_left_to_right": time_ratio(mine, theirs),
        }
        for key, interval in figures.items():
            put_interval(flat, f"sweep.{name}.{key}", interval)
        flat[f"sweep.{name}.warm_p50_ms"] = percentile(times, 50)
        line, whole, tokens, ratio = figures.values()
        numbers = (number_cell(value_of(tokens)), *(number_cell(percentile(times, each), 1) for each in (50, 95)))
        rows.append((name, str(len(mine)), percent_cell(line), percent_cell(whole), *numbers,
                     number_cell(value_of(ratio))))  # fmt: skip
    columns = (
        "policy", "n", "exact match, rest of line", "exact match, all held-out", "tokens per forward", "p50 ms",
        "p95 ms", "time / left to right",
    )  # fmt: skip
    return Table("Policies", columns, tuple(rows)), flat


def _put_row(flat: dict[str, Value], row: str, mine: Sequence[Outcome], theirs: Sequence[Outcome]) -> None:
    put_interval(flat, f"{row}.exact_match", exact_match(mine))
    put_interval(flat, f"{row}.exact_match_left_to_right", exact_match(theirs))
    put_interval(flat, f"{row}.tokens_per_forward", tokens_per_forward(mine))
    put_interval(flat, f"{row}.vs_left_to_right", time_ratio(mine, theirs))


def _speaking(outcomes: Sequence[Outcome], language: str) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.hole.language == language]
