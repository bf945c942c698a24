"""How near a shown suggestion came to what the person made of its lines."""

from __future__ import annotations

from collections.abc import Callable

from calomel.bench.stats import Interval
from calomel.replay.metrics.chrf import delta_chrf
from calomel.replay.metrics.lines import is_exact, is_no_op, line_score, position_error
from calomel.replay.metrics.offers import Offers, seen
from calomel.replay.opportunity import Shown
from calomel.replay.resampling import Resampling

_SIGNALS = ("reversal_ratio", "parse_error_delta")


def quality(offers: Offers, resampling: Resampling) -> dict[str, Interval | None]:
    """Means over the shown suggestions of which the person's own text is known; signals over those that have them."""
    found = [seen(item) for item in offers.ours]
    rest = len(offers.theirs)

    def sums(value: Callable[[Shown], float | None]) -> tuple[list[float], list[float]]:
        values = [None if shown is None else value(shown) for shown in found]
        return (
            [*(each or 0.0 for each in values), *([0.0] * rest)],
            [*(float(each is not None) for each in values), *([0.0] * rest)],
        )

    def mean(value: Callable[[Shown], float | None]) -> Interval | None:
        return resampling.ratio(*sums(value))

    def share(value: Callable[[Shown], float | None]) -> Interval | None:
        return resampling.share(*sums(value))

    def best(score: Callable[[str, str, str], float]) -> Callable[[Shown], float | None]:
        return lambda shown: max((score(shown.before, shown.after, each) for each in right(shown)), default=None)

    figures = {
        "exact_match": share(best(lambda _, after, expected: float(is_exact(after, expected)))),
        "delta_chrf": mean(best(delta_chrf)),
        "line_f1": mean(best(lambda before, after, expected: line_score(before, after, expected).f1)),
        "position_error": mean(_position),
        "no_op_rate": share(lambda shown: float(is_no_op(shown.before, shown.after))),
    }
    for name in _SIGNALS:
        figures[name] = mean(lambda shown, name=name: shown.signals.get(name))  # type: ignore[misc]
    return figures


def right(shown: Shown) -> tuple[str, ...]:
    """The texts of its lines that are right: what a scenario calls so, else what the person made of them."""
    named = tuple(each for each in shown.alternatives if each is not None)
    return named or (() if shown.expected is None else (shown.expected,))


def _position(shown: Shown) -> float | None:
    errors = [position_error(shown.before, shown.after, each) for each in right(shown)]
    return min((float(each) for each in errors if each is not None), default=None)
