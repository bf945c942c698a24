"""The loss of preference alignment: Kahneman-Tversky optimisation of rewards (arXiv 2402.01306, 2510.23658).

reward  r = score under the policy - score under the reference, of one answer
origin  z = mean reward of the minibatch, without gradient
value   v = sigmoid(beta (r - z)) for a desirable answer, sigmoid(beta (z - r)) for an undesirable one
loss      = weighted mean of 1 - v
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

# Beyond so many units the sigmoid is flat: such an answer teaches nothing more.
SATURATED: Final = (6.0, 8.0)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one minibatch, for the log.

    Attributes:
        origin: z, in nats.
        desirable, undesirable: mean rewards.
        accuracy: share of answers whose reward lies on their side of the origin.
        reach: mean of |beta r|.
        over_6, over_8: share of answers with |beta (r - z)| above that.
    """

    origin: float
    desirable: float
    undesirable: float
    accuracy: float
    reach: float
    over_6: float
    over_8: float

    @property
    def margin(self) -> float:
        """How much better the desirable ones are rewarded."""
        return self.desirable - self.undesirable


def losses(rewards: Tensor, desirable: Tensor, weights: Tensor, origin: float, beta: float) -> Tensor:
    """[N] the loss of each answer, times its weight; rewards and weights [N], desirable [N] bool."""
    sign = torch.where(desirable, 1.0, -1.0)
    return weights * (1 - torch.sigmoid(beta * sign * (rewards - origin)))


def figures(rewards: Tensor, desirable: Tensor, beta: float) -> Figures:
    """What a minibatch's rewards [N] look like; NaN for a side that is empty."""
    origin = float(rewards.mean())
    above = beta * (rewards - origin)
    low, high = SATURATED
    return Figures(
        origin=origin,
        desirable=float(rewards[desirable].mean()),
        undesirable=float(rewards[~desirable].mean()),
        accuracy=float(((above > 0) == desirable).float().mean()),
        reach=float((beta * rewards).abs().mean()),
        over_6=float((above.abs() > low).float().mean()),
        over_8=float((above.abs() > high).float().mean()),
    )
