"""`calomel bench infill`: how good fillings are, next to the same weights decoding left to right.

Held-out packages by kind of hole, every row for the policy and for `left_to_right`, greedily.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final, Literal

from calomel.bench.bits import bits_per_byte
from calomel.bench.holes import KINDS, make_holes
from calomel.bench.model import (
    BASELINE,
    Attempt,
    BenchOptions,
    Contender,
    OpenModel,
    UpstreamModel,
    in_turns,
    open_model,
    open_upstream,
)
from calomel.report.heldout import Hole, read_heldout
from calomel.report.result import (
    Interval,
    Report,
    Table,
    Value,
    number_cell,
    percent_cell,
    percentile,
    put_interval,
    ratio_of_sums,
    wilson,
)
from calomel.report.running import Journal, LoadWatch, Progress
from calomel.server.upstream import Upstream, outside

# A full run: 400 holes of each kind, 100 a language, keep a Wilson interval within five points.
HOLES_PER_KIND: Final = 400
# A quick run stops asking after this time, so that loading and the report fit into three minutes.
QUICK_SECONDS: Final = 120.0
QUICK_HOLES_PER_KIND: Final = 48
# One token in one step: what remains is the cached context.
_PRIME: Final = Contender("prime", None, 1)

NOTES: Final = (
    ("Exact match compares the completed lines, ignoring spaces at their ends. Gaps begin and end at any character."),
    (
        "Tokens per forward: kept answer tokens plus one end token, over all forwards after prefill,"
        " verification included; the overall figure is over all kinds."
    ),
    (
        "Time / left to right: total time over that of left-to-right decoding: same gaps, same run, each first in"
        " turn, the context already in the prefix cache. `vs_left_to_right_cold` adds encoding the context to both."
    ),
    "Brackets are 95 % intervals: Wilson's for shares, a paired bootstrap for ratios.",
    (
        "Bits a byte (`bits_per_byte`): 3,000 bytes of each of twelve files a language, after the first 200, from left"
        " to right. It compares models with different tokenizers."
    ),
)
Ask = Callable[[Hole, Contender], Attempt]


@dataclass(frozen=True, slots=True, kw_only=True)
class InfillOptions(BenchOptions):
    """What is measured, and on what.

    Attributes:
        holes_per_kind: holes of each kind, all languages together; None: 400, quick 48.
        resume: continue an interrupted run.
        quantize: weights in eight bits; None for what the device computes fastest.
        upstream: another server whose model is measured in place of `model`; None for none.
    """

    holes_per_kind: int | None = None
    resume: bool = True
    quantize: Literal["int8"] | None = None
    upstream: Upstream | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """All contenders' answers to one hole.

    Attributes:
        cold_milliseconds: time to encode the context without a cache, measured once for all of them.
        attempts: by contender.
    """

    cold_milliseconds: float
    attempts: Mapping[str, Attempt]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A judged attempt of a contender."""

    hole: Hole
    contender: str
    attempt: Attempt
    correct: bool
    cold_milliseconds: float


def run_infill(options: InfillOptions) -> Report:
    """Run the bench.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError: there is no checkpoint to measure.
        ValueError: a policy's bound on steps is not a number.
        UpstreamError: no server answers at the address.
    """
    client = outside(options.model, options.device, options.threads, options.upstream)
    if client is not None:
        return measure_infill(options, open_upstream(client), Progress())
    with open_model(options.model, device=options.device, threads=options.threads, quantize=options.quantize) as model:
        return measure_infill(options, model, Progress())


def measure_infill(options: InfillOptions, model: OpenModel | UpstreamModel, progress: Progress) -> Report:
    """The bench over a model; writes only its journal. Left to right is skipped where it means nothing."""
    ours = replace(Contender.parse(options.policy or "default"), as_doors=options.policy is None)
    contenders = (ours, BASELINE) if model.verifiable and ours != BASELINE else (ours,)
    per_kind = options.holes_per_kind or (QUICK_HOLES_PER_KIND if options.quick else HOLES_PER_KIND)
    files = read_heldout(options.heldout)
    holes = make_holes(files, model.measure, per_kind=per_kind, seed=options.seed)
    load = LoadWatch()
    deadline = time.monotonic() + QUICK_SECONDS if options.quick else None
    depends_on = {**asdict(options), "resume": None, "weights": model.weights_hash}
    journal = Journal("infill", depends_on, resume=options.resume)
    outcomes = collect(holes, contenders, model.attempt, journal, progress, deadline=deadline)
    policy, steps = model.decoding
    flat: dict[str, Value] = {
        "quick": options.quick,
        **load.keys(),
        "resumed_records": journal.resumed,
        "weights": model.weights_hash,
        "quantize": options.quantize,
        "seed": options.seed,
        # What was measured, with the defaults for None spelled out.
        "policy": ours.policy or policy,
        "max_steps": ours.max_steps or steps,
        "policy_is_default": ours.policy is None and ours.max_steps is None,
        **flat_keys(outcomes, ours.name, BASELINE.name),
    }
    if isinstance(model, OpenModel):
        put_interval(flat, "bits_per_byte", bits_per_byte(model, files))
    tables = (quality_table(outcomes, ours.name, BASELINE.name), language_table(outcomes, ours.name))
    return Report("bench infill quick" if options.quick else "bench infill", flat, tables, NOTES)


