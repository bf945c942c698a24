"""A step of window mode: the windows of all active requests side by side, then each canvas takes its share.

Nothing is padded: the rows of all requests lie one behind the other, and each attends to its own window.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Final

import torch
from torch import Tensor

from calomel.engine.alone import alone
from calomel.engine.config import ModelConfig
from calomel.engine.constrained import Rows
from calomel.engine.denoise import StepReport
from calomel.engine.errors import DeadlineExceededError
from calomel.engine.flash import flash_varlen
from calomel.engine.handle import Handle
from calomel.engine.length import LengthBias, best_length, score_lengths
from calomel.engine.request import Request
from calomel.engine.result import FinishReason
from calomel.engine.sampling import Draw, choose, count_tokens
from calomel.engine.transformer import Transformer
from calomel.engine.window.attention import Span, WindowAttention
from calomel.engine.window.job import WindowJob
from calomel.engine.window.options import WindowOptions
from calomel.engine.window.reveal import reveal, without_end

# As for a canvas behind a cached context: below, waking a second thread costs more than it brings.
_PARALLEL_WORK: Final = 1_000_000_000


class WindowWorker:
    """Does the work of a step. One thread at a time."""

    def __init__(
        self,
        model: Transformer,
        options: WindowOptions,
        *,
        threads: int | None = None,
        length_bias: LengthBias | None = None,
        clock: Callable[[], float] = time.monotonic,
        observe: Callable[[StepReport], None] | None = None,
    ) -> None:
        weight = model.embed_tokens.weight
        self._model = model
        self._options = options
        self._bias = length_bias
        self._clock = clock
        self._observe = observe
        self._device = weight.device
        self._flash = flash_varlen() if weight.dtype in (torch.float16, torch.bfloat16) else None
        self._threads = threads or torch.get_num_threads()
        self._parameters = sum(parameter.numel() for parameter in model.parameters())

    @property
    def config(self) -> ModelConfig:
        """Of the model."""
        return self._model.config

    def clock(self) -> float:
        """Seconds that deadlines are compared with."""
        return self._clock()

    def job(self, request: Request, handle: Handle) -> WindowJob:
        """A checked request, not begun. Raises InvalidRequestError for what window mode does not know."""
        return WindowJob(request, handle, self.config.diffusion, self._options)

    def fits(self, job: WindowJob) -> bool:
        """Always: what a job takes is counted by the number of jobs."""
        del job
        return True

    def begin(self, job: WindowJob) -> None:
        """Set up the first canvas."""
        job.began_at = self.clock()
        sampling = job.request.sampling
        # The order of positions can be a matter of chance where tokens are none.
        job.generator = torch.Generator(self._device)
        if sampling.seed is None:
            job.generator.seed()
        else:
            job.generator.manual_seed(sampling.seed)
        job.begin_canvas()

    def end(self, job: WindowJob) -> None:
        """Let go of what the job's window has left; safe for a job that has not begun."""
        job.kept = None

    def expired(self, job: WindowJob) -> None:
        """The deadline has passed: answer with what is known without a gap."""
        if not job.forwards:
            job.handle.settle(
                DeadlineExceededError("the deadline passed before the first step; allow more time or a shorter context")
            )
            return
        job.take(job.known())
        self._finish(job, "stop" if job.end_log_prob is not None else "deadline")

    def step(self, jobs: Sequence[WindowJob]) -> None:
        """Take every job one step on; what fails in one of them ends that one alone."""
        spans: list[Span] = []
        draws: list[Draw] = []
        taking: list[tuple[WindowJob, list[Span], int]] = []
        row = 0
        for job in jobs:
            with alone(job):
                # A canvas that the request knows whole takes no forward.
                while not job.open and not job.handle.done:
                    self._go_on(job)
                if job.handle.done:
                    continue
                if len(job.candidates) == 1:
                    job.skip()
                mine = job.spans()
                draws += _draws(job, mine, row, self.config.vocab_size, self._device)
                taking.append((job, mine, row))
                spans += mine
                row += sum(len(span.read) for span in mine)
        if not spans:
            return
        size = sum(len(span.ids) for span in spans)
        torch.set_num_threads(self._threads if size * self._parameters >= _PARALLEL_WORK else 1)
        logits = self._forward(spans)
        if self._observe is not None:
            self._observe(StepReport(len(taking), size, 0))
        diffusion = self.config.diffusion
        choice = choose(logits, draws, mask_token_id=diffusion.mask_token_id, end_token_id=diffusion.end_token_id)
        rows = Rows(logits, choice)
        for job, mine, first in taking:
            with alone(job):
                job.forwards += 1
                reveal(job, rows, self._chosen(job, mine, first, rows))
                if job.request.record_canvases:
                    job.handle.push(job.state())
                self._go_on(job)

    def _forward(self, spans: Sequence[Span]) -> Tensor:
        """The logits [R, V] float32 of the rows that `spans` want read, in order."""
        ids = torch.tensor([token for span in spans for token in span.ids], device=self._device)
        positions = torch.cat([torch.arange(span.first, span.first + len(span.ids)) for span in spans])
        hidden = self._model(ids, positions.to(self._device), WindowAttention(spans, self._flash))
        starts = accumulate((len(span.ids) for span in spans), initial=0)
        read = [start + row for start, span in zip(starts, spans, strict=False) for row in span.read]
        return self._model.logits(hidden[torch.tensor(read, device=self._device)])

    def _chosen(self, job: WindowJob, spans: Sequence[Span], first: int, rows: Rows) -> int:
        """The first row of the canvas to go on with; the first step of several candidates chooses one."""
        starts = list(accumulate((len(span.read) for span in spans), initial=first))
        chosen = 0
        if len(job.candidates) > 1:
            confidences = [rows.choice.log_prob[start:stop].exp() for start, stop in pairwise(starts)]
            scores = score_lengths(confidences, job.candidates, self._bias)
            chosen = best_length(job.candidates, scores)
            job.length_scores = tuple(zip(job.candidates, scores, strict=True))
            job.choose(job.candidates[chosen], spans[chosen].kept)
        elif job.caches and job.kept is None:
            job.kept = spans[0].kept
        job.canvas_length = job.canvas_length or len(job.canvas)
        return starts[chosen]

    def _go_on(self, job: WindowJob) -> None:
        """Behind a step: finish the answer, or begin its next block or canvas."""
        ended = job.ended()
        if ended is not None and not job.algorithm.rereads and not (job.revised and job.open):
            job.take(ended + 1)
            self._finish(job, "stop")
            return
        if job.open:
            return
        until = job.request.until
        if job.stop < len(job.canvas):
            if until is not None and until([*job.answer, *job.canvas.ids[: job.stop]]):
                job.take(job.stop)
                self._finish(job, "stop")
                return
            job.begin_block()
            return
        job.take(len(job.canvas))
        if job.end_log_prob is not None or job.request.suffix or (until is not None and until(job.answer)):
            self._finish(job, "stop")
        elif not job.room or job.options.elastic:
            self._finish(job, "stop" if job.room else "length")
        else:
            job.begin_canvas()

    def _finish(self, job: WindowJob, reason: FinishReason) -> None:
        job.handle.settle(job.result(reason, self._clock()))


def _draws(job: WindowJob, spans: Sequence[Span], first: int, vocab: int, device: torch.device) -> list[Draw]:
    """What `choose` does to the rows of `job` before its own algorithm reads them: penalties, and ends that are banned.

    The token itself is the algorithm's to draw.
    """
    params = replace(job.request.sampling, temperature=0.0)
    draws: list[Draw] = []
    for span in spans:
        stop = first + len(span.read)
        counts = None
        if params.penalised and span.read:
            known = [token for token in job.canvas.ids if token != job.diffusion.mask_token_id]
            context = [*job.request.context, *job.request.suffix]
            counts = count_tokens(context, [*job.answer, *known], (), len(span.read), vocab, device)
        draws.append(Draw(first, stop, params, counts=counts, without_end=without_end(job, len(span.read))))
        first = stop
    return draws
