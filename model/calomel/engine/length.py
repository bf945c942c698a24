"""The length probe: how long a canvas this context wants, from one forward over all candidate lengths.

Follows CAL (arXiv 2602.00476): the mean confidence of the first step peaks near the true length, once the bias that a
canvas' length has on its own is subtracted. All candidates attend to the same cached context in one forward, and the
chosen one's predictions are its first denoising step, so that the probe costs rows but no forward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

LengthBias = Mapping[int, float]
"""Canvas length to the mean first-step confidence that a canvas of this length has whatever the context."""


def score_lengths(confidences: Sequence[Tensor], lengths: Sequence[int], bias: LengthBias | None = None) -> list[float]:
    """The bias-corrected mean confidence of every candidate.

    Args:
        confidences: for each candidate, the probabilities [N] of the best tokens of its masked positions.
        lengths: the candidates.
        bias: what to subtract for each length; 0 for a length that it does not have.
    """
    table = bias or {}
    means = [float(row.mean()) if row.numel() else 1.0 for row in confidences]
    return [mean - table.get(length, 0.0) for mean, length in zip(means, lengths, strict=True)]


def best_length(lengths: Sequence[int], scores: Sequence[float]) -> int:
    """Index of the candidate with the highest score; of equal ones the shortest."""
    return max(range(len(lengths)), key=lambda index: (scores[index], -lengths[index]))
