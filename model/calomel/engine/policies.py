"""Reveal policies: which masked positions of a canvas are fixed after a step.

Each policy is a pure function of three tensors over a batch of canvases: the probability of each position's chosen
token `confidence` [B, L], the `entropy` [B, L] of its distribution in nats, and `candidates` [B, L], True where a
position is still masked. It returns [B, L], True where a position is revealed: candidates only, and at least one in
every canvas that has any, so that every step makes progress.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from calomel.engine.errors import UnknownPolicyError


class RevealPolicy(Protocol):
    """Chooses the positions that a step fixes."""

    def __call__(self, confidence: Tensor, entropy: Tensor, candidates: Tensor) -> Tensor:
        """[B, L] each to [B, L] bool."""
        ...


@dataclass(frozen=True, slots=True)
class Threshold:
    """Reveal every position whose confidence reaches `probability` (Fast-dLLM, arXiv 2505.22618)."""

    probability: float = 0.9

    def __call__(self, confidence: Tensor, entropy: Tensor, candidates: Tensor) -> Tensor:  # noqa: ARG002
        """[B, L] each to [B, L] bool."""
        return (candidates & (confidence >= self.probability)) | _best(confidence, candidates)


@dataclass(frozen=True, slots=True)
class Factor:
    """Reveal the n most confident positions, for the largest n whose least one is at least 1 - factor / (n + 1).

    Fast-dLLM, arXiv 2505.22618, theorem 1: with such confidences parallel and sequential greedy decoding agree.
    """

    factor: float = 1.0

    def __call__(self, confidence: Tensor, entropy: Tensor, candidates: Tensor) -> Tensor:  # noqa: ARG002
        """[B, L] each to [B, L] bool."""
        ordered, order = _masked(confidence, candidates).sort(dim=-1, descending=True, stable=True)
        count = torch.arange(1, confidence.shape[-1] + 1, device=confidence.device)
        holds = ordered >= 1.0 - self.factor / (count + 1)
        ranked = holds.cumprod(dim=-1).bool()
        return (torch.zeros_like(candidates).scatter(-1, order, ranked) & candidates) | _best(confidence, candidates)


@dataclass(frozen=True, slots=True)
class EntropyBound:
    """Reveal in order of rising entropy while the entropies of those before sum to at most `nats` (DiffusionGemma)."""

    nats: float = 0.1

    def __call__(self, confidence: Tensor, entropy: Tensor, candidates: Tensor) -> Tensor:  # noqa: ARG002
        """[B, L] each to [B, L] bool."""
        ordered, order = entropy.masked_fill(~candidates, torch.inf).sort(dim=-1, stable=True)
        before = ordered.cumsum(dim=-1).roll(1, dims=-1)
        before[..., 0] = 0.0
        return torch.zeros_like(candidates).scatter(-1, order, before <= self.nats) & candidates


@dataclass(frozen=True, slots=True)
class Fixed:
    """Reveal the `count` most confident positions of every step."""

    count: int = 1

    def __call__(self, confidence: Tensor, entropy: Tensor, candidates: Tensor) -> Tensor:  # noqa: ARG002
        """[B, L] each to [B, L] bool."""
        order = _masked(confidence, candidates).sort(dim=-1, descending=True, stable=True).indices
        ranked = (torch.arange(confidence.shape[-1], device=confidence.device) < self.count).expand_as(candidates)
        return torch.zeros_like(candidates).scatter(-1, order, ranked) & candidates


@dataclass(frozen=True, slots=True)
class EntropyWithin:
    """Reveal in order of rising entropy while the entropies, their own among them, sum to less than `nats`.

    `entropy_bounded` of SDAR's engine; `EntropyBound` sums those before alone.
    """

    nats: float = 0.35

    def __call__(self, confidence: Tensor, entropy: Tensor, candidates: Tensor) -> Tensor:  # noqa: ARG002
        """[B, L] each to [B, L] bool."""
        ordered, order = entropy.masked_fill(~candidates, torch.inf).sort(dim=-1, stable=True)
        within = ordered.cumsum(dim=-1) < self.nats
        within[..., 0] = True
        return torch.zeros_like(candidates).scatter(-1, order, within) & candidates


@dataclass(frozen=True, slots=True)
class Leftmost:
    """Reveal the first `count` masked positions and those that are not masked between them: a run of positions."""

    count: int = 1

    def __call__(self, confidence: Tensor, entropy: Tensor, candidates: Tensor) -> Tensor:  # noqa: ARG002
        """[B, L] each to [B, L] bool."""
        columns = torch.arange(candidates.shape[-1], device=candidates.device)
        first = candidates.int().argmax(dim=-1, keepdim=True)
        return candidates & (columns >= first) & (columns < first + self.count)


@dataclass(frozen=True, slots=True)
class Prefix:
    """Reveal the first masked position, and those behind it up to the first whose confidence is below `probability`.

    From left to right, as many at once as the model is sure of: the order of adaptive parallel decoding (arXiv
    2506.00413), without its second model.
    """

    probability: float = 0.9

    def __call__(self, confidence: Tensor, entropy: Tensor, candidates: Tensor) -> Tensor:
        """[B, L] each to [B, L] bool."""
        first = Leftmost(1)(confidence, entropy, candidates)
        sure = ~candidates | first | (confidence >= self.probability)
        return candidates & sure.int().cumprod(dim=-1).bool()


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Reveal every position whose confidence is above `probability`; where they are fewer, the `count` best."""

    count: int
    probability: float

    def __call__(self, confidence: Tensor, entropy: Tensor, candidates: Tensor) -> Tensor:
        """[B, L] each to [B, L] bool."""
        above = candidates & (confidence > self.probability)
        enough = above.sum(dim=-1, keepdim=True) >= self.count
        return torch.where(enough, above, Fixed(self.count)(confidence, entropy, candidates))


