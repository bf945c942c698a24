"""The learning-rate schedule: warm-up, stable, decay (Hu et al. 2024, MiniCPM), as a function of spent time."""

from __future__ import annotations


def rate_factor(step: int, progress: float, *, warmup_steps: int, decay_share: float) -> float:
    """What the learning rates are multiplied by at `step`, when the share `progress` of the run's time is spent."""
    warm = min(1.0, (step + 1) / max(1, warmup_steps))
    if decay_share <= 0:
        return warm
    return warm * min(1.0, max(0.0, 1.0 - progress) / decay_share)
