"""The published algorithms that choose what a step reveals, as pure functions of the logits of one canvas.

Each is written from its paper and the behaviour of its authors' code: `origin`, `maskgit_plus`, `topk_margin` and
`entropy` of Dream (arXiv 2508.15487), `p2` of Open-dLLM (path planning, arXiv 2502.03540), `low_confidence` of LLaDA
(arXiv 2502.09992). The mask token is never drawn; the published code leaves that to training.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import torch
from torch import Tensor

from calomel.engine.errors import InvalidRequestError
from calomel.engine.policies import LeftToRight, Paced, RevealPolicy, parse_number, parse_policy
from calomel.engine.request import SamplingParams
from calomel.engine.sampling import keep_top_k, keep_top_p, precise, sample

# As in the published code: it keeps the logarithm of a probability of 0 finite.
_TINY: Final = 1e-10
# Where time ends in the Dream family's schedule.
_EPS: Final = 1e-3

Measure = Literal["maskgit_plus", "topk_margin", "entropy"]


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a canvas, or its block, is in its schedule.

    Attributes:
        step: number of the step in the block, from 0; `steps` is their total.
        began: how many positions were masked at the first step.
        masked: how many are masked now.
        transfer: how many positions to reveal whatever the schedule says; None to follow the schedule.
    """

    step: int
    steps: int
    began: int
    masked: int
    sampling: SamplingParams
    generator: torch.Generator | None
    transfer: int | None = None

    @property
    def last(self) -> bool:
        """Whether this step reveals everything that is left."""
        return self.step >= self.steps - 1


Move = tuple[Tensor, Tensor]
"""What a step does to N rows: where the second [N] bool is True, and nothing stood, the first [N] int64 stands."""


class Algorithm(ABC):
    """Chooses tokens and the positions that a step reveals.

    Attributes:
        rereads: whether it reads revealed positions too, and may mask some of them again.
    """

    rereads: ClassVar[bool] = False

    def quota(self, moment: Moment) -> int | None:  # noqa: ARG002  (some need it)
        """How many positions a step reveals; None if that depends on the logits or on chance."""
        return None

    @abstractmethod
    def __call__(self, logits: Tensor, masked: Tensor, moment: Moment) -> Move:
        """Logits [N, V] float32 and masked [N] bool of the rows that are read."""


@dataclass(frozen=True, slots=True)
class Origin(Algorithm):
    """Each masked position is revealed at random, with the probability that the schedule gives (Dream)."""

    def __call__(self, logits: Tensor, masked: Tensor, moment: Moment) -> Move:
        """See `Algorithm`."""
        chance = torch.rand(masked.shape, generator=moment.generator, device=logits.device)
        shown = masked & ((chance < _share(moment)) | moment.last)
        places = shown.nonzero()[:, 0]
        token = torch.zeros_like(masked, dtype=torch.int64)
        if len(places):
            token[places] = draw(logits[places], moment.sampling, moment.generator)[0]
        return token, shown


@dataclass(frozen=True, slots=True)
class Confidence(Algorithm):
    """The most confident positions are revealed, as many as the schedule says (Dream).

    Attributes:
        measure: `maskgit_plus` is the probability of the drawn token, `topk_margin` the margin between the two best
            tokens, `entropy` the negative entropy; all after temperature, top-p and top-k.
        alg_temp: positions are drawn from softmax(confidence / alg_temp) without replacement; 0 takes the most
            confident.
    """

    measure: Measure
    alg_temp: float = 0.0

    def quota(self, moment: Moment) -> int | None:
        """The schedule's share of the masked positions."""
        if moment.transfer is not None:
            return min(moment.transfer, moment.masked)
        return moment.masked if moment.last else int(torch.tensor(float(moment.masked)) * _share(moment))

    def __call__(self, logits: Tensor, masked: Tensor, moment: Moment) -> Move:
        """See `Algorithm`."""
        token, probabilities = draw(logits, moment.sampling, moment.generator)
        confidence = _measured(self.measure, token, probabilities).masked_fill(~masked, -torch.inf)
        count = self.quota(moment) or 0
        if not count:
            return token, torch.zeros_like(masked)
        if self.alg_temp > 0:
            chances = (confidence / self.alg_temp).softmax(dim=-1)
            places = torch.multinomial(chances, count, generator=moment.generator)
        else:
            places = confidence.topk(count).indices
        return token, torch.zeros_like(masked).index_fill(0, places, value=True)


@dataclass(frozen=True, slots=True)
class PathPlanning(Algorithm):
    """The most confident of all positions are kept, more in every step; the others are masked again (P2, Open-dLLM)."""

    rereads: ClassVar[bool] = True

    def __call__(self, logits: Tensor, masked: Tensor, moment: Moment) -> Move:
        """See `Algorithm`."""
        token, probabilities = draw(logits, moment.sampling, moment.generator)
        confidence = _measured("maskgit_plus", token, probabilities)
        hidden = 0 if moment.last else int(masked.numel() * (1 - (moment.step + 1) / moment.steps))
        shown = torch.ones_like(masked).index_fill(0, confidence.argsort()[:hidden], value=False)
        return token, shown


