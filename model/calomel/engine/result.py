"""What the engine answers: token ids, and how sure the model was of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["stop", "length", "deadline"]


@dataclass(frozen=True, slots=True)
class CanvasState:
    """The whole answer so far and the current canvas, behind one step.

    Attributes:
        step: forwards of this request so far, prefill not counted.
        ids: token ids; the mask token where nothing is known yet.
        revealed: per position, whether the token is there to stay (but for `revise`); a draft that is still to be
            verified is shown, but is not revealed.
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
            revealed; with the policies `verified` and `left_to_right` the exact causal one.
        entropies: of each position's distribution when it was revealed, in nats.
        flips: how often the best token of each position changed from step to step.
        end_log_prob: log-probability of the end token, if the answer ended by one.
        finish_reason: `stop` for the end token, `length` for max_new_tokens, `deadline` for the request's deadline.
        steps: denoising steps.
        forwards: all forwards behind the prefill. The length probe, the causal encoding of a finished canvas that
            another one follows, and a second step that was foreseen (see `Foresight`) ride on a canvas forward.
        cached_tokens: context tokens read from the prefix cache.
        computed_tokens: context tokens that were not in it.
        canvas_length: the canvas length that was used; 0 when the answer needed none.
        length_scores: (length, score) of every candidate, when the probe chose.
        prefill_seconds: from the first work on the request until its context was encoded.
        denoise_seconds: from there to the end.
        near_ties: causal decisions whose best two logits were closer than 1e-4 (batching may turn them over).
    """

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    entropies: tuple[float, ...]
    flips: tuple[int, ...]
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
    near_ties: int