@dataclass(frozen=True, slots=True)
class Joint:
    """Reveal what is above `probability`, or the best one; what is revealed and not asked for changes above `edit`.

    A canvas that is whole is read again until a step changes nothing, `after` times at most: the joint threshold of
    LLaDA2.1 (arXiv 2602.08676), with tokens to tokens behind masks to tokens. A `Threshold` of LLaDA2.0 is one without
    edits. Under a constraint, which has the last word, nothing is changed.
    """

    probability: float = 0.95
    edit: float = 0.9
    after: int = 16

    def __call__(self, confidence: Tensor, entropy: Tensor, candidates: Tensor) -> Tensor:
        """[B, L] each to [B, L] bool."""
        return AtLeast(1, self.probability)(confidence, entropy, candidates)


@dataclass(frozen=True, slots=True)
class Paced:
    """How many positions a step reveals follows from its number: so many, evenly, that a canvas takes `steps` steps.

    Attributes:
        kind: `low_confidence` shares out the positions that were masked when the canvas began (LLaDA,
            Stable-DiffCoder); the others those of a block (SDAR). `low_confidence_dynamic` reveals whatever is above
            `probability` besides; `sequential` goes from left to right.
        steps: steps of a canvas; None for one position a step.
        probability: of `low_confidence_dynamic`.
    """

    kind: Literal["low_confidence", "low_confidence_static", "low_confidence_dynamic", "sequential"]
    steps: int | None = None
    probability: float = 0.85

    def at(self, step: int, masked: int, block: int) -> RevealPolicy:
        """The policy of step `step`, from 0, of a canvas that began with `masked` masked positions."""
        positions = masked if self.kind == "low_confidence" or block == 1 else block
        steps = self.steps or max(1, positions)
        # A step that would reveal nothing is none: the published loops go to the next one.
        count = max(1, positions // steps + (step < positions % steps))
        if self.kind == "sequential":
            return Leftmost(count)
        return AtLeast(count, self.probability) if self.kind == "low_confidence_dynamic" else Fixed(count)


@dataclass(frozen=True, slots=True)
class Policy:
    """How an answer is decoded: how canvases are revealed, and whether the causal mode has the last word.

    Attributes:
        reveal: of the canvas (of the draft, when `verified`); None when there is no canvas (`left_to_right`).
        verified: drafts are verified by a causal forward.
    """

    reveal: RevealPolicy | Paced | None
    verified: bool = False

    @property
    def causal(self) -> bool:
        """Whether tokens are fixed by the causal mode of the model."""
        return self.verified or self.reveal is None


def parse_policy(text: str) -> Policy:
    """Read `name:parameter`.

    `threshold:0.9`, `prefix:0.9`, `factor:1`, `entropy_bound:0.1`, `fixed:1`, `verified`, `verified:DRAFT` with one of
    these as the draft's policy (`threshold:0` when absent: a draft costs one forward), or `left_to_right`. Those of
    published block diffusion models: `entropy_within:0.35`, `low_confidence_dynamic:0.85/4` (probability and steps of a
    canvas) and, by steps of a canvas alone, `low_confidence:4`, `low_confidence_static:4`, `sequential:4`. Of LLaDA2.1:
    `joint:0.95/0.9/16` (probability of a reveal, of a change, and steps behind the last reveal).

    Raises:
        UnknownPolicyError: there is no such policy, or its parameter is no number in its range.
    """
    name, _, parameter = text.partition(":")
    if name == "left_to_right" and not parameter:
        return Policy(reveal=None)
    if name == "verified":
        return Policy(reveal=_parse_reveal(parameter) if parameter else Threshold(0.0), verified=True)
    return Policy(reveal=_parse_reveal(text))


def _parse_reveal(text: str) -> RevealPolicy | Paced:
    name, _, parameter = text.partition(":")
    match name:
        case "threshold" | "prefix":
            probability = _number(text, parameter, 0.9, low=0.0, high=1.0)
            return Threshold(probability) if name == "threshold" else Prefix(probability)
        case "factor":
            return Factor(_number(text, parameter, 1.0, low=0.0))
        case "entropy_bound":
            return EntropyBound(_number(text, parameter, 0.1, low=0.0))
        case "fixed":
            return Fixed(_count(text, parameter or "1"))
        case "entropy_within":
            return EntropyWithin(_number(text, parameter, 0.35, low=0.0))
        case _:
            return _parse_published(text, name, parameter)


def _parse_published(text: str, name: str, parameter: str) -> RevealPolicy | Paced:
    """The policies of published block diffusion models, of several numbers."""
    match name:
        case "low_confidence" | "low_confidence_static" | "low_confidence_dynamic" | "sequential":
            dynamic = name == "low_confidence_dynamic"
            probability, _, steps = parameter.partition("/") if dynamic else ("", "", parameter)
            least = _number(text, probability, 0.85, low=0.0, high=1.0)
            return Paced(name, _count(text, steps) if steps else None, least)
        case "joint":
            probability, _, rest = parameter.partition("/")
            edit, _, after = rest.partition("/")
            return Joint(
                _number(text, probability, 0.95, low=0.0, high=1.0),
                _number(text, edit, 0.9, low=0.0, high=1.0),
                _count(text, after) if after else 16,
            )
        case _:
            raise UnknownPolicyError(
                f"unknown policy {text!r}; there are threshold:P, prefix:P, factor:F, entropy_bound:NATS, "
                "entropy_within:NATS, fixed:K, low_confidence:STEPS, low_confidence_static:STEPS, "
                "low_confidence_dynamic:P/STEPS, sequential:STEPS, joint:P/EDIT/STEPS, "
                "verified[:POLICY] and left_to_right"
            )


def _count(text: str, parameter: str) -> int:
    count = _number(text, parameter, 1.0, low=1.0)
    if not count.is_integer():
        raise UnknownPolicyError(f"policy {text!r}: {parameter} is not a whole number")
    return int(count)


def _number(text: str, parameter: str, default: float, *, low: float, high: float = math.inf) -> float:
    if not parameter:
        return default
    try:
        value = float(parameter)
    except ValueError as error:
        raise UnknownPolicyError(f"policy {text!r}: {parameter!r} is not a number") from error
    if not math.isfinite(value) or not low <= value <= high:
        raise UnknownPolicyError(f"policy {text!r}: {parameter} is not a finite number between {low} and {high}")
    return value


def _masked(confidence: Tensor, candidates: Tensor) -> Tensor:
    return confidence.masked_fill(~candidates, -1.0)


def _best(confidence: Tensor, candidates: Tensor) -> Tensor:
    """The most confident candidate of every canvas, [B, L] bool; none where there is no candidate."""
    best = _masked(confidence, candidates).argmax(dim=-1, keepdim=True)
    return torch.zeros_like(candidates).scatter(-1, best, value=True) & candidates
