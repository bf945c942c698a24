"""How likely texts are behind one context, exactly: the causal mode of the model reads them, and decides nothing.

The first text is the one that all others are alternatives of. What they have in common with it at their beginning is
read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calomel.engine import Request, Result


@dataclass(frozen=True, slots=True)
class Judged:
    """A text as token ids, the log-probability of each, and of the end behind them."""

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    end_log_prob: float

    @property
    def log_prob(self) -> float:
        """Of the whole text and the end behind it, in nats."""
        return sum(self.log_probs) + self.end_log_prob


class Judge:
    """Makes requests that judge texts, and remembers what came of them.

    Args:
        like: a request with the context, the deadline and the priority of all.
    """

    def __init__(self, like: Request) -> None:
        self._like = like
        self._first = Judged((), (), 0.0)
        self._known: dict[tuple[int, ...], Judged] = {}

    def opening(self, ids: tuple[int, ...]) -> Request:
        """The request that judges the first text; its context and the text stay in the cache for the others."""
        return replace(self._like, given=ids, reuse=None)

    def open(self, result: Result) -> Judged:
        """The first text, judged."""
        self._first = self._keep(result.ids, result.log_probs, result.end_log_prob)
        return self._first

    def unknown(self, texts: Iterable[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
        """Those of `texts` that are not judged yet, each once."""
        return tuple(ids for ids in dict.fromkeys(texts) if ids not in self._known)

    def request(self, ids: tuple[int, ...]) -> Request:
        """The request that judges another text."""
        common = self._common(ids)
        return replace(self._like, context=(*self._like.context, *ids[:common]), given=ids[common:])

    def read(self, texts: Sequence[tuple[int, ...]], results: Sequence[Result | None]) -> None:
        """Take in the results of `request` for each of `texts`; None for one that was not judged in time."""
        for ids, result in zip(texts, results, strict=True):
            if result is not None:
                before = self._first.log_probs[: self._common(ids)]
                self._keep(ids, (*before, *result.log_probs), result.end_log_prob)

    def take(self, ids: tuple[int, ...], result: Result) -> None:
        """Take in a text that begins as the first one does and that the causal mode itself wrote to its end."""
        begin = len(ids) - len(result.ids)
        self._keep(ids, (*self._first.log_probs[:begin], *result.log_probs), result.end_log_prob)

    def judged(self, ids: tuple[int, ...]) -> Judged | None:
        """What is known of a text."""
        return self._known.get(ids)

    def _common(self, ids: Sequence[int]) -> int:
        first = self._first.ids
        pairs = zip(first, ids, strict=False)
        return next((at for at, (ours, theirs) in enumerate(pairs) if ours != theirs), min(len(first), len(ids)))

    def _keep(self, ids: tuple[int, ...], log_probs: tuple[float, ...], end: float | None) -> Judged:
        self._known[ids] = found = Judged(ids, log_probs, 0.0 if end is None else end)
        return found
