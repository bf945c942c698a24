"""One request while its canvases of noise are denoised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic

import torch
from torch import Tensor

from calomel.engine.constraint import Walk
from calomel.engine.errors import PolicyUnavailableError
from calomel.engine.handle import Handle
from calomel.engine.renoise.backbone import E
from calomel.engine.renoise.rules import RenoiseRules
from calomel.engine.renoise.step import Stepped
from calomel.engine.request import Request
from calomel.engine.result import CanvasState, FinishReason, Result
from calomel.engine.reveal import Paced, RevealPolicy, parse_policy


@dataclass(slots=True, eq=False)
class RenoiseJob(Generic[E]):
    """The mutable state of one request.

    Attributes:
        request: what was asked; `reveal` is its policy, read.
        handle: who waits.
        rules: of the checkpoint's canvases.
        tokens: context and answer so far; `encoded` holds the first of them.
        canvas: [L] int64, what the next step reads; None between two canvases.
        last: what the last step made of the canvas; its `condition` is what the next step is told.
        raw: [L, V], what the model said in the last step, at temperature 1; None once that is no longer needed.
        warmth: the temperature of the last step.
        steps_here: of this canvas.
        unchanged: scalar tensor, so many steps in a row left the best tokens as they were.
        turned: [L], how often each position's best token changed.
        walk: where in the request's constraint the answer is; None without one.
        settled: the leading positions of the canvas that the constraint has had its word on, with their tokens.
    """

    request: Request
    handle: Handle
    rules: RenoiseRules
    reveal: RevealPolicy = field(init=False)
    tokens: list[int] = field(init=False)
    generator: torch.Generator | None = None
    encoded: E | None = None
    prefill_rows: int = 0
    canvas: Tensor | None = None
    last: Stepped | None = None
    raw: Tensor | None = None
    warmth: Tensor | None = None
    steps_here: int = 0
    unchanged: Tensor | None = None
    turned: Tensor | None = None
    walk: Walk | None = field(init=False, default=None)
    settled: dict[int, int] = field(default_factory=dict)
    log_probs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    flips: list[int] = field(default_factory=list)
    end_log_prob: float | None = None
    steps: int = 0
    forwards: int = 0
    cached_tokens: int = 0
    began: float = 0.0
    prefilled: float | None = None

    def __post_init__(self) -> None:
        reveal = parse_policy(self.request.policy).reveal
        if reveal is None or isinstance(reveal, Paced):
            raise PolicyUnavailableError(
                f"policy {self.request.policy!r} needs masked positions; this checkpoint's canvases have none: "
                "choose entropy_bound:NATS"
            )
        self.reveal = reveal
        self.tokens = list(self.request.context)
        if self.request.constraint is not None:
            self.walk = self.request.constraint.begin()

    @property
    def prefill_left(self) -> int:
        """Tokens that the next canvas needs encoded: of the context, or the canvas before."""
        return 0 if self.encoded is None else len(self.tokens) - self.encoded.length

    @property
    def answer(self) -> list[int]:
        """The tokens of the answer that are final."""
        return self.tokens[len(self.request.context) :]

    @property
    def room(self) -> int:
        """How many tokens the answer may still get."""
        return len(self.request.context) + self.request.max_new_tokens - len(self.tokens)

    def frozen_here(self) -> dict[int, int]:
        """The frozen tokens of the current canvas, by its positions."""
        offset = len(self.tokens) - len(self.request.context)
        frozen = self.request.frozen.items()
        return {at - offset: token for at, token in frozen if offset <= at < offset + self.rules.canvas}

    @property
    def front(self) -> int:
        """The first position of the canvas that is not settled."""
        return len(self.settled)

    def held_here(self) -> dict[int, int]:
        """The tokens of the current canvas that stay, by its positions."""
        return self.frozen_here() | self.settled

    def endless(self) -> int:
        """So many leading positions of the current canvas can't hold the end: more has to come."""
        offset = len(self.tokens) - len(self.request.context)
        needed = max(self.request.min_new_tokens, *(at + 1 for at in self.request.frozen), 0)
        return max(0, needed - offset)

    def open_canvas(self, canvas: Tensor) -> None:
        """Begin a canvas with `canvas` [L] on it."""
        self.canvas, self.last, self.raw = canvas, None, None
        self.settled.clear()
        self.steps_here, self.unchanged, self.turned = 0, None, None

    def extend(self, ids: Sequence[int], log_probs: Sequence[float], entropies: Sequence[float]) -> None:
        """Append final tokens to the answer; an end token ends it, and what is beyond `room` is dropped."""
        flips = [0] * len(ids) if self.turned is None else self.turned.tolist()
        for token, log_prob, entropy, turned in zip(ids, log_probs, entropies, flips, strict=False):
            if token in self.rules.end_token_ids:
                self.end_log_prob = log_prob
                return
            if not self.room:
                return
            self.tokens.append(token)
            self.log_probs.append(log_prob)
            self.entropies.append(entropy)
            self.flips.append(turned)

    def state(self) -> CanvasState:
        """The answer and what the canvas says as it is, up to its end."""
        answer = self.answer
        ids, sure = ([], []) if self.last is None else (self.last.best.tolist(), self.last.accepted.tolist())
        if self.walk is not None:
            sure = [at < self.front for at in range(len(ids))]
        end = next((at for at, token in enumerate(ids) if token in self.rules.end_token_ids), len(ids))
        shown = min(end, self.room)
        return CanvasState(self.forwards, (*answer, *ids[:shown]), (True,) * len(answer) + tuple(sure[:shown]))

    def result(self, reason: FinishReason, now: float) -> Result:
        """The finished answer."""
        prefilled = self.began if self.prefilled is None else self.prefilled
        return Result(
            ids=tuple(self.answer),
            log_probs=tuple(self.log_probs),
            entropies=tuple(self.entropies),
            flips=tuple(self.flips),
            end_log_prob=self.end_log_prob,
            finish_reason=reason,
            steps=self.steps,
            forwards=self.forwards,
            cached_tokens=self.cached_tokens,
            computed_tokens=len(self.request.context) - self.cached_tokens,
            canvas_length=self.rules.canvas,
            length_scores=(),
            prefill_seconds=prefilled - self.began,
            denoise_seconds=now - prefilled,
            near_ties=0,
        )
