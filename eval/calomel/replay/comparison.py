"""Two runs beside each other, opportunity by opportunity where both had the same one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

from rich.table import Table

from calomel.bench.stats import Interval
from calomel.replay.metrics.offers import seen
from calomel.replay.metrics.rates import is_accepted, is_seen, is_wasted
from calomel.replay.opportunity import LogResult, Opportunity
from calomel.replay.resampling import Resampling
from calomel.replay.summary_table import cell

Key: TypeAlias = tuple[str, int, str, str]

_PAIRED: Final[dict[str, Callable[[Opportunity], float]]] = {
    "characters_per_opportunity": lambda item: float(found.saved_characters) if (found := seen(item)) else 0.0,
    "shown_rate": lambda item: float(is_seen(item)),
    "accepted_per_opportunity": lambda item: float(is_accepted(item)),
    "wasted_per_opportunity": lambda item: float(is_wasted(item)),
    "latency_ms": lambda item: item.latency_ms,
}
_UNPAIRED: Final = {"acceptance_rate": None, "kept_rate": None, "auroc": 3, "aurc": 3, "ece": 3, "latency_p95_ms": 0}


class ComparisonError(Exception):
    """Two files cannot be compared; the message is a sentence for their user."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from one run to the other.

    Attributes:
        matched: opportunities that both runs had.
        only_first, only_second: those that one had alone.
        differences: second less first, over the matched ones; an interval that contains 0 shows no change.
        first, second: the figures of each.
    """

    matched: int
    only_first: int
    only_second: int
    differences: Mapping[str, Interval]
    first: Mapping[str, Any]
    second: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Counts and differences by name."""
        return {
            "matched": self.matched,
            "only_first": self.only_first,
            "only_second": self.only_second,
            "differences": {name: asdict(interval) for name, interval in self.differences.items()},
        }

    def to_table(self) -> Table:
        """For a terminal."""
        table = Table(
            "figure",
            "first",
            "second",
            "second less first, paired",
            title="Two runs",
            title_justify="left",
            caption=f"{self.matched:,} opportunities in both, {self.only_first:,} in the first alone, "
            f"{self.only_second:,} in the second alone",
        )
        for name, interval in self.differences.items():
            sides = [cell(run, name, 3) for run in (self.first, self.second)]
            table.add_row(name, *sides, f"{interval.value:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]")
        for name, digits in _UNPAIRED.items():
            table.add_row(name, cell(self.first, name, digits), cell(self.second, name, digits), "-")
        return table


def compare(first: Mapping[str, Any], second: Mapping[str, Any], seed: int = 0) -> Comparison:
    """Two documents of `calomel.replay.summary.document`. Raises ComparisonError for anything else."""
    ours, theirs = _opportunities(first, "first"), _opportunities(second, "second")
    both = [key for key in ours if key in theirs]
    resampling = Resampling([(ours[key].log, int(ours[key].time // 60)) for key in both], seed)
    ones = [1.0] * len(both)
    differences = {}
    for name, value in _PAIRED.items():
        changes = [value(theirs[key]) - value(ours[key]) for key in both]
        interval = resampling.ratio(changes, ones)
        if interval is not None:
            differences[name] = interval
    return Comparison(len(both), len(ours) - len(both), len(theirs) - len(both), differences, first, second)


def _opportunities(run: Mapping[str, Any], which: str) -> dict[Key, Opportunity]:
    found: dict[Key, Opportunity] = {}
    try:
        for result in run["results"]:
            for item in LogResult.from_json(result).opportunities:
                found[item.log, item.entry, item.kind, item.name] = item
    except (KeyError, TypeError, AttributeError) as error:
        raise ComparisonError(f"the {which} file is no result of `calomel replay --json`: {error!r}") from error
    return found
