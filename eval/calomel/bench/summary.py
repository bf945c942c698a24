"""Outcomes to flat keys and tables: one row a kind of hole, for the contender and for left to right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calomel.bench.collect import Outcome
from calomel.bench.holes import KINDS, REST_OF_LINE, TOKEN_ALIGNED
from calomel.bench.humaneval import RANDOM_SPAN, SINGLE_LINE
from calomel.bench.report import Table, Value, number_cell, percent_cell, put_interval
from calomel.bench.stats import Interval, paired_difference, percentile, ratio_of_sums, wilson

ROWS = (*KINDS, TOKEN_ALIGNED, SINGLE_LINE, RANDOM_SPAN)
TESTED_ROWS = (SINGLE_LINE, RANDOM_SPAN)


def exact_match(outcomes: Sequence[Outcome]) -> Interval | None:
    """Share of answers that equal what was there."""
    return wilson(sum(outcome.correct for outcome in outcomes), len(outcomes))


def pass_at_1(outcomes: Sequence[Outcome]) -> Interval | None:
    """Share of answers whose program passed its tests, among those with tests."""
    tested = [outcome.passed for outcome in outcomes if outcome.passed is not None]
    return wilson(sum(tested), len(tested))


def tokens_per_forward(outcomes: Sequence[Outcome]) -> Interval | None:
    """Kept tokens with their end tokens, over all forwards after prefill."""
    return ratio_of_sums(
        [outcome.attempt.kept_tokens for outcome in outcomes], [outcome.attempt.forwards for outcome in outcomes]
    )


def time_ratio(ours: Sequence[Outcome], theirs: Sequence[Outcome], *, cold: bool = False) -> Interval | None:
    """Our total time over theirs on the same holes; `cold` adds to both what encoding the context took."""
    if len(ours) != len(theirs):
        return None
    return ratio_of_sums(
        [outcome.attempt.milliseconds + cold * outcome.cold_milliseconds for outcome in ours],
        [outcome.attempt.milliseconds + cold * outcome.cold_milliseconds for outcome in theirs],
    )


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
    put_interval(
        flat,
        "exact_match_minus_left_to_right",
        paired_difference(
            [outcome.correct for outcome in select(outcomes, ours, REST_OF_LINE)],
            [outcome.correct for outcome in select(outcomes, baseline, REST_OF_LINE)],
        ),
    )
    for row in ROWS:
        mine, theirs = select(outcomes, ours, row), select(outcomes, baseline, row)
        _put_row(flat, row, mine, theirs)
        if row in TESTED_ROWS:
            put_interval(flat, f"{row}.pass_at_1", pass_at_1(mine))
            put_interval(flat, f"{row}.pass_at_1_left_to_right", pass_at_1(theirs))
            continue
        for language in sorted({outcome.hole.language for outcome in mine}):
            _put_row(flat, f"{row}.{language}", _speaking(mine, language), _speaking(theirs, language))
    return flat


def quality_table(outcomes: Sequence[Outcome], ours: str, baseline: str) -> Table:
    """Exact match, pass@1, tokens per forward and time by row."""
    rows = []
    for row in ROWS:
        mine, theirs = select(outcomes, ours, row), select(outcomes, baseline, row)
        if not mine:
            continue
        tested = row in TESTED_ROWS
        rows.append(
            (
                row,
                str(len(mine)),
                percent_cell(exact_match(mine)),
                percent_cell(exact_match(theirs)),
                percent_cell(pass_at_1(mine)) if tested else "-",
                percent_cell(pass_at_1(theirs)) if tested else "-",
                number_cell(_value(tokens_per_forward(mine))),
                number_cell(_value(time_ratio(mine, theirs))),
            )
        )
    columns = (
        "holes",
        "n",
        "exact match",
        "left to right",
        "pass@1",
        "left to right",
        "tokens per forward",
        "time / left to right",
    )
    return Table(f"Policy {ours} and the same weights left to right", columns, tuple(rows))


def language_table(outcomes: Sequence[Outcome], ours: str) -> Table:
    """Exact match of the held-out kinds by language."""
    languages = sorted({outcome.hole.language for outcome in outcomes if outcome.hole.row in KINDS})
    rows = tuple(
        (row, *(percent_cell(exact_match(_speaking(select(outcomes, ours, row), language))) for language in languages))
        for row in (*KINDS, TOKEN_ALIGNED)
    )
    return Table(f"Exact match by language, policy {ours}", ("holes", *languages), rows)


def sweep(outcomes: Sequence[Outcome], contenders: Sequence[str], baseline: str) -> tuple[Table, Mapping[str, Value]]:
    """One line a policy: exact match, tokens per forward and time, to choose a default by."""
    flat: dict[str, Value] = {}
    rows = []
    theirs = select(outcomes, baseline, *KINDS)
    for name in contenders:
        mine = select(outcomes, name, *KINDS)
        line = [outcome for outcome in mine if outcome.hole.row == REST_OF_LINE]
        span = select(outcomes, name, *TESTED_ROWS)
        times = [outcome.attempt.milliseconds for outcome in mine]
        figures = {
            "rest_of_line.exact_match": exact_match(line),
            "exact_match": exact_match(mine),
            "pass_at_1": pass_at_1(span),
            "tokens_per_forward": tokens_per_forward(mine),
            "vs_left_to_right": time_ratio(mine, theirs),
        }
        for key, interval in figures.items():
            put_interval(flat, f"sweep.{name}.{key}", interval)
        flat[f"sweep.{name}.warm_p50_ms"] = percentile(times, 50)
        rows.append(
            (
                name,
                str(len(mine)),
                percent_cell(figures["rest_of_line.exact_match"]),
                percent_cell(figures["exact_match"]),
                percent_cell(figures["pass_at_1"]),
                number_cell(_value(figures["tokens_per_forward"])),
                number_cell(percentile(times, 50), 1),
                number_cell(percentile(times, 95), 1),
                number_cell(_value(figures["vs_left_to_right"])),
            )
        )
    columns = (
        "policy",
        "n",
        "exact match, rest of line",
        "exact match, all held-out",
        "pass@1",
        "tokens per forward",
        "p50 ms",
        "p95 ms",
        "time / left to right",
    )
    return Table("Policies", columns, tuple(rows)), flat


def _put_row(flat: dict[str, Value], row: str, mine: Sequence[Outcome], theirs: Sequence[Outcome]) -> None:
    put_interval(flat, f"{row}.exact_match", exact_match(mine))
    put_interval(flat, f"{row}.exact_match_left_to_right", exact_match(theirs))
    put_interval(flat, f"{row}.tokens_per_forward", tokens_per_forward(mine))
    put_interval(flat, f"{row}.vs_left_to_right", time_ratio(mine, theirs))


def _speaking(outcomes: Sequence[Outcome], language: str) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.hole.language == language]


def _value(interval: Interval | None) -> float | None:
    return None if interval is None else interval.value
