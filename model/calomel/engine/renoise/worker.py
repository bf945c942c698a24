"""The worker of canvases of uniform noise: contexts are encoded once and kept, and requests share forwards.

An answer is a sequence of canvases. Behind each, what it says is encoded like the context, and the next one begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import torch
from torch import Tensor

from calomel.engine.alone import alone
from calomel.engine.errors import DeadlineExceededError, InvalidRequestError
from calomel.engine.handle import Handle
from calomel.engine.renoise.backbone import Backbone, E
from calomel.engine.renoise.held import hold
from calomel.engine.renoise.job import RenoiseJob
from calomel.engine.renoise.rules import RenoiseShape
from calomel.engine.renoise.spare import Spares
from calomel.engine.renoise.step import noise, step, temperature
from calomel.engine.request import Request
from calomel.engine.result import FinishReason
from calomel.engine.sampling import LOWEST, count_tokens, penalise

Clock = Callable[[], float]
T = TypeVar("T")


class RenoiseWorker(Generic[E]):
    """Serves requests on a backbone whose canvases are of uniform noise. One thread at a time.

    Of a request, `canvas_lengths` is not looked at: the model knows canvases of one length. `revise` and `guess` change
    nothing: every position may change in every step as it is. `SamplingParams.temperature` is a factor of the
    published schedule: 1 is what was published, and 0 takes the best token of each position, by that schedule, with the
    same noise every time where there is no seed. Penalties count the context and the canvases before.

    Args:
        backbone: the network.
        spare_tokens: tokens of contexts that stay encoded for their next keystroke.
        threads: of a forward on a CPU; None for PyTorch's own choice.
        clock: seconds that deadlines are compared with.
    """

    def __init__(
        self,
        backbone: Backbone[E],
        *,
        spare_tokens: int = 65_536,
        threads: int | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._backbone = backbone
        self._rules = backbone.shape.rules
        self._spares: Spares[E] = Spares(spare_tokens)
        self._threads = threads or torch.get_num_threads()
        self._clock = clock

    @property
    def config(self) -> RenoiseShape:
        """Of the model."""
        return self._backbone.shape

    def clock(self) -> float:
        """Seconds that deadlines are compared with."""
        return self._clock()

    def job(self, request: Request, handle: Handle) -> RenoiseJob[E]:
        """A checked request, not begun.

        Raises:
            InvalidRequestError: the policy needs masks, or the context has a picture.
        """
        for token in self._rules.pictures:
            if token in request.context:
                raise InvalidRequestError(f"context has token id {token}, a picture; this engine reads text alone")
        return RenoiseJob(request, handle, self._rules)

    def fits(self, job: RenoiseJob[E]) -> bool:
        """Always: what a job takes is counted by the number of jobs."""
        del job
        return True

    def begin(self, job: RenoiseJob[E]) -> None:
        """Give `job` what is encoded of its context already, and its random numbers."""
        job.began = self.clock()
        taken = self._spares.take(job.request.context)
        job.encoded = self._backbone.empty() if taken is None else taken
        job.cached_tokens = job.encoded.length
        job.generator = torch.Generator(self._backbone.device)
        sampling = job.request.sampling
        if sampling.seed is not None or sampling.temperature == 0:
            job.generator.manual_seed(sampling.seed or 0)
        else:
            job.generator.seed()

    def end(self, job: RenoiseJob[E]) -> None:
        """Keep what is encoded for the next request; safe for a job that has not begun."""
        if job.encoded is None:
            return
        held = job.encoded.length
        kept = held if job.request.reuse is None else min(held, job.request.reuse)
        if job.encoded.reaches(kept):
            job.encoded.cut(kept)
            self._spares.put(job.tokens[:kept], job.encoded)
        job.encoded = job.canvas = job.last = job.raw = None

    def expired(self, job: RenoiseJob[E]) -> None:
        """The deadline has passed: answer with what is accepted without a gap."""
        if not job.forwards:
            job.handle.settle(
                DeadlineExceededError("the deadline passed before the first step; allow more time or a shorter context")
            )
            return
        if job.last is not None:
            sure = job.last.accepted.tolist()
            known = sure.index(False) if False in sure else len(sure)
            self._take_canvas(job, known if job.walk is None else job.front)
        self._finish(job, "stop" if job.end_log_prob is not None else "deadline")

    def step(self, jobs: Sequence[RenoiseJob[E]]) -> None:
        """Encode a chunk of every job that has something to encode, and denoise one step of all others together."""
        torch.set_num_threads(self._threads)
        ready: list[RenoiseJob[E]] = []
        for job in jobs:
            with alone(job):
                self._encode(job)
                if not job.prefill_left:
                    self._open(job)
                    ready.append(job)
        if not ready:
            return
        canvases = torch.stack([_there(job.canvas) for job in ready])
        conditions = [None if job.last is None else job.last.condition for job in ready]
        behind = [_there(job.encoded) for job in ready]
        logits = self._backbone.denoise(canvases, conditions, behind)
        for job, told in zip(ready, logits, strict=True):
            with alone(job):
                self._advance(job, told)
        ready = [job for job in ready if not job.handle.done]
        if not ready:
            return
        # The one thing that the host waits for.
        done = torch.stack([self._settled(job) for job in ready]).tolist()
        for job, is_done in zip(ready, done, strict=True):
            with alone(job):
                last = job.steps_here >= job.request.max_steps
                settled = is_done or last
                if job.walk is not None:
                    settled = hold(job, job.walk, done=is_done, last=last)
                if job.request.record_canvases:
                    job.handle.push(job.state())
                if settled:
                    self._take_canvas(job, self._rules.canvas)
                    self._go_on(job)
                job.raw = None

    def _encode(self, job: RenoiseJob[E]) -> None:
        encoded = _there(job.encoded)
        if job.prefill_rows:
            # What fails on the way leaves some layers longer than others: nobody may read them again.
            job.encoded = None
            self._backbone.encode(job.tokens[encoded.length : encoded.length + job.prefill_rows], encoded)
            job.encoded = encoded
            job.prefill_rows = 0
            job.forwards += job.prefilled is not None
        if job.prefilled is None and not job.prefill_left:
            job.prefilled = self.clock()

    def _open(self, job: RenoiseJob[E]) -> None:
        if job.canvas is None:
            canvas = noise(self._rules.canvas, self.config.vocab_size, _there(job.generator))
            job.open_canvas(_with(canvas, job.frozen_here()))

    def _advance(self, job: RenoiseJob[E], logits: Tensor) -> None:
        """Take `job` one step on, with what the model said of its canvas: [L, V]."""
        request, sampling = job.request, job.request.sampling
        job.steps += 1
        job.forwards += 1
        warmth = temperature(self._rules, request.max_steps - job.steps_here, request.max_steps)
        if sampling.temperature > 0:
            warmth = warmth * sampling.temperature
        job.steps_here += 1
        logits = self._shape(job, logits)
        taken = step(_there(job.canvas), logits, warmth, sampling, job.reveal, _there(job.generator))
        before = None if job.last is None else job.last.best
        changed = torch.ones_like(taken.best, dtype=torch.bool) if before is None else taken.best != before
        counted = torch.zeros((), dtype=torch.int64, device=logits.device)
        if job.unchanged is not None and job.turned is not None:
            counted = torch.where(changed.any(), 0, job.unchanged + 1)
            job.turned += changed
        else:
            job.turned = torch.zeros_like(taken.best)
        job.unchanged, job.raw, job.warmth = counted, logits, warmth
        job.last = replace(taken, condition=taken.condition.to(self._backbone.dtype))
        job.canvas = _with(taken.canvas, job.held_here())

    def _shape(self, job: RenoiseJob[E], logits: Tensor) -> Tensor:
        """Penalties, ends that come too early and frozen tokens, in logits [L, V]."""
        request = job.request
        if request.sampling.penalised:
            counts = count_tokens(request.context, job.answer, (), 1, logits.shape[-1], logits.device)
            logits = penalise(logits, request.sampling, counts)
        endless = job.endless()
        if endless:
            logits[:endless, list(self._rules.end_token_ids)] = -torch.inf
        for column, token in job.held_here().items():
            told = logits[column, token].clone()
            logits[column] = -torch.inf
            logits[column, token] = told.nan_to_num(neginf=0.0)
        return logits

    def _settled(self, job: RenoiseJob[E]) -> Tensor:
        """Whether the canvas is stable and sure: a scalar, bool."""
        last = _there(job.last)
        return (_there(job.unchanged) >= self._rules.stable) & (last.entropy.mean() < self._rules.sure)

    def _take_canvas(self, job: RenoiseJob[E], length: int) -> None:
        """Move what the first `length` positions of the canvas say into the answer, as far as it has room."""
        last = _there(job.last)
        # Between two steps nothing of this size is kept but what the next one is told.
        raw = last.condition.float() * _there(job.warmth).to(last.best.device) if job.raw is None else job.raw
        best, raw = last.best[:length], raw[:length]
        normal = raw.log_softmax(dim=-1)
        log_probs = normal.gather(-1, best[:, None])[:, 0]
        entropy = -(normal.clamp(min=torch.finfo(normal.dtype).min) * normal.exp()).sum(dim=-1)
        job.extend(best.tolist(), log_probs.clamp(min=LOWEST).tolist(), entropy.tolist())
        job.canvas = job.last = job.raw = None

    def _go_on(self, job: RenoiseJob[E]) -> None:
        if job.end_log_prob is not None:
            self._finish(job, "stop")
        elif not job.room:
            self._finish(job, "length")
        elif job.request.until is not None and job.request.until(job.answer):
            self._finish(job, "stop")

    def _finish(self, job: RenoiseJob[E], reason: FinishReason) -> None:
        job.handle.settle(job.result(reason, self.clock()))


def _with(canvas: Tensor, frozen: dict[int, int]) -> Tensor:
    for column, token in frozen.items():
        canvas[column] = token
    return canvas


def _there(value: T | None) -> T:
    if value is None:
        raise RuntimeError("the job has not begun")
    return value
