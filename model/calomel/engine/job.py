"""A request while it is served, and the canvas that it is denoised on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import torch

from calomel.engine.config import DiffusionConfig
from calomel.engine.errors import EngineError, RequestFailedError
from calomel.engine.handle import Handle
from calomel.engine.pages import PageTable
from calomel.engine.request import CanvasState, FinishReason, Request, Result, Walk
from calomel.engine.sampling import Counts, Prediction, count_tokens
from calomel.storage.failures import cause

P = TypeVar("P")
C = TypeVar("C")
B = TypeVar("B", bound=PageTable)


@dataclass(slots=True)
class Canvas:
    """Positions of which some hold the mask token, on the host; position i of every list is position i of the canvas.

    Attributes:
        mask_token_id: stands where no token is known.
        ids: token ids.
        log_probs: of the tokens when they were revealed; `entropies` likewise.
    """

    mask_token_id: int
    ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def revealed(self) -> list[bool]:
        """For each position, whether it is known."""
        return [token != self.mask_token_id for token in self.ids]

    def masked(self, start: int = 0, stop: int | None = None) -> list[int]:
        """The positions from `start` to `stop` that are not known."""
        end = len(self.ids) if stop is None else min(stop, len(self.ids))
        return [column for column in range(start, end) if self.ids[column] == self.mask_token_id]

    def prefix(self) -> int:
        """How many leading positions are known."""
        return self.ids.index(self.mask_token_id) if self.mask_token_id in self.ids else len(self.ids)

    def take(self, column: int, found: Prediction) -> None:
        """Put `found` at `column`."""
        self.ids[column], self.log_probs[column], self.entropies[column] = found.token, found.log_prob, found.entropy

    def hide(self, start: int) -> None:
        """Mask the positions from `start` on again."""
        self.ids[start:] = [self.mask_token_id] * (len(self) - start)

    def insert(self, column: int, count: int) -> None:
        """Put `count` masks before `column`."""
        self.ids[column:column] = [self.mask_token_id] * count
        self.log_probs[column:column] = [0.0] * count
        self.entropies[column:column] = [0.0] * count

    def drop(self, start: int, stop: int | None = None) -> None:
        """Remove the positions from `start` to `stop`."""
        for values in (self.ids, self.log_probs, self.entropies):
            del values[start:stop]


@dataclass(slots=True, eq=False)
class Job(Generic[P, C, B]):
    """The mutable state of one request.

    Attributes:
        request: what was asked for.
        handle: of the caller.
        diffusion: how the checkpoint denoises.
        policy: the request's, as the decoder parsed it.
        canvas: the current one, of the decoder's own kind.
        ends: tokens that end the answer.
        tokens: context and answer so far.
        buffer: the encoded part of them, from `begin` to `end`.
        walk: where in the request's constraint the answer is, with the settled part of the canvas; None without one.
        front: how many leading positions of the canvas are settled, if there is a constraint.
        seen: the tokens of context and suffix, ascending, once a penalty has asked.
        prefill_target: how many tokens are encoded before the next step, in chunks of `prefill_rows`.
        began: when the first work was done on it; `prefilled` when its context was encoded.
    """

    request: Request
    handle: Handle
    diffusion: DiffusionConfig
    policy: P
    canvas: C
    ends: tuple[int, ...]
    tokens: list[int] = field(init=False)
    walk: Walk | None = field(init=False)
    buffer: B | None = None
    generator: torch.Generator | None = None
    seen: np.ndarray | None = None
    front: int = 0
    prefill_rows: int = 0
    prefill_target: int = 0
    log_probs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    end_log_prob: float | None = None
    steps: int = 0
    forwards: int = 0
    cached_tokens: int = 0
    began: float = 0.0
    prefilled: float | None = None

    def __post_init__(self) -> None:
        self.tokens = list(self.request.context)
        self.walk = None if self.request.constraint is None else self.request.constraint.begin()

    @property
    def encoded(self) -> B:
        """The buffer; there is one from `begin` until the job ends."""
        if self.buffer is None:
            raise RuntimeError("the job has not started")
        return self.buffer

    @property
    def prefill_left(self) -> int:
        """How many tokens are still to be encoded before the next step."""
        return 0 if self.buffer is None else max(0, self.prefill_target - self.buffer.length)

    @property
    def offset(self) -> int:
        """How many tokens of the answer are final."""
        return len(self.tokens) - len(self.request.context)

    @property
    def answer(self) -> list[int]:
        """The tokens of the answer that are final."""
        return self.tokens[len(self.request.context) :]

    @property
    def longest(self) -> int:
        """How many tokens the answer may have."""
        given = self.request.given
        return self.request.max_new_tokens if given is None else len(given)

    @property
    def room(self) -> int:
        """How many tokens the answer may still get."""
        return self.longest - self.offset

    def bans_end(self, column: int) -> bool:
        """Whether the answer may not end at position `column` after the final tokens yet."""
        return self.offset + column < self.request.min_new_tokens

    def settled(self, count: int) -> int:
        """How many of `count` leading positions of the canvas stay: those that the constraint has settled, if any."""
        return count if self.walk is None else min(count, self.front)

    def ended(self, ids: Sequence[int], count: int) -> int | None:
        """Where in the first `count` of `ids` the answer ends; None if it does not."""
        return next((column for column, token in enumerate(ids[:count]) if token in self.ends), None)

    def counts(self, rows: int, known: Sequence[int] = (), following: Sequence[int] = ()) -> Counts | None:
        """What the penalties of `rows` rows count, after the answer and `known`; None without penalties.

        Row i also comes after the first i tokens of `following`.
        """
        if not (rows and self.request.sampling.penalised):
            return None
        if self.seen is None:
            self.seen = np.unique(np.array((*self.request.context, *self.request.suffix), dtype=np.int64))
        return count_tokens(self.seen, [*self.answer, *known], following, rows)

    def extend(self, found: Sequence[Prediction]) -> None:
        """Append final tokens to the answer; an end token ends it, and what is beyond `room` is dropped.

        A given answer may contain tokens that would end another one.
        """
        given = self.request.given is not None
        for each in found:
            if each.token in self.ends and not (given and self.room):
                self.end_log_prob = each.log_prob
                return
            if not self.room:
                return
            self.tokens.append(each.token)
            self.log_probs.append(each.log_prob)
            self.entropies.append(each.entropy)

    def extend_by(self, canvas: Canvas, length: int) -> None:
        """Append the first `length` positions of `canvas`, and empty it."""
        rows = zip(canvas.ids[:length], canvas.log_probs, canvas.entropies, strict=False)
        self.extend([Prediction(*row) for row in rows])
        canvas.drop(0)

    def over(self) -> FinishReason | None:
        """Why the answer ends here; None if it goes on."""
        if self.end_log_prob is not None:
            return "stop"
        if not self.room:
            return "length"
        until, unlikely = self.request.until, self.request.unlikely
        ended = until is not None and until(self.answer)
        return "stop" if ended or (unlikely is not None and unlikely(self.answer, self.log_probs)) else None

    def show(self, ids: Sequence[int] = (), revealed: Sequence[bool] = ()) -> None:
        """Record the answer and a canvas as they are, if requested."""
        if self.request.record_canvases:
            answer, sure = self.answer, self.settled(len(ids))
            known = [shown and column < sure for column, shown in enumerate(revealed)]
            self.handle.push(CanvasState(self.forwards, (*answer, *ids), (*[True] * len(answer), *known)))

    def finish(self, reason: FinishReason, now: float) -> None:
        """Settle the handle with the answer."""
        prefilled = self.began if self.prefilled is None else self.prefilled
        result = Result(
            ids=tuple(self.answer),
            log_probs=tuple(self.log_probs),
            entropies=tuple(self.entropies),
            end_log_prob=self.end_log_prob,
            finish_reason=reason,
            steps=self.steps,
            forwards=self.forwards,
            cached_tokens=self.cached_tokens,
            computed_tokens=len(self.request.context) + len(self.request.suffix) - self.cached_tokens,
            prefill_seconds=prefilled - self.began,
            denoise_seconds=now - prefilled,
        )
        self.handle.settle(result)


@contextmanager
def alone(handle: Handle) -> Iterator[None]:
    """End the request of `handle`, and no other, with any exception raised within."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  (the other requests go on in any case)
        fail(handle, error)


def fail(handle: Handle, error: Exception) -> None:
    """End the request of `handle` with `error`."""
    if isinstance(error, EngineError):
        handle.settle(error)
        return
    failure = RequestFailedError(f"the request failed: {cause(error)}")
    failure.__cause__ = error
    handle.settle(failure)


def generator(device: torch.device, seed: int | None) -> torch.Generator:
    """Random numbers of one request; freshly seeded without a seed."""
    made = torch.Generator(device)
    if seed is None:
        made.seed()
    else:
        made.manual_seed(seed)
    return made
