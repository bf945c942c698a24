"""A step forwards the rows of all active requests at once, and every request takes its share.

A step is: forward, logits, draw tokens, reveal and revise on the board, stop test. Prefill chunks, canvases, causal
commits and verifications of different requests are rows of the same forward.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import torch
from torch import Tensor

from calomel.engine.alone import alone
from calomel.engine.buffer import KeyValueBuffer
from calomel.engine.cache import PrefixCache
from calomel.engine.canvas import Board
from calomel.engine.config import ModelConfig
from calomel.engine.constrained import Rows, decide
from calomel.engine.flash import flash_varlen
from calomel.engine.foresight import Foresight
from calomel.engine.forward import Piece, attention_multiplications, forward, text_of
from calomel.engine.handle import Handle
from calomel.engine.job import Clock, Job
from calomel.engine.length import LengthBias
from calomel.engine.progress import Progress
from calomel.engine.request import Request
from calomel.engine.resident.opening import open_resident
from calomel.engine.resident.options import ResidentOptions
from calomel.engine.sampling import Draw, choose
from calomel.engine.share import Share, causal_predictions
from calomel.engine.transformer import Transformer
from calomel.engine.work import Work

# Multiplications of a forward from which on several threads are faster than one: with passive waiting a thread is woken
# for every operation. Steps of a model of 6M parameters, on one thread and on two: 24 rows behind 2K tokens, 0.2
# billion, 20 and 27 ms; 35 rows behind 8K tokens, 0.6 billion, 50 and 45 ms.
_PARALLEL_WORK: Final = 500_000_000


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one forward was for: `requests` took part with `rows` rows, `prefill_rows` of them context.

    It took `seconds`; where the device works on by itself, only as long as it was told what to do.
    """

    requests: int
    rows: int
    prefill_rows: int
    seconds: float = field(default=0.0, compare=False)


