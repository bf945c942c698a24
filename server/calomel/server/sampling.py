"""How clients say that tokens are to be drawn, in the engine's words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Final, Protocol

from calomel.server.schemas.base import LlamaSampledBody

if TYPE_CHECKING:
    from calomel.engine import SamplingParams

# A penalty divides or multiplies logits; beyond these bounds float32 overflows, and within them it has long saturated.
_LOWEST_PENALTY: Final = 0.01
_HIGHEST_PENALTY: Final = 100.0


class Sampled(Protocol):
    """A body with the fields that most routes share; None where the client sent nothing."""

    temperature: float | None
    top_p: float | None
    top_k: int | None
    frequency_penalty: float | None
    presence_penalty: float | None
    repetition_penalty: float | None
    seed: int | None


def sampling_of(body: Sampled) -> SamplingParams:
    """The engine's parameters: what was not sent has no effect."""
    from calomel.engine import SamplingParams  # imports torch, which came with the model

    # The published range of top_p has a 0; the smallest set of tokens is the most probable one.
    greedy = body.top_p == 0
    penalty = body.repetition_penalty
    return SamplingParams(
        temperature=0.0 if greedy else body.temperature or 0.0,
        top_p=1.0 if greedy or body.top_p is None else body.top_p,
        top_k=-1 if body.top_k is None else body.top_k,
        frequency_penalty=body.frequency_penalty or 0.0,
        presence_penalty=body.presence_penalty or 0.0,
        repetition_penalty=1.0 if penalty is None else min(_HIGHEST_PENALTY, max(_LOWEST_PENALTY, penalty)),
        seed=body.seed,
    )


def llama_sampling_of(body: LlamaSampledBody) -> SamplingParams:
    """The engine's parameters: zero and negative numbers have no effect where llama.cpp and Ollama say so."""
    return sampling_of(
        SimpleNamespace(
            temperature=body.temperature,
            top_p=body.top_p,
            top_k=body.top_k or None,
            frequency_penalty=body.frequency_penalty,
            presence_penalty=body.presence_penalty,
            repetition_penalty=body.repeat_penalty or None,
            seed=body.seed if body.seed is not None and body.seed >= 0 else None,
        )
    )
