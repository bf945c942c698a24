"""What a caller asks of the engine: token ids in, with the bounds and the policy of the answer.

A request is checked in the caller's thread, before anything is queued: `check` raises the error that names the field.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol


class Walk(Protocol):
    """A position in a constraint, after the tokens that it has accepted, the end token not among them."""

    def advance(self, tokens: Sequence[int]) -> int:
        """Accept the longest beginning of `tokens` that is allowed, and return its length."""
        ...

    def may_end(self) -> bool:
        """Whether the accepted tokens are a complete answer."""
        ...

    def allowed(self) -> bytes:
        """The tokens that may come next, one bit each: token `id` is bit `id % 8` of byte `id // 8`.

        Bits of the end token and beyond the vocabulary have no meaning; missing bytes are 0.
        """
        ...

    def forced(self) -> Sequence[int]:
        """Tokens that must come next, as far as that is known; returning none is always correct."""
        ...


class Constraint(Protocol):
    """Which answers are allowed. Can be shared by requests."""

    def begin(self) -> Walk:
        """A walk at the beginning of an answer; used by one thread at a time."""
        ...


FinishReason = Literal["stop", "length", "deadline"]


@dataclass(frozen=True, slots=True)
class CanvasState:
    """The whole answer so far and the current canvas, after one step.

    Attributes:
        step: forwards of this request so far, prefill not counted.
        ids: token ids; the mask token where nothing is known yet.
        revealed: for each position, whether its token is final (except with the policy `joint`).
    """

    step: int
    ids: tuple[int, ...]
    revealed: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One finished answer.

    Attributes:
        ids: the answer without the end token.
        log_probs: natural logarithm of each token's probability (temperature 1, mask token excluded) when it was
            revealed; with the policy `left_to_right` the exact causal one.
        entropies: of each position's distribution when it was revealed, in nats.
        end_log_prob: log-probability of the end token, if the answer ended with one.
        finish_reason: `stop` for the end token, `length` for max_new_tokens, `deadline` for the request's deadline.
        steps: denoising steps.
        forwards: all forwards after the prefill. The causal encoding of a finished canvas that another one follows
            is part of a canvas forward.
        cached_tokens: context tokens read from the prefix cache.
        computed_tokens: context tokens that were not in it.
        prefill_seconds: from the first work on the request until its context was encoded.
        denoise_seconds: from there to the end.
    """

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    entropies: tuple[float, ...]
    end_log_prob: float | None
    finish_reason: FinishReason
    steps: int
    forwards: int
    cached_tokens: int
    computed_tokens: int
    prefill_seconds: float
    denoise_seconds: float


# With float32, a logit of 1e8 divided by it is still finite.
_COLDEST = 1e-30


class Priority(enum.IntEnum):
    """Who waits for the answer. A request runs only while no request with a smaller number has work."""

    INTERACTIVE = 0
    BACKGROUND = 1


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How a token is drawn from the model's distribution; the defaults take the most probable one.

    Attributes:
        temperature: 0 takes the best token (of equal ones the one with the lower id); so does a value below 1e-30,
            which no logit can be divided by.
        top_p: draw from the smallest set of tokens with at least this probability, after `temperature` and `top_k`.
        top_k: the number of most probable tokens that may be drawn; -1 for all.
        frequency_penalty: subtracted from a token's logit once for each time the answer contains it.
        presence_penalty: subtracted once if the answer contains the token.
        repetition_penalty: divides the positive and multiplies the negative logits of tokens in context or answer.
        seed: of the random numbers; None for a random one.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if 0 < self.temperature < _COLDEST:
            object.__setattr__(self, "temperature", 0.0)

    @property
    def penalised(self) -> bool:
        """Whether any penalty changes the logits."""
        return bool(self.frequency_penalty or self.presence_penalty or self.repetition_penalty != 1.0)


@dataclass(frozen=True, slots=True)
class Request:
    """One answer to denoise.

    Attributes:
        context: all known tokens, encoded causally, oldest first.
        max_new_tokens: bound on the answer's length; the end token does not count.
        canvas_length: tokens of a canvas. A longer answer is a sequence of canvases of that length. If the checkpoint
            has blocks, a canvas extends to the end of its last block.
        sampling: how tokens are drawn.
        policy: `threshold:P`, `prefix:P`, `fixed:K`, `left_to_right` or `left_to_right:AHEAD`; with blocks also
            the others that `parse_policy` reads, and for models that read in both directions those of
            `parse_algorithm`.
        max_steps: denoising steps per canvas at most; the last one reveals everything that is left.
        deadline: `time.monotonic()` seconds; what is known by then is returned with finish reason `deadline`.
        priority: who waits.
        record_canvases: yield the canvas after every step through `Handle.states`.
        reuse: how many leading context tokens other requests may want; None for all of them and of `given`. If room is
            short, the others leave the prefix cache first. What other requests have kept there is read in any case.
        min_new_tokens: the end token is not predicted before this many tokens.
        until: called with the answer, or its settled beginning, whenever it has grown, on the engine's thread; True
            ends the answer there with reason `stop`. What is True of an answer is True of every longer one.
        unlikely: called with the final tokens of the answer and their log-probabilities, whenever they have grown; True
            abandons the answer there, with reason `stop`.
        given: nothing is chosen: the answer is these tokens and the end token, and the result has the exact causal
            log-probability of each, from one forward. Of the other fields only `context`, `deadline`, `priority` and
            `reuse` apply then. Needs a checkpoint that is `verifiable`.
        constraint: which answers are allowed; None for all. An answer that ends with the end token is allowed as a
            whole; any other is the beginning of an allowed one. It ends as soon as nothing else is allowed, whatever
            `min_new_tokens` says.
        guess: what the answer is probably made of, in order, such as the text that it rewrites. With the policy
            `left_to_right` it is used as a draft: what the causal mode agrees with costs no forward of its own. The
            answer is the same without it.
        suffix: what follows the answer. Needs a checkpoint that `reads_suffix`; others have it in their context.
        client: the requester; every client gets an equal share of each step.
    """

    context: tuple[int, ...]
    max_new_tokens: int = 64
    canvas_length: int = 32
    sampling: SamplingParams = field(default_factory=SamplingParams)
    policy: str = "threshold:0.9"
    max_steps: int = 16
    deadline: float | None = None
    priority: Priority = Priority.INTERACTIVE
    record_canvases: bool = False
    reuse: int | None = None
    min_new_tokens: int = 0
    until: Callable[[Sequence[int]], bool] | None = None
    unlikely: Callable[[Sequence[int], Sequence[float]], bool] | None = None
    given: tuple[int, ...] | None = None
    guess: tuple[int, ...] = ()
    constraint: Constraint | None = None
    suffix: tuple[int, ...] = ()
    client: str = ""
