"""From what is known of a suggestion to the numbers that a calibrator weighs.

The same function serves the language server, a fit on replays and a refit on a user's outcome log: all three have the
signals by name, as the outcome log stores them, and no text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final

# The model's own proposals for an edit were chosen by the likelihood that then judges them: theirs is too good by that.
OWN: Final = frozenset({"canvas", "seeded", "verified"})
# Nats; further apart makes no difference any more.
_FURTHEST: Final = 30.0
# Beyond that a number in a log is a mistake.
_LARGEST: Final = 1e9
# Where a straight line may bend. Nats a token, nats in all, nats of a ratio, characters.
_BENDS: Final[Mapping[str, tuple[float, ...]]] = {
    "mean_log_prob": (-0.15, -0.4, -1.0),
    "log_prob": (-1.0, -4.0, -12.0),
    "min_log_prob": (-0.7, -2.0),
    "ratio": (-4.0, 0.0, 4.0),
    "margin": (-2.0, 0.0, 2.0),
    "inserted": (4.0, 12.0, 32.0),
}
# Cross-validated on training packages, products of these took the AUROC of edits from 0.916 to 0.931.
_OF_MAKERS: Final = ("ratio", "support", "distance", "log inserted")
_PAIRED: Final = (
    *_OF_MAKERS, "log removed", "repeats", "rivals", "agreeing", "known_words", "mean_log_prob",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Subject:
    """What is known of one suggestion.

    Attributes:
        kind: `fill` or `edit`.
        maker: who proposed it.
        language: of the document.
        signals: `OutcomeSignals` by name; what is None or absent is not known.
    """

    kind: str
    maker: str = ""
    language: str = ""
    signals: Mapping[str, Any] = field(default_factory=dict)

    def number(self, name: str, default: float = 0.0) -> float:
        """A signal as a number that sums can stand; what is not known, or no number, is the default."""
        value = self.signals.get(name)
        if not isinstance(value, int | float) or not -_LARGEST < value < _LARGEST:
            return default
        return float(value)

    def count(self, name: str) -> float:
        """A signal that cannot be negative."""
        return max(0.0, self.number(name))


def features(subject: Subject) -> dict[str, float]:
    """Numbers of about one size, by name. What is not there is zero."""
    found = dict(_of_the_model(subject))
    found.update(_of_the_change(subject))
    found.update(_of_the_moment(subject))
    found.update(_names(subject))
    found.update(_products(subject, found))
    return {name: value for name, value in found.items() if value}


def _of_the_model(subject: Subject) -> Iterator[tuple[str, float]]:
    number, count, signals = subject.number, subject.count, subject.signals
    mean = max(-_FURTHEST, number("mean_log_prob", -_FURTHEST if subject.maker else 0.0))
    yield from _bent("mean_log_prob", mean, 1.0)
    yield from _bent("min_log_prob", max(-_FURTHEST, number("min_log_prob")), 3.0)
    if signals.get("log_prob") is not None:
        yield "judged", 1.0
        yield from _bent("log_prob", max(-_FURTHEST, number("log_prob")), 10.0)
        ratio = max(-_FURTHEST, min(_FURTHEST, number("log_prob") - number("keep_log_prob")))
        yield from _bent("ratio", ratio, 10.0)
        yield "ratio of a draft", 0.0 if subject.maker in OWN else ratio / 10
        yield "keep_log_prob", max(-_FURTHEST, number("keep_log_prob")) / 10
    else:
        yield from _bent("log_prob", max(-_FURTHEST, mean * (number("tokens") + 1)), 10.0)
    yield "mean_entropy", min(5.0, number("mean_entropy"))
    yield "max_entropy", min(8.0, number("max_entropy")) / 3
    yield "end_log_prob", max(-10.0, number("end_log_prob")) / 3
    yield "no end", float(signals.get("end_log_prob") is None)
    yield "steps", math.log1p(count("steps")) / 2
    yield "support", math.log1p(count("support"))
    yield "agreeing", math.log1p(count("agreeing"))
    yield "rivals", math.log1p(count("rivals"))
    if signals.get("margin") is not None:
        yield from _bent("margin", max(-_FURTHEST, min(_FURTHEST, number("margin"))), 10.0)


def _of_the_change(subject: Subject) -> Iterator[tuple[str, float]]:
    number, count = subject.number, subject.count
    yield from _bent("inserted", min(200.0, number("characters_inserted")), 20.0)
    yield "log inserted", math.log1p(count("characters_inserted")) / 3
    yield "log removed", math.log1p(count("characters_removed")) / 3
    yield "only removes", float(not number("characters_inserted"))
    yield "only inserts", float(not number("characters_removed"))
    yield "lines_inserted", min(5.0, number("lines_inserted")) / 2
    yield "lines_removed", min(5.0, number("lines_removed")) / 2
    yield "edits", math.log1p(max(0.0, number("edits") - 1))
    yield "cut", math.log1p(count("cut")) / 3
    yield "known_words", number("known_words")
    yield "no words", float(subject.signals.get("known_words") is None)
    yield "repeats", math.log1p(count("repeats"))


def _of_the_moment(subject: Subject) -> Iterator[tuple[str, float]]:
    number, count = subject.number, subject.count
    yield "distance", math.log1p(count("distance")) / 3
    yield "line_before", math.log1p(count("line_before")) / 3
    yield "line is empty", float(not number("line_before") and not number("line_after"))
    yield "line_after", math.log1p(count("line_after")) / 3
    yield "at line end", float(not number("line_after"))
    yield "word_before", math.log1p(count("word_before")) / 2
    yield "since_edit", math.log1p(min(60.0, count("since_edit"))) / 3
    yield "recent edits", math.log1p(count("recent_edits"))
    yield "recent replacements", math.log1p(count("recent_replacements"))
    yield "recent inserted", math.log1p(count("recent_inserted")) / 3
    yield "recent removed", math.log1p(count("recent_removed")) / 3
    yield "last inserted", math.log1p(count("last_inserted")) / 3
    yield "last removed", math.log1p(count("last_removed")) / 3
    yield "last only inserts", float(bool(number("last_inserted")) and not number("last_removed"))
    decided = count("accepted") + count("rejected")
    yield "accepted lately", (count("accepted") + 1) / (decided + 2) - 0.5


def _names(subject: Subject) -> Iterator[tuple[str, float]]:
    for name in ("before", "place", "finish_reason"):
        value = subject.signals.get(name)
        if isinstance(value, str) and value:
            yield f"{name}:{value}", 1.0
    yield f"maker:{subject.maker or 'canvas'}", 1.0
    if subject.language:
        # A tenth: a language takes a hundred times as much evidence as a maker, since few packages stand for it.
        yield f"language:{subject.language}", 0.1


def _products(subject: Subject, found: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """What one number means where another one is large; and what an edit's numbers mean of its maker."""
    for one, other in combinations(_PAIRED, 2):
        yield f"{one}*{other}", found.get(one, 0.0) * found.get(other, 0.0)
    if subject.kind == "edit":
        for name in _OF_MAKERS:
            yield f"{subject.maker or 'canvas'}*{name}", found.get(name, 0.0)


def _bent(name: str, value: float, size: float) -> Iterator[tuple[str, float]]:
    """A number, and how far it is beyond each bend: so a sum of weights can follow a curve."""
    yield name, value / size
    for bend in _BENDS.get(name, ()):
        yield f"{name}>{bend:g}", max(0.0, value - bend) / size
