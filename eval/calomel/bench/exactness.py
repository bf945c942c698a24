"""Whether `verified` gives left-to-right's own tokens in bfloat16, where a batched forward rounds differently."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from calomel.bench.holes import Hole
from calomel.bench.model import LEFT_TO_RIGHT, OpenModel
from calomel.bench.progress import Progress
from calomel.bench.report import Value, put_interval
from calomel.bench.stats import wilson


@dataclass(frozen=True, slots=True)
class Exactness:
    """Counts over answers, and over positions up to the end of the longer answer of each two."""

    answers: int
    differing_answers: int
    positions: int
    differing_positions: int

    def flat(self) -> dict[str, Value]:
        """The keys of the report, with Wilson's intervals."""
        keys: dict[str, Value] = {}
        put_interval(keys, "bf16_verified_mismatch_rate", wilson(self.differing_answers, self.answers))
        put_interval(keys, "bf16_verified_token_mismatch_rate", wilson(self.differing_positions, self.positions))
        return keys


def bf16_exactness(
    model: OpenModel, holes: Sequence[Hole], *, context: int, progress: Progress, seconds: float | None = None
) -> Exactness:
    """Answer the holes with both policies of a model loaded in bfloat16; ends early after `seconds`."""
    started = time.monotonic()
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for hole in holes:
        if seconds is not None and time.monotonic() - started > seconds:
            break
        verified, causal = (
            model.fill(hole, policy=policy, max_steps=None, max_tokens=hole.max_tokens, max_context=context).result.ids
            for policy in ("verified", LEFT_TO_RIGHT)
        )
        pairs.append((verified, causal))
        progress.step()
    return compare(pairs)


def compare(pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> Exactness:
    """Count what differs; a position that only one of the two answers has differs."""
    return Exactness(
        answers=len(pairs),
        differing_answers=sum(first != second for first, second in pairs),
        positions=sum(max(len(first), len(second)) for first, second in pairs),
        differing_positions=sum(a != b for first, second in pairs for a, b in zip_longest(first, second)),
    )
