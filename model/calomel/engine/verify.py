"""Verification: the causal mode of the weights decides, a canvas only drafts.

One causal forward over the last committed token and the draft predicts every position of the draft from the tokens
before it, and the one behind it. Up to the first disagreement these are the very tokens that left-to-right decoding
would have taken, and the prediction at the disagreement is its next one: at temperature 0 the answer is the same.
Left-to-right decoding is the verification of empty drafts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# A smaller distance of the best two logits may turn over between batch shapes, in float32.
NEAR_TIE = 1e-4


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the causal mode says of one position: a token, its log-probability, the entropy, and the top-2 margin."""

    token: int
    log_prob: float
    entropy: float
    margin: float


def agreement(draft: Sequence[int], predicted: Sequence[int], *, end_token_id: int, room: int) -> int:
    """How many of the `predicted` tokens are fixed.

    Args:
        draft: the drafted tokens, without an end token.
        predicted: the causal mode's tokens for the same positions and the one behind them, each predicted from the
            drafted tokens before it.
        end_token_id: nothing is fixed behind it.
        room: at most so many.

    Returns:
        The length of the agreeing prefix plus one, for the causal mode's own token behind it, within `room`.
    """
    for position, token in enumerate(predicted[:room]):
        if token == end_token_id or position >= len(draft) or draft[position] != token:
            return position + 1
    return min(room, len(predicted))
