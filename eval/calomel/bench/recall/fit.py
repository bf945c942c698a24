"""Fits what recalled texts are worth beside one model's own answers: logistic regressions with an L2 penalty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from calomel.bench.heldout import BenchDataError
from calomel.bench.recall.sample import RecallSample
from calomel.suggest.recall_worth import DRAFT, OWN, PRIOR, RecallWorth, probability

# Squared weights count so much beside the summed log-loss; the bias is free.
_PENALTY: Final = 1.0
_STEPS: Final = 50
_TINY: Final = 1e-9
# Fewer of either kind prove nothing.
FEWEST: Final = 20


def fit(samples: Sequence[RecallSample]) -> RecallWorth:
    """What the recalled texts in `samples` are worth.

    Where a recalled text is likelier right than any own answer of the model was, its own need not be asked for.

    Raises:
        BenchDataError: there are too few right or wrong ones.
    """
    drafts = [one for one in samples if one.draft is not None and one.prior is not None]
    right = [one.draft_right for one in drafts]
    own = logistic([one.own for one in samples], [one.own_right for one in samples], OWN, "own answers")
    return RecallWorth(
        prior=logistic([one.prior or {} for one in drafts], right, PRIOR, "recalled texts"),
        draft=logistic([one.draft or {} for one in drafts], right, DRAFT, "recalled texts"),
        own=own,
        sure=max(probability(own, one.own) for one in samples),
    )


def logistic(
    rows: Sequence[Mapping[str, float]], right: Sequence[bool], names: Sequence[str], what: str
) -> dict[str, float]:
    """The weights of `names`, by Newton's method. Raises BenchDataError with too few of either kind."""
    count = sum(right)
    if min(count, len(right) - count) < FEWEST:
        raise BenchDataError(
            f"{count} of {len(right)} {what} are right; it takes {FEWEST} right and {FEWEST} wrong ones: more holes"
        )
    x: NDArray[np.float64] = np.array([[row[name] for name in names] for row in rows])
    y: NDArray[np.float64] = np.array(right, dtype=float)
    penalty = np.diag([0.0 if name == "bias" else _PENALTY for name in names])
    weights = np.zeros(len(names))
    for _ in range(_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ weights, -500, 500)))
        gradient = x.T @ (p - y) + penalty @ weights
        step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + penalty + _TINY * np.eye(len(names)), gradient)
        weights -= step
        if float(np.abs(step).max()) < _TINY:
            break
    return dict(zip(names, map(float, weights), strict=True))
