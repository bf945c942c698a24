"""How many tokens a context has where nobody says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_BUDGET: Final = 32_768
# The first suggestion in a file has to read all of its context; so long a user may wait for that, in seconds.
FIRST_USE_SECONDS: Final = 3.0
# Less says too little about the place to be worth asking.
_LEAST: Final = 512


@dataclass(frozen=True, slots=True)
class ContextLimit:
    """Tokens of a context, and which bound decided."""

    tokens: int
    why: str


def default_budget(
    *,
    positions: int,
    supported: int,
    answer_tokens: int,
    wanted: int | None = None,
    prefill_rate: float | None = None,
    first_use_seconds: float = FIRST_USE_SECONDS,
) -> ContextLimit:
    """The tokens of a context; the smallest bound wins, and is named.

    Args:
        positions: of the model, which the answer needs some of.
        supported: the longest context that the benches support for the model.
        answer_tokens: of the longest answer.
        wanted: by the user, who may have more than is supported; None for what is best.
        prefill_rate: tokens a second that were measured on this device; None while nothing was measured.
        first_use_seconds: what reading a whole context may take.
    """
    most = max(1, min(MAX_BUDGET, positions - answer_tokens))
    if wanted is not None:
        if wanted <= most:
            return ContextLimit(wanted, "asked for")
        return ContextLimit(most, f"{wanted:,} asked for; {_positions(positions, answer_tokens)}")
    bounds = [
        (most, _positions(positions, answer_tokens)),
        (supported, "the longest context that the benches support for this model (`calomel bench infill --context`)"),
    ]
    if prefill_rate is not None:
        affordable = max(_LEAST, int(prefill_rate * first_use_seconds))
        bounds.append(
            (affordable, f"what this device reads in {first_use_seconds:g} s, at {prefill_rate:,.0f} tokens/s measured")
        )
    return ContextLimit(*min(bounds, key=lambda bound: bound[0]))


def _positions(positions: int, answer_tokens: int) -> str:
    return f"the model has {positions:,} positions, {answer_tokens} of them are the answer's"