class Denoiser:
    """Does the work of a step: owns the prefix cache, the board and the buffers. One thread at a time.

    Attributes:
        work: what was done so far; may be read from any thread.
    """

    def __init__(  # noqa: PLR0913  (independent options, each with its default)
        self,
        model: Transformer,
        cache: PrefixCache,
        *,
        slots: int,
        threads: int | None = None,
        spare_tokens: int = 0,
        room: int | None = None,
        within_first_step: int = 0,
        within_forward: int = 0,
        length_bias: LengthBias | None = None,
        clock: Clock = time.monotonic,
        observe: Callable[[StepReport], None] | None = None,
        resident: ResidentOptions | None = None,
    ) -> None:
        weight, diffusion = model.embed_tokens.weight, model.config.diffusion
        self._model = model
        self._cache = cache
        self._clock = clock
        self._device, self._dtype = weight.device, weight.dtype
        self._flash = flash_varlen() if weight.dtype in (torch.float16, torch.bfloat16) else None
        self._observe = observe
        self._within_first_step = within_first_step
        self._within_forward = within_forward
        self._threads = threads or torch.get_num_threads()
        self._parameters = sum(parameter.numel() for parameter in model.parameters())
        self._slots = list(range(slots))
        spare_slots = 0 if resident is None else 1
        self._board = Board(
            slots + spare_slots, diffusion.max_canvas, mask_token_id=diffusion.mask_token_id, device=weight.device
        )
        # The longest unused first.
        self._spare: list[KeyValueBuffer] = []
        self._most_spare = spare_tokens
        self._room = room
        self._begun: set[Job] = set()
        self.progress = Progress(diffusion, cache, self._board, clock, length_bias)
        self.work = Work()
        self._resident = None
        if resident is not None:
            self._resident = open_resident(
                resident, model, self._board, self.progress, cache.pages * cache.page_size, self._resident_step
            )

    @property
    def config(self) -> ModelConfig:
        """Of the model."""
        return self._model.config

    def foresee(self, foresight: Foresight) -> None:
        """Guess second steps as `foresight` does, from now on."""
        self._board.foresight = foresight

    def clock(self) -> float:
        """Seconds that deadlines are compared with."""
        return self._clock()

    def job(self, request: Request, handle: Handle) -> Job:
        """A checked request, not begun."""
        return Job(request, handle, self._model.config.diffusion)

    def expired(self, job: Job) -> None:
        """What is known when the deadline passes is the answer."""
        self.progress.expired(job)

    def fits(self, job: Job) -> bool:
        """Whether there is room for its buffer beside the others'; some is kept for clients that have nothing there."""
        if self._room is None:
            return True
        others = any(other.request.client == job.request.client for other in self._begun)
        room = self._room * 3 // 4 if others else self._room
        return sum(map(self._most, self._begun)) + self._most(job) <= room

    def _most(self, job: Job) -> int:
        """Tokens that the buffer of `job` may have to hold before it ends."""
        request = job.request
        answer = request.max_new_tokens if request.given is None else len(request.given)
        return len(request.context) + answer + self._model.config.diffusion.max_canvas

    def begin(self, job: Job) -> None:
        """Give `job` a canvas, a buffer and what the cache has of its context."""
        job.began = self.clock()
        job.slot = self._slots.pop()
        longest = self._model.config.diffusion.max_canvas
        known, given = job.request.context[: job.readable], job.request.given
        room = min(job.request.max_new_tokens, longest) + longest if given is None else len(given)
        job.buffer = self._take_buffer(known, len(job.request.context) + room)
        self._begun.add(job)
        self._drop_spare()
        job.lease = self._cache.acquire(known, job.buffer)
        job.cached_tokens = job.kept = job.lease.length
        if job.cached_tokens:
            job.within_first_step = self._within_first_step if given is None else self._within_forward
        sampling = job.request.sampling
        if sampling.temperature > 0:
            job.generator = torch.Generator(self._device)
            if sampling.seed is None:
                job.generator.seed()
            else:
                job.generator.manual_seed(sampling.seed)

    def end(self, job: Job) -> None:
        """Take back what `begin` gave; safe for a job that has not begun."""
        if job.lease is not None:
            self._cache.release(job.lease, job.buffer)
            job.lease = None
        if job.buffer is not None:
            job.buffer.tokens = tuple(job.tokens[: job.buffer.length])
            self._spare.append(job.buffer)
            job.buffer = None
            self._begun.remove(job)
            self._drop_spare()
        if job.slot >= 0:
            self._slots.append(job.slot)
            job.slot = -1

    def step(self, jobs: Sequence[Job]) -> None:
        """Take every job one step on; what fails in one of them ends that one alone."""
        pieces: list[Piece] = []
        shares: list[Share] = []
        draws: list[Draw] = []
        for job in self._left_by_resident(jobs):
            with alone(job):
                mine = self._pieces(job)
                share = Share.of(job, shares[-1].stop if shares else 0, mine)
                draws += share.draws(self._model.config.vocab_size, self._device)
                shares.append(share)
                pieces += mine
        if not pieces:
            return
        rows = sum(len(piece.ids) for piece in pieces)
        self._use_threads(rows, attention_multiplications(self._model.config, pieces))
        began = time.perf_counter()
        logits = forward(self._model, pieces, self._flash)
        seconds = time.perf_counter() - began
        encoded = sum(share.job.prefill_rows for share in shares)
        self._count(StepReport(len(shares), rows, encoded, seconds))
        self._take(shares, draws, logits)
        if encoded and self._device.type == "cuda":
            # What is only queued has no measured time, and whoever comes next waits for all of it.
            torch.cuda.synchronize(self._device)

    def _left_by_resident(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Those of `jobs` whose step is not one that stays on the device; the others are taken on."""
        if self._resident is None:
            return jobs
        there: list[Job] = []
        left: list[Job] = []
        for job in jobs:
            with alone(job):
                self._begin_answer(job)
                (there if self._resident.takes(job) else left).append(job)
        if there:
            self._use_threads(sum(job.length + len(job.uncommitted) for job in there))
            self._resident.run(there)
        return left

    def _resident_step(self, requests: int, rows: int) -> None:
        self._count(StepReport(requests, rows, 0))

    def _count(self, report: StepReport) -> None:
        self.work += Work(1, int(report.rows > report.prefill_rows), report.rows, report.prefill_rows)
        if self._observe is not None:
            self._observe(report)

    def _use_threads(self, rows: int, attention: int = 0) -> None:
        work = rows * self._parameters + attention
        torch.set_num_threads(self._threads if work >= _PARALLEL_WORK else 1)

    def _begin_answer(self, job: Job) -> None:
        if not job.prefill_left and job.prefilled is None:
            job.prefilled = self.clock()
            job.begin_canvas(self._board)

    def _pieces(self, job: Job) -> list[Piece]:
        self._begin_answer(job)
        pieces = job.pieces(self._board)
        for piece in pieces:
            piece.buffer.reserve(piece.context + len(piece.ids))
        memory = self._model.config.memory
        if memory is None:
            return pieces
        return [replace(piece, text=text_of(piece, job.tokens, memory, self._device)) for piece in pieces]

    def _take(self, shares: Sequence[Share], draws: Sequence[Draw], logits: Tensor) -> None:
        diffusion = self._model.config.diffusion
        choice = choose(logits, draws, mask_token_id=diffusion.mask_token_id, end_token_id=diffusion.end_token_id)
        predictions = causal_predictions(logits, choice, shares)
        rows = Rows(logits, choice)
        canvases: list[Share] = []
        for share in shares:
            job = share.job
            with alone(job):
                if job.walk is not None and predictions[job]:
                    predictions[job] = decide(job, job.walk, predictions[job], share.start, rows)
                if job.prefill_rows:
                    self.progress.prefilled(job)
                elif job.request.given is not None:
                    self.progress.scored(job, predictions[job])
                elif job.opening:
                    self.progress.opened(job, predictions[job][0])
                elif job.draft is not None:
                    self.progress.verified(job, predictions[job])
                elif self.progress.begun(job, predictions[job]):
                    canvases.append(share)
        if canvases:
            self.progress.denoised(canvases, rows)

    def _laid_out(self) -> int:
        """Tokens of unused buffers; where there is one room for all, with those that may be needed by used ones."""
        used = 0 if self._room is None else sum(map(self._most, self._begun))
        return used + sum(spare.capacity for spare in self._spare)

    def _drop_spare(self) -> None:
        """Let go of unused buffers until the others have their room."""
        while len(self._spare) > (not self._begun) and self._laid_out() > self._most_spare:
            self._spare.pop(0)

    def _take_buffer(self, tokens: Sequence[int], capacity: int) -> KeyValueBuffer:
        """The spare buffer that holds most of `tokens` already, with room for `capacity`.

        Behind a keystroke it is the buffer of the answer before: nothing of the context has to be copied. One that
        holds little of them is another context's, which will want it back: it is taken only where there is no room for
        a new one, the longest unused first.
        """
        block = self._model.config.diffusion.block
        common = [size - size % block for size in (spare.common(tokens) for spare in self._spare)]
        chosen = max(range(len(common)), key=lambda index: (common[index], self._spare[index].capacity), default=None)
        if chosen is None or common[chosen] * 2 < len(tokens):
            if chosen is None or self._laid_out() + capacity <= self._most_spare:
                return self._new_buffer(capacity)
            chosen = 0
        buffer = self._spare.pop(chosen)
        buffer.length = common[chosen]
        buffer.reserve(capacity)
        return buffer

    def _new_buffer(self, capacity: int) -> KeyValueBuffer:
        """In the arena of resident steps, for which what is spare makes room; else, or where it has none, alone."""
        arena = None if self._resident is None else self._resident.arena
        if arena is not None and capacity <= arena.unread:
            buffer = arena.take(capacity)
            while buffer is None and self._spare:
                self._spare.pop(0)
                buffer = arena.take(capacity)
            if buffer is not None:
                return buffer
        return KeyValueBuffer(self._model.config, capacity, dtype=self._dtype, device=self._device)
