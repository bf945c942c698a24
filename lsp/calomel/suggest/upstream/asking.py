"""A request of the engine as the body of a completion request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calomel.engine.request import Request


def body_of(request: Request, prompt: str | Sequence[int], model: str, ends: Sequence[int]) -> dict[str, Any]:
    """What to send. Of a request's fields canvas lengths, policy, steps, priority and reuse are the upstream's own.

    Args:
        request: a checked one.
        prompt: its context, as ids or as text.
        model: the name that the upstream serves the model under.
        ends: ids of the tokens that end an answer.
    """
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": model,
        "prompt": prompt if isinstance(prompt, str) else list(prompt),
        "max_tokens": request.max_new_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "logprobs": 1,
        "return_token_ids": True,
        "stop_token_ids": list(ends),
    }
    optional = {
        "top_k": (sampling.top_k, -1),
        "frequency_penalty": (sampling.frequency_penalty, 0.0),
        "presence_penalty": (sampling.presence_penalty, 0.0),
        "repetition_penalty": (sampling.repetition_penalty, 1.0),
        "seed": (sampling.seed, None),
        "min_tokens": (request.min_new_tokens, 0),
    }
    body |= {name: value for name, (value, unset) in optional.items() if value != unset}
    if isinstance(prompt, str):
        # What stands at the beginning of a context is in the prompt already.
        body["add_special_tokens"] = False
    if streamed(request):
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def streamed(request: Request) -> bool:
    """Whether somebody looks at the answer before it is whole."""
    return request.record_canvases or request.until is not None