@dataclass(frozen=True, slots=True)
class LowConfidence(Algorithm):
    """Reveals the most confident positions of a block, equally many per step, tokens by Gumbel noise (LLaDA).

    The noise is float64: in float32 it makes the likeliest tokens too likely (arXiv 2409.02908).
    """

    def quota(self, moment: Moment) -> int | None:
        """An equal share of what was masked at the block's first step; the remainder goes to the first steps."""
        if moment.transfer is not None:
            return min(moment.transfer, moment.masked)
        if moment.last:
            return moment.masked
        share, rest = divmod(moment.began, moment.steps)
        return min(share + (moment.step < rest), moment.masked)

    def __call__(self, logits: Tensor, masked: Tensor, moment: Moment) -> Move:
        """See `Algorithm`."""
        params, scores = moment.sampling, precise(_likely(logits, moment.sampling))
        token = gumbel(scores, params.temperature, moment.generator).argmax(dim=-1)
        confidence = scores.softmax(dim=-1).gather(-1, token[:, None])[:, 0]
        places = confidence.masked_fill(~masked, -torch.inf).topk(self.quota(moment) or 0).indices
        return token, torch.zeros_like(masked).index_fill(0, places, value=True)


@dataclass(frozen=True, slots=True)
class Revealing(Algorithm):
    """One of our own policies, on the probabilities at temperature 1, as for canvases after a cached context."""

    policy: RevealPolicy | Paced

    def __call__(self, logits: Tensor, masked: Tensor, moment: Moment) -> Move:
        """See `Algorithm`."""
        token = sample(logits, moment.sampling, moment.generator)
        if moment.last:
            return token, masked
        policy = self.policy.at(moment.step, moment.began, 1) if isinstance(self.policy, Paced) else self.policy
        confidence = logits.softmax(dim=-1).gather(-1, token[:, None])[:, 0]
        places = torch.tensor(policy(confidence.tolist()), dtype=torch.int64, device=logits.device)
        return token, torch.zeros_like(masked).index_fill(0, places, value=True)


def draw(logits: Tensor, params: SamplingParams, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """Tokens [N] drawn from logits [N, V], and probabilities [N, V] after temperature, top-p and top-k (Dream)."""
    shaped = logits / params.temperature if params.temperature > 0 else logits
    probabilities = _likely(shaped, params).softmax(dim=-1)
    if params.temperature > 0:
        token = torch.multinomial(probabilities, 1, generator=generator)[:, 0]
    else:
        token = probabilities.argmax(dim=-1)
    return token, probabilities


def _likely(logits: Tensor, params: SamplingParams) -> Tensor:
    """What top-p and then top-k keep, in the order of the published code."""
    return keep_top_k(keep_top_p(logits, params.top_p), params.top_k)


def gumbel(logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
    """Scores whose maximum is a sample of logits [N, V] (see `precise`) at `temperature`; at 0 the logits."""
    if temperature == 0:
        return logits
    noise = torch.rand(logits.shape, dtype=logits.dtype, generator=generator, device=logits.device)
    # exp(logits) / (-log u) ** temperature, as logarithms: the same order without overflow.
    return logits - temperature * (-noise.log()).log()


def _share(moment: Moment) -> Tensor:
    """The share of the masked positions that a step reveals: 1 - s / t, in float32 as in the published code."""
    times = torch.linspace(1, _EPS, moment.steps + 1)
    share: Tensor = 1 - times[min(moment.step + 1, moment.steps)] / times[min(moment.step, moment.steps - 1)]
    return share


def _measured(measure: Measure, token: Tensor, probabilities: Tensor) -> Tensor:
    match measure:
        case "maskgit_plus":
            return probabilities.gather(-1, token[:, None])[:, 0]
        case "topk_margin":
            best = probabilities.topk(2, dim=-1).values
            return best[:, 0] - best[:, 1]
        case "entropy":
            return (probabilities * (probabilities + _TINY).log()).sum(dim=-1)


def parse_algorithm(text: str) -> Algorithm:
    """Read `name:parameter`.

    `maskgit_plus:T`, `topk_margin:T` and `entropy:T` with the randomness T of the order (0 when absent),
    `origin`, `p2`, `low_confidence`, or a reveal policy (`threshold:0.9`, `fixed:1`).

    Raises:
        InvalidRequestError: the policy is unknown, its parameter is not a number in its range, or it reads the context
            causally, which such a checkpoint was not trained for.
    """
    name, _, parameter = text.partition(":")
    match name:
        case "maskgit_plus" | "topk_margin" | "entropy":
            return Confidence(name, parse_number(text, parameter, 0.0))
        case "origin" | "p2" | "low_confidence" if parameter:
            raise InvalidRequestError(f"policy {text!r}: {name} has no parameter")
        case "origin":
            return Origin()
        case "p2":
            return PathPlanning()
        case "low_confidence":
            return LowConfidence()
        case _:
            policy = parse_policy(text)
    if isinstance(policy, LeftToRight):
        raise InvalidRequestError(
            f"policy {text!r} needs a checkpoint trained causally on its context; this one was not"
        )
    return Revealing(policy)
