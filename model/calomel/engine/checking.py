"""What a request must fulfil before the engine takes it."""

from __future__ import annotations

import math

from calomel.engine.cache import common_beginning
from calomel.engine.config import ModelConfig
from calomel.engine.errors import ContextTooLongError, InvalidRequestError
from calomel.engine.policies import LeftToRight, parse_policy
from calomel.engine.request import Request, SamplingParams


def check(request: Request, config: ModelConfig, checked: tuple[int, ...] = ()) -> None:
    """Raise the InvalidRequestError that names the first wrong field of `request`.

    `checked` is a context that was checked before: the common beginning of both is not checked again.
    """
    _check_context(request, config, checked)
    if request.suffix and not config.diffusion.reads_suffix:
        raise InvalidRequestError("suffix is set, but this checkpoint cannot read text after the answer")
    _check_canvas(request, config)
    _check_sampling(request.sampling)
    # A model that reads in both directions has policies of its own; its decoder checks them.
    causal = not config.diffusion.reads_suffix and isinstance(parse_policy(request.policy), LeftToRight)
    if request.given is not None and request.constraint is not None:
        raise InvalidRequestError("given and constraint are both set: remove one of them")
    if {config.diffusion.mask_token_id, config.diffusion.end_token_id} & set(request.given or ()):
        raise InvalidRequestError("given has the mask or the end token; leave them out")
    if (causal or request.given is not None) and not config.diffusion.verifiable:
        asked = f"policy {request.policy!r}" if request.given is None else "the probability of given tokens"
        raise InvalidRequestError(f"{asked} needs a checkpoint trained causally on its context; this one was not")
    no_mask = config.diffusion.verifiable and config.diffusion.mask_token_id < 0
    if no_mask and not causal and request.given is None:
        raise InvalidRequestError(
            f"policy {request.policy!r} needs a mask token, and this checkpoint has none: it writes from left to right "
            "(policy left_to_right)"
        )


def _check_context(request: Request, config: ModelConfig, checked: tuple[int, ...]) -> None:
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


def _check_canvas(request: Request, config: ModelConfig) -> None:
    longest = config.diffusion.max_canvas
    if not 1 <= request.canvas_length <= longest:
        raise InvalidRequestError(f"canvas_length is {request.canvas_length}; it must be between 1 and {longest}")
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
