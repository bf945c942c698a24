"""Timings of the speed bench to flat keys and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from calomel.bench.cells import Cell, size_name
from calomel.bench.model import LEFT_TO_RIGHT
from calomel.bench.report import Table, Value, number_cell, put_interval
from calomel.bench.stats import Interval, percentile, percentile_interval, ratio_of_sums

# `warm_2k_p50_ms` and its like are for answers of this length.
TYPICAL_ANSWER = 32
OURS = "policy"


@dataclass(frozen=True, slots=True)
class Timing:
    """One timed call.

    Attributes:
        milliseconds: the whole call.
        kept_tokens: answer tokens plus one for an end token.
        forwards: all forwards after prefill.
        denoise_milliseconds: the part of the call after prefill, as the engine counts it.
    """

    milliseconds: float
    kept_tokens: int
    forwards: int
    prompt_tokens: int
    cached_tokens: int
    denoise_milliseconds: float


Records = Sequence[Mapping[str, Any]]


def flat_timings(records: Records, cells: Sequence[Cell], contenders: Sequence[str]) -> dict[str, Value]:
    """Every figure: over all cells, for the typical answer by context, then cell by cell."""
    flat: dict[str, Value] = {}
    put_interval(flat, "tokens_per_forward", _tokens_per(records, OURS, "forwards"))
    put_interval(flat, "vs_left_to_right", _time_ratio(records, "warm"))
    put_interval(flat, "vs_left_to_right_cold", _time_ratio(records, "cold"))
    for cell in cells:
        mine = [record for record in records if record["cell"] == cell.name]
        typical = cell.answer == TYPICAL_ANSWER
        for name in contenders:
            tail = "" if name == OURS else f"_{name}"
            for state in ("warm", "cold"):
                times = _values(mine, name, state, "milliseconds")
                for rank in (50, 95):
                    interval = percentile_interval(times, rank)
                    put_interval(flat, f"{cell.name}.{state}_p{rank}_ms{tail}", interval)
                    if typical:
                        put_interval(flat, f"{state}_{size_name(cell.context)}_p{rank}_ms{tail}", interval)
            flat[f"{cell.name}.kept_tokens{tail}"] = _mean(_values(mine, name, "warm", "kept_tokens"))
            flat[f"{cell.name}.prompt_tokens{tail}"] = _mean(_values(mine, name, "warm", "prompt_tokens"))
            flat[f"{cell.name}.cached_tokens{tail}"] = _mean(_values(mine, name, "warm", "cached_tokens"))
            put_interval(flat, f"{cell.name}.tokens_per_forward{tail}", _tokens_per(mine, name, "forwards"))
            put_interval(flat, f"{cell.name}.tokens_per_second{tail}", _tokens_per_second(mine, name))
        put_interval(flat, f"{cell.name}.vs_left_to_right", _time_ratio(mine, "warm"))
    return flat


def timing_table(records: Records, cells: Sequence[Cell]) -> Table:
    """One line a cell, ours next to left to right."""
    rows = []
    for cell in cells:
        mine = [record for record in records if record["cell"] == cell.name]
        if not mine:
            continue
        rows.append(
            (
                f"{size_name(cell.context)} context, {cell.answer} answer",
                str(len(mine)),
                *(_pair(mine, name, state) for state in ("warm", "cold") for name in (OURS, LEFT_TO_RIGHT)),
                number_cell(_value(_tokens_per(mine, OURS, "forwards"))),
                number_cell(_value(_tokens_per_second(mine, OURS)), 0),
                number_cell(_value(_tokens_per_second(mine, LEFT_TO_RIGHT)), 0),
                " / ".join(
                    number_cell(_mean(_values(mine, name, "warm", "kept_tokens")), 1) for name in (OURS, LEFT_TO_RIGHT)
                ),
                number_cell(_value(_time_ratio(mine, "warm"))),
            )
        )
    columns = (
        "tokens",
        "n",
        "warm p50 / p95 ms",
        "left to right",
        "cold p50 / p95 ms",
        "left to right",
        "tokens per forward",
        "tokens/s",
        "left to right",
        "kept, ours / left to right",
        "warm time / left to right",
    )
    return Table("Time by size of context and length of answer", columns, tuple(rows))


def _values(records: Records, contender: str, state: str, field: str) -> list[float]:
    return [float(record[contender][state][field]) for record in records if contender in record]


def _tokens_per(records: Records, contender: str, field: str) -> Interval | None:
    return ratio_of_sums(_values(records, contender, "warm", "kept_tokens"), _values(records, contender, "warm", field))


def _tokens_per_second(records: Records, contender: str) -> Interval | None:
    tokens = _values(records, contender, "warm", "kept_tokens")
    return ratio_of_sums(tokens, [time / 1e3 for time in _values(records, contender, "warm", "milliseconds")])


def _time_ratio(records: Records, state: str) -> Interval | None:
    paired = [record for record in records if LEFT_TO_RIGHT in record]
    return ratio_of_sums(
        _values(paired, OURS, state, "milliseconds"), _values(paired, LEFT_TO_RIGHT, state, "milliseconds")
    )


def _pair(records: Records, contender: str, state: str) -> str:
    times = _values(records, contender, state, "milliseconds")
    return f"{number_cell(percentile(times, 50), 1)} / {number_cell(percentile(times, 95), 1)}"


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _value(interval: Interval | None) -> float | None:
    return None if interval is None else interval.value
