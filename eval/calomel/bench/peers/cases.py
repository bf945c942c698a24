"""What every contender took for every moment, and what of its answers the author would have kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from calomel.bench.peers.contenders import ALONE, Contender
from calomel.bench.peers.moments import Moment, accepted
from calomel.bench.progress import Progress
from calomel.bench.report import Table, Value, number_cell, put_interval
from calomel.bench.stats import percentile, ratio_of_ratios, ratio_of_sums, wilson


@dataclass(slots=True)
class Case:
    """One moment, by contender.

    Attributes:
        milliseconds: from the question to the answer.
        processor: milliseconds of all processors.
        characters: of the answer's beginning that are right.
        exact: whether all is right.
        prompt: tokens.
        read: how many of them were read anew.
    """

    language: str
    milliseconds: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    characters: dict[str, int] = field(default_factory=dict)
    exact: dict[str, bool] = field(default_factory=dict)
    prompt: dict[str, int] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)


def measure(
    moments: Sequence[Moment],
    contenders: Sequence[Contender],
    context: int,
    progress: Progress,
    clock: Callable[[], float] = time.perf_counter,
    processor: Callable[[], float] = time.process_time,
) -> list[Case]:
    """Ask every contender in turns: one keystroke earlier, untimed, and then at the moment itself."""
    progress.phase("holes", len(moments))
    cases = []
    for turn, moment in enumerate(moments):
        case = Case(moment.hole.language)
        shift = turn % len(contenders)
        for contender in (*contenders[shift:], *contenders[:shift]):
            contender.fill(moment.earlier, context)
            began, busy = clock(), processor()
            answer = contender.fill(moment, context)
            case.milliseconds[contender.name] = (clock() - began) * 1e3
            case.processor[contender.name] = (processor() - busy) * 1e3
            case.characters[contender.name] = accepted(answer.text, moment.hole.answer)
            case.exact[contender.name] = answer.text.rstrip() == moment.hole.answer.rstrip()
            case.prompt[contender.name], case.read[contender.name] = answer.prompt, answer.read
        cases.append(case)
        progress.step()
    return cases


def flat_keys(cases: Sequence[Case], names: Sequence[str]) -> dict[str, Value]:
    """Every figure: time for an accepted character and exact match of each, and the first one's over the others'.

    Those of the model alone over the others' too, with `alone_` in front.
    """
    flat: dict[str, Value] = {"n": len(cases)}
    for name in names:
        put_interval(flat, f"ms_per_character_{name}", ratio_of_sums(*_sides(cases, name)))
        put_interval(flat, f"processor_ms_per_character_{name}", ratio_of_sums(*_processor_sides(cases, name)))
        put_interval(flat, f"exact_match_{name}", wilson(sum(case.exact[name] for case in cases), len(cases)))
        times = times_of(cases, name)
        flat[f"p50_ms_{name}"], flat[f"p95_ms_{name}"] = percentile(times, 50), percentile(times, 95)
        flat[f"accepted_characters_{name}"] = sum(case.characters[name] for case in cases)
        flat[f"prompt_tokens_{name}"] = _mean([case.prompt[name] for case in cases])
        flat[f"read_tokens_{name}"] = _mean([case.read[name] for case in cases])
    for name in names[1:]:
        put_interval(flat, f"vs_{name}", ratio_of_ratios(_sides(cases, names[0]), _sides(cases, name)))
        both = _processor_sides(cases, names[0]), _processor_sides(cases, name)
        put_interval(flat, f"processor_vs_{name}", ratio_of_ratios(*both))
        put_interval(flat, f"time_vs_{name}", ratio_of_sums(times_of(cases, names[0]), times_of(cases, name)))
    for name in names[2:] if ALONE in names else ():
        put_interval(flat, f"alone_vs_{name}", ratio_of_ratios(_sides(cases, ALONE), _sides(cases, name)))
        both = _processor_sides(cases, ALONE), _processor_sides(cases, name)
        put_interval(flat, f"alone_processor_vs_{name}", ratio_of_ratios(*both))
        put_interval(flat, f"alone_time_vs_{name}", ratio_of_sums(times_of(cases, ALONE), times_of(cases, name)))
    return flat


def as_right_as(flat: dict[str, Value], cases: Sequence[Case], twin: str, model: str) -> None:
    """Add `vs_TWIN_as_right_as_MODEL`: ours over `twin`, had that as many characters right as `model` had.

    And the same of processor time, `processor_vs_TWIN_as_right_as_MODEL`.
    """
    most = max(sum(case.characters[name] for case in cases) for name in (twin, model))
    for kind, times in (("", times_of(cases, twin)), ("processor_", _processor_sides(cases, twin)[0])):
        mine = flat[f"{kind}ms_per_character_ours"]
        known = isinstance(mine, float) and most > 0 and sum(times) > 0
        flat[f"{kind}vs_{twin}_as_right_as_{model}"] = mine * most / sum(times) if known else None  # type: ignore[operator]


def table(cases: Sequence[Case], names: Sequence[str]) -> Table:
    """A row for each contender."""
    rows = []
    for name in names:
        times = times_of(cases, name)
        per = ratio_of_sums(*_sides(cases, name))
        busy = ratio_of_sums(*_processor_sides(cases, name))
        rows.append(
            (
                name.replace("_", " "),
                number_cell(percentile(times, 50), 1),
                number_cell(percentile(times, 95), 1),
                number_cell(_mean([case.prompt[name] for case in cases]), 0),
                number_cell(_mean([case.read[name] for case in cases]), 1),
                str(sum(case.characters[name] for case in cases)),
                number_cell(None if per is None else per.value, 1),
                number_cell(None if busy is None else busy.value, 1),
                f"{sum(case.exact[name] for case in cases)} of {len(cases)}",
            )
        )
    columns = (
        "engine", "p50 ms", "p95 ms", "prompt tokens", "read anew", "accepted characters", "ms per accepted character",
        "processor ms per character", "exact",
    )  # fmt: skip
    return Table("The same weights, the same holes", columns, tuple(rows))


def ratio_table(flat: dict[str, Value], names: Sequence[str]) -> Table:
    """Ours over each other one: milliseconds for an accepted character, and milliseconds alone."""
    rows = [
        (
            name.replace("_", " "),
            *(_bounded(flat, f"{kind}_{name}") for kind in ("vs", "processor_vs", "time_vs")),
        )
        for name in names[1:]
    ]
    rows += [
        (
            f"{name.replace('_', ' ')}, model alone",
            *(_bounded(flat, f"alone_{kind}_{name}") for kind in ("vs", "processor_vs", "time_vs")),
        )
        for name in names
        if f"alone_vs_{name}" in flat
    ]
    rows += [
        (key.removeprefix("vs_").replace("_", " "), _bounded(flat, key), _bounded(flat, f"processor_{key}"), "-")
        for key in flat
        if key.startswith("vs_") and "_as_right_as_" in key
    ]
    return Table(
        "Ours over theirs", ("ours over", "ms per accepted character", "processor ms", "ms of an answer"), tuple(rows)
    )


def times_of(cases: Sequence[Case], name: str) -> list[float]:
    """Milliseconds of one contender."""
    return [case.milliseconds[name] for case in cases]


def _sides(cases: Sequence[Case], name: str) -> tuple[list[float], list[float]]:
    return times_of(cases, name), [float(case.characters[name]) for case in cases]


def _processor_sides(cases: Sequence[Case], name: str) -> tuple[list[float], list[float]]:
    return [case.processor[name] for case in cases], [float(case.characters[name]) for case in cases]


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None


def _bounded(flat: dict[str, Value], key: str) -> str:
    value, low, high = flat[key], flat.get(f"{key}_low"), flat.get(f"{key}_high")
    bounds = f" [{low:.2f}, {high:.2f}]" if isinstance(low, float) and isinstance(high, float) else ""
    return number_cell(value if isinstance(value, float) else None) + bounds