def collect(
    holes: Sequence[Hole],
    contenders: Sequence[Contender],
    ask: Ask,
    journal: Journal,
    progress: Progress,
    *,
    deadline: float | None = None,
) -> list[Outcome]:
    """Outcomes hole by hole, all contenders of a hole or none; ends early at `deadline`, in monotonic seconds.

    Contenders take turns going first. Holes in the journal are not asked again and use none of the deadline's time.
    """
    found: list[Outcome] = []
    progress.phase("answers", len(holes))
    for turn, hole in enumerate(holes):
        answers = journal.get(hole.key, Answers)
        if answers is None:
            if deadline is not None and time.monotonic() > deadline:
                continue
            cold = ask(replace(hole, max_tokens=1), _PRIME).prefill_milliseconds
            answers = Answers(cold, {each.name: ask(hole, each) for each in in_turns(contenders, turn)})
            journal.put(hole.key, answers)
        for contender in contenders:
            attempt = answers.attempts[contender.name]
            correct = matches(hole, attempt.text)
            found.append(Outcome(hole, contender.name, attempt, correct, answers.cold_milliseconds))
        progress.step()
    return found


def matches(hole: Hole, text: str) -> bool:
    """Whether `text` is what was there, ignoring trailing spaces.

    The last line ends after the hole: the rest of that line is part of the comparison.
    """
    tail = hole.suffix.split("\n", 1)[0]
    ours, theirs = ([line.rstrip() for line in f"{each}{tail}".split("\n")] for each in (text, hole.answer))
    return ours == theirs


# Figures: one row per kind of hole, for the contender and for left to right.


def exact_match(outcomes: Sequence[Outcome]) -> Interval | None:
    """Share of answers that equal what was there."""
    return wilson(sum(outcome.correct for outcome in outcomes), len(outcomes))


def tokens_per_forward(outcomes: Sequence[Outcome]) -> Interval | None:
    """Kept tokens, end tokens included, per forward after prefill."""
    kept = [outcome.attempt.kept_tokens for outcome in outcomes]
    return ratio_of_sums(kept, [outcome.attempt.forwards for outcome in outcomes])


def time_ratio(ours: Sequence[Outcome], theirs: Sequence[Outcome], *, cold: bool = False) -> Interval | None:
    """Our total time over theirs on the same holes; `cold` adds the time to encode the context to both."""
    if len(ours) != len(theirs):
        return None
    sides = (
        [outcome.attempt.milliseconds + cold * outcome.cold_milliseconds for outcome in each] for each in (ours, theirs)
    )
    return ratio_of_sums(*sides)


def select(outcomes: Sequence[Outcome], contender: str, *rows: str, language: str | None = None) -> list[Outcome]:
    """One contender's outcomes in some rows, of one language if given, in the order of their holes."""
    return [
        outcome
        for outcome in outcomes
        if outcome.contender == contender and outcome.hole.row in rows and language in {None, outcome.hole.language}
    ]


def flat_keys(outcomes: Sequence[Outcome], ours: str, baseline: str) -> dict[str, Value]:
    """Every figure of the two contenders, over all kinds first and then by row and by language."""
    flat: dict[str, Value] = {}
    mine, theirs = select(outcomes, ours, *KINDS), select(outcomes, baseline, *KINDS)
    put_interval(flat, "tokens_per_forward", tokens_per_forward(mine))
    put_interval(flat, "tokens_per_forward_left_to_right", tokens_per_forward(theirs))
    put_interval(flat, "vs_left_to_right", time_ratio(mine, theirs))
    put_interval(flat, "vs_left_to_right_cold", time_ratio(mine, theirs, cold=True))
    for name, group in (("", mine), ("_left_to_right", theirs)):
        times = [outcome.attempt.milliseconds for outcome in group]
        flat[f"warm_p50_ms{name}"], flat[f"warm_p95_ms{name}"] = percentile(times, 50), percentile(times, 95)
    for row in KINDS:
        for language in (None, *_languages(outcomes)):
            mine, theirs = (select(outcomes, each, row, language=language) for each in (ours, baseline))
            key = row if language is None else f"{row}.{language}"
            put_interval(flat, f"{key}.exact_match", exact_match(mine))
            put_interval(flat, f"{key}.exact_match_left_to_right", exact_match(theirs))
            put_interval(flat, f"{key}.tokens_per_forward", tokens_per_forward(mine))
            put_interval(flat, f"{key}.vs_left_to_right", time_ratio(mine, theirs))
    return flat


def quality_table(outcomes: Sequence[Outcome], ours: str, baseline: str) -> Table:
    """Exact match, tokens per forward and time by row."""
    rows = []
    for row in KINDS:
        mine, theirs = select(outcomes, ours, row), select(outcomes, baseline, row)
        if mine:
            cells = (percent_cell(exact_match(mine)), percent_cell(exact_match(theirs)))
            ratios = (tokens_per_forward(mine), time_ratio(mine, theirs))
            rows.append((row, str(len(mine)), *cells, *(number_cell(each) for each in ratios)))
    columns = ("gaps", "n", "exact match", "left to right", "tokens per forward", "time / left to right")
    return Table(f"Policy {ours} and the same weights left to right", columns, rows)


def language_table(outcomes: Sequence[Outcome], ours: str) -> Table:
    """Exact match by kind and language."""
    languages = _languages(outcomes)
    rows = [
        (row, *(percent_cell(exact_match(select(outcomes, ours, row, language=each))) for each in languages))
        for row in KINDS
    ]
    return Table(f"Exact match by language, policy {ours}", ("gaps", *languages), rows)


def _languages(outcomes: Sequence[Outcome]) -> list[str]:
    return sorted({outcome.hole.language for outcome in outcomes})
