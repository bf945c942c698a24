"""The four plots of a replay."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from calomel.bench.stats import wilson
from calomel.replay.metrics.latency import was_asked
from calomel.replay.opportunity import LogResult
from calomel.report.svg import Axis, Plot

_SHARES: Final = tuple((tenth / 10, f"{tenth * 10}%") for tenth in range(0, 11, 2))
_CONFIDENCES: Final = tuple((tenth / 10, f"{tenth / 10:.1f}") for tenth in range(0, 11, 2))
_MOST_POINTS: Final = 400
_TIMELINE_BARS: Final = 96
_STACK: Final = ("accepted", "partly", "rejected", "superseded", "too_short")
_FASTEST_MS: Final = 1.0
_BARS_PER_DECADE: Final = 8
_FEWEST_DECADES: Final = 2


def precision_coverage_plot(summary: Mapping[str, Any]) -> str:
    """The share taken of the surest, by how many are shown."""
    plot = Plot(
        "Precision by coverage: the share accepted among the surest suggestions",
        "precision-coverage",
        Axis("shown, the surest first", 0, 1, _SHARES),
        Axis("accepted of them", 0, 1, _SHARES),
    )
    points = [(point["coverage"], point["precision"]) for point in summary["precision_coverage"]]
    thinned = points[:: max(1, math.ceil(len(points) / _MOST_POINTS))]
    if points:
        plot.line([(0, points[-1][1]), (1, points[-1][1])], "guide", data=False)
        plot.line([*thinned, points[-1]], "curve")
        plot.dot(*points[-1], 4, "curve-dot", f"all: {points[-1][1]:.1%}")
        area = summary.get("aurc")
        plot.words(0.98, 0.94, f"AURC {area:.3f}" if area is not None else "", "end")
    return plot.to_svg()


def reliability_plot(summary: Mapping[str, Any]) -> str:
    """The share taken by confidence, with bounds; the diagonal is a confidence that can be taken at its word."""
    plot = Plot(
        "Reliability: the share accepted by confidence",
        "reliability",
        Axis("confidence", 0, 1, _CONFIDENCES),
        Axis("accepted", 0, 1, _SHARES),
    )
    plot.line([(0, 0), (1, 1)], "guide", data=False)
    most = max((each["size"] for each in summary["reliability"]), default=1)
    for each in summary["reliability"]:
        bounds = wilson(round(each["taken"] * each["size"]), each["size"])
        if bounds is not None:
            plot.line([(each["confidence"], bounds.low), (each["confidence"], bounds.high)], "whisker", data=False)
        note = f"{each['size']} suggestions, confidence {each['confidence']:.2f}, accepted {each['taken']:.1%}"
        plot.dot(each["confidence"], each["taken"], 3 + 7 * math.sqrt(each["size"] / most), "bin-dot", note)
    if summary.get("ece") is not None:
        plot.words(0.02, 0.94, f"ECE {summary['ece']:.3f}")
    return plot.to_svg()


def timeline_plot(results: Sequence[LogResult]) -> str:
    """What was shown and what became of it, over the time of the logs, one behind another."""
    starts = [0.0, *accumulate(result.seconds for result in results)]
    whole = starts[-1] or 1.0
    width = whole / _TIMELINE_BARS
    bars: Counter[tuple[int, str]] = Counter()
    for start, result in zip(starts[:-1], results, strict=True):
        for item in result.opportunities:
            if item.candidate is not None and (item.shown or item.candidate.outcome == "superseded"):
                place = min(_TIMELINE_BARS - 1, int((start + item.time) / width))
                bars[place, item.candidate.outcome] += 1
    tallest = max((sum(bars[at, name] for name in _STACK) for at in range(_TIMELINE_BARS)), default=0) or 1
    plot = Plot(
        "Timeline: suggestions shown, accepted and rejected",
        "timeline",
        Axis("minutes of the logs", 0, whole, [(whole * part / 4, f"{whole * part / 240:.0f}") for part in range(5)]),
        Axis("suggestions", 0, tallest, [(value, str(value)) for value in _whole_ticks(tallest)]),
    )
    for at in range(_TIMELINE_BARS):
        bottom = 0
        for name in _STACK:
            count = bars[at, name]
            note = f"{name.replace('_', ' ')}: {count}"
            plot.bar(at * width, (at + 1) * width, bottom, bottom + count, f"outcome-{name}", note)
            bottom += count
    for start in starts[1:-1] if len(results) <= _TIMELINE_BARS else ():
        plot.line([(start, 0), (start, tallest)], "guide", data=False)
    return plot.to_svg()


def latency_plot(summary: Mapping[str, Any], results: Sequence[LogResult]) -> str:
    """Milliseconds from question to answer, on a logarithmic scale."""
    values = [
        max(_FASTEST_MS, item.latency_ms) for result in results for item in result.opportunities if was_asked(item)
    ]
    decades = max(_FEWEST_DECADES, math.ceil(math.log10(max(values, default=_FASTEST_MS) + 1)))
    bars = Counter(min(decades * _BARS_PER_DECADE - 1, int(math.log10(value) * _BARS_PER_DECADE)) for value in values)
    tallest = max(bars.values(), default=1)
    plot = Plot(
        "Latency: milliseconds from question to answer",
        "latency",
        Axis(
            "milliseconds",
            _FASTEST_MS,
            10.0**decades,
            [(10.0**power, f"{10**power:,}") for power in range(decades + 1)],
            lambda value: math.log10(max(_FASTEST_MS, value)) / decades,
        ),
        Axis("questions", 0, tallest, [(value, str(value)) for value in _whole_ticks(tallest)]),
    )
    for at, count in sorted(bars.items()):
        left, right = (10 ** (end / _BARS_PER_DECADE) for end in (at, at + 1))
        plot.bar(left, right, 0, count, "latency-bar", f"{left:,.0f} to {right:,.0f} ms: {count}")
    for percent in (50, 95):
        value = summary.get(f"latency_p{percent}_ms")
        if values and value is not None:
            plot.line([(value, 0), (value, tallest)], "whisker", data=False)
            plot.words(value * 1.04, tallest * (0.98 if percent == 50 else 0.9), f"p{percent} {value:,.0f} ms")  # noqa: PLR2004
    return plot.to_svg()


def _whole_ticks(most: int) -> list[int]:
    """About five whole numbers from 0 to `most`."""
    step = max(1, math.ceil(most / 5))
    return list(range(0, most + 1, step))
