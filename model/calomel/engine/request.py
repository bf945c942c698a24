"""What a caller asks of the engine: token ids in, with the bounds and the policy of the answer.

A request is checked in the caller's thread, before anything is queued: `check` raises the error that names the field.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from calomel.engine.cache import common_beginning
from calomel.engine.config import Shape
from calomel.engine.errors import ContextTooLongError, InvalidRequestError
from calomel.engine.policies import parse_policy


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
        forwards: all forwards after the prefill. The length probe, and the causal encoding of a finished canvas that
            another one follows, are part of a canvas forward.
        cached_tokens: context tokens read from the prefix cache.
        computed_tokens: context tokens that were not in it.
        canvas_length: the canvas length that was used; 0 when the answer needed none.
        length_scores: (length, score) of every candidate, when the probe chose.
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
    canvas_length: int
    length_scores: tuple[tuple[int, float], ...]
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
        canvas_lengths: candidate canvas lengths; with more than one, the length probe chooses. A longer answer is a
            sequence of canvases of that length. If the checkpoint has blocks, a canvas extends to the end of its last
            block.
        sampling: how tokens are drawn.
        policy: `threshold:P`, `prefix:P`, `entropy_bound:NATS`, `fixed:K`, `left_to_right` or `left_to_right:AHEAD`;
            with blocks also the others that `parse_policy` reads, and for models that read in both directions those of
            `parse_algorithm`.
        max_steps: denoising steps per canvas at most; the last one reveals everything that is left.
        deadline: `time.monotonic()` seconds; what is known by then is returned with finish reason `deadline`.
        priority: who waits.
        record_canvases: yield the canvas after every step through `Handle.states`.
        reuse: how many leading context tokens to keep in the shared prefix cache; None for all of them and of
            `given`. What other requests have kept there is read in any case.
        min_new_tokens: the end token is not predicted before this many tokens.
        until: called with the answer, or its settled beginning, whenever it has grown, on the engine's thread; True
            ends the answer there with reason `stop`.
        hopeless: called with the final tokens of the answer and their log-probabilities, whenever they have grown; True
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
    canvas_lengths: tuple[int, ...] = (32,)
    sampling: SamplingParams = field(default_factory=SamplingParams)
    policy: str = "threshold:0.9"
    max_steps: int = 16
    deadline: float | None = None
    priority: Priority = Priority.INTERACTIVE
    record_canvases: bool = False
    reuse: int | None = None
    min_new_tokens: int = 0
    until: Callable[[Sequence[int]], bool] | None = None
    hopeless: Callable[[Sequence[int], Sequence[float]], bool] | None = None
    given: tuple[int, ...] | None = None
    guess: tuple[int, ...] = ()
    constraint: Constraint | None = None
    suffix: tuple[int, ...] = ()
    client: str = ""


def check(request: Request, config: Shape, checked: tuple[int, ...] = ()) -> None:
    """Raise the InvalidRequestError that names the first wrong field of `request`.

    `checked` is a context that was checked before: the common beginning of both is not checked again.
    """
    _check_context(request, config, checked)
    if request.suffix and not config.diffusion.reads_suffix:
        raise InvalidRequestError("suffix is set, but this checkpoint reads nothing after an answer")
    _check_canvas(request, config)
    _check_sampling(request.sampling)
    # A model that reads in both directions has policies of its own; its decoder checks them.
    causal = not config.diffusion.reads_suffix and parse_policy(request.policy) is None
    if request.given is not None and request.constraint is not None:
        raise InvalidRequestError("given and constraint are both set; what is given is not chosen")
    if {config.diffusion.mask_token_id, config.diffusion.end_token_id} & set(request.given or ()):
        raise InvalidRequestError("given has the mask or the end token; leave them out")
    if (causal or request.given is not None) and not config.diffusion.verifiable:
        asked = f"policy {request.policy!r}" if request.given is None else "the probability of given tokens"
        raise InvalidRequestError(
            f"{asked} needs a checkpoint that was trained causally on its context; this one was not"
        )
    no_mask = config.diffusion.verifiable and config.diffusion.mask_token_id < 0
    if no_mask and not causal and request.given is None:
        raise InvalidRequestError(
            f"policy {request.policy!r} needs a mask token, and this checkpoint has none: it writes from left to right "
            "(policy left_to_right)"
        )


def _check_context(request: Request, config: Shape, checked: tuple[int, ...]) -> None:
    size = len(request.context)
    if not size:
        raise InvalidRequestError("context is empty; give at least one token")
    if request.max_new_tokens < 1:
        raise InvalidRequestError(f"max_new_tokens is {request.max_new_tokens}; it must be at least 1")
    if not 0 <= request.min_new_tokens <= request.max_new_tokens:
        raise InvalidRequestError(
            f"min_new_tokens is {request.min_new_tokens}; it must be between 0 and max_new_tokens "
            f"({request.max_new_tokens})"
        )
    name, room = "max_new_tokens", request.max_new_tokens
    if request.given is not None:
        name, room = "given and the end token", len(request.given) + 1
    known = size + len(request.suffix)
    if known + room > config.max_position_embeddings:
        around = f"context and suffix ({known})" if request.suffix else f"context ({size})"
        raise ContextTooLongError(
            f"{around} plus {name} ({room}) exceed the model's {config.max_position_embeddings} positions"
        )
    fresh = request.context[common_beginning(checked, request.context) :]
    named = {"context": fresh, "suffix": request.suffix, "guess": request.guess}
    for name, ids in {**named, "given": request.given or ()}.items():
        outer = (min(ids), max(ids)) if ids else ()
        for wrong in (token for token in outer if not 0 <= token < config.vocab_size):
            raise InvalidRequestError(f"{name} has token id {wrong}; the vocabulary has {config.vocab_size} entries")
    if request.reuse is not None and not 0 <= request.reuse <= size:
        raise InvalidRequestError(f"reuse is {request.reuse}; it must be between 0 and the context's {size} tokens")
    if request.deadline is not None and math.isnan(request.deadline):
        raise InvalidRequestError("deadline is not a number")


def _check_canvas(request: Request, config: Shape) -> None:
    longest = config.diffusion.max_canvas
    if not request.canvas_lengths:
        raise InvalidRequestError("canvas_lengths is empty; give at least one length")
    for length in request.canvas_lengths:
        if not 1 <= length <= longest:
            raise InvalidRequestError(f"canvas length {length} is outside of 1..{longest}")
    if request.max_steps < 1:
        raise InvalidRequestError(f"max_steps is {request.max_steps}; it must be at least 1")


def _check_sampling(sampling: SamplingParams) -> None:
    rules = (
        ("temperature", sampling.temperature, 0.0 <= sampling.temperature < math.inf, "a number of at least 0"),
        ("top_p", sampling.top_p, 0.0 < sampling.top_p <= 1.0, "above 0 and at most 1"),
        ("top_k", sampling.top_k, sampling.top_k == -1 or sampling.top_k >= 1, "-1 or at least 1"),
        ("frequency_penalty", sampling.frequency_penalty, math.isfinite(sampling.frequency_penalty), "finite"),
        ("presence_penalty", sampling.presence_penalty, math.isfinite(sampling.presence_penalty), "finite"),
        ("repetition_penalty", sampling.repetition_penalty, 0.0 < sampling.repetition_penalty < math.inf, "above 0"),
    )
    for name, value, fits, wanted in rules:
        if not fits:
            raise InvalidRequestError(f"{name} is {value}; it must be {wanted}")
