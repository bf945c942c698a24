"""The loop: one step forwards the rows of all active requests at once, and every request takes its share.

A step is: forward, logits, draw tokens, reveal and revise on the board, stop test. Prefill chunks, canvases, causal
commits and verifications of different requests are rows of the same forward. This file is the only one that repeats.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from calomel.engine.attention import flash_varlen
from calomel.engine.buffer import KeyValueBuffer
from calomel.engine.cache import PrefixCache
from calomel.engine.canvas import Board, Reading, Snapshot
from calomel.engine.errors import DeadlineExceededError, EngineError, RequestFailedError
from calomel.engine.forward import Piece, forward
from calomel.engine.job import Job
from calomel.engine.length import LengthBias, best_length, score_lengths
from calomel.engine.result import FinishReason
from calomel.engine.reveal import RevealPolicy, Threshold
from calomel.engine.sampling import Choice, Draw, choose, count_tokens, margins
from calomel.engine.scheduler import Scheduler
from calomel.engine.transformer import Transformer
from calomel.engine.verify import Prediction, agreement

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one forward was for: `requests` took part with `rows` rows, `prefill_rows` of them context."""

    requests: int
    rows: int
    prefill_rows: int


@dataclass(frozen=True, slots=True)
class Share:
    """A job's rows in the logits of a forward: `causal` rows from `start`, then `columns` of every candidate canvas."""

    job: Job
    start: int
    causal: int
    columns: tuple[tuple[int, ...], ...]

    @property
    def canvas_start(self) -> int:
        """The first canvas row."""
        return self.start + self.causal

    @property
    def stop(self) -> int:
        """Behind the last row."""
        return self.canvas_start + sum(len(columns) for columns in self.columns)


class Denoiser:
    """Does the work of a step: owns the prefix cache, the board and the buffers. One thread at a time."""

    def __init__(
        self,
        model: Transformer,
        cache: PrefixCache,
        *,
        slots: int,
        length_bias: LengthBias | None = None,
        clock: Clock = time.monotonic,
        observe: Callable[[StepReport], None] | None = None,
    ) -> None:
        self.model = model
        self.cache = cache
        self.clock = clock
        self._diffusion = model.config.diffusion
        self._device = model.embed_tokens.weight.device
        self._dtype = model.embed_tokens.weight.dtype
        self._flash = flash_varlen() if self._dtype in (torch.float16, torch.bfloat16) else None
        self._bias = length_bias
        self._observe = observe
        self._slots = list(range(slots))
        self._board = Board(
            slots, self._diffusion.max_canvas, mask_token_id=self._diffusion.mask_token_id, device=self._device
        )
        self._spare: list[KeyValueBuffer] = []

    def begin(self, job: Job) -> None:
        """Give `job` a canvas, a buffer and what the cache has of its context."""
        job.began = self.clock()
        job.slot = self._slots.pop()
        room = min(job.request.max_new_tokens, 2 * self._diffusion.max_canvas) + self._diffusion.max_canvas + 1
        job.buffer = self._take_buffer(len(job.request.context) + room)
        job.lease = self.cache.acquire(job.request.context[: job.shared], job.buffer)
        job.cached_tokens = job.lease.length
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
            self.cache.release(job.lease)
            job.lease = None
        if job.buffer is not None:
            if len(self._spare) < self._board.ids.shape[0]:
                self._spare.append(job.buffer)
            job.buffer = None
        if job.slot >= 0:
            self._slots.append(job.slot)
            job.slot = -1

    def step(self, jobs: Sequence[Job]) -> None:
        """Take every job one step on; what fails in one of them ends that one alone."""
        pieces: list[Piece] = []
        shares: list[Share] = []
        draws: list[Draw] = []
        row = 0
        for job in jobs:
            with _alone(job):
                if not job.prefill_left and job.prefilled is None:
                    job.prefilled = self.clock()
                    job.begin_canvas(self._board)
                mine = job.pieces(self._board)
                share = _share(job, row, mine)
                draws += self._draws(share)
                pieces += mine
                shares.append(share)
                row = share.stop
        if not pieces:
            return
        logits = forward(self.model, pieces, self._flash)
        if self._observe is not None:
            self._observe(
                StepReport(len(shares), sum(len(piece.ids) for piece in pieces), sum(job.prefill_rows for job in jobs))
            )
        choice = None
        if row:
            choice = choose(
                logits, draws, mask_token_id=self._diffusion.mask_token_id, end_token_id=self._diffusion.end_token_id
            )
        predictions = self._predictions(logits, choice, shares)
        canvases: list[Share] = []
        for share in shares:
            with _alone(share.job):
                if share.job.prefill_rows:
                    self._prefilled(share.job)
                elif share.job.draft is not None:
                    self._verified(share.job, predictions[share.job])
                elif self._foreseen(share, predictions[share.job]):
                    canvases.append(share)
        if canvases and choice is not None:
            self._denoise(canvases, choice)

    def expire(self, job: Job) -> None:
        """End a job whose deadline has passed with what is known of its answer."""
        if job.prefilled is None or not job.forwards:
            job.handle.settle(
                DeadlineExceededError("the deadline passed before the first step; allow more time or a shorter context")
            )
            return
        if job.draft is None and job.canvas_revealed and not job.policy.causal:
            masked = [known for known in job.canvas_revealed if known]
            leading = job.canvas_revealed.index(False) if len(masked) < len(job.canvas_revealed) else len(masked)
            self._take_canvas(job, leading)
        self._finish(job, "stop" if job.end_log_prob is not None else "deadline")

    def _take_buffer(self, capacity: int) -> KeyValueBuffer:
        """The spare buffer with the most room, so that memory is touched once; grown when it is too small."""
        if not self._spare:
            return KeyValueBuffer(self.model.config, capacity, dtype=self._dtype, device=self._device)
        buffer = self._spare.pop(max(range(len(self._spare)), key=lambda index: self._spare[index].capacity))
        buffer.length = 0
        buffer.reserve(capacity)
        return buffer

    def _draws(self, share: Share) -> list[Draw]:
        job = share.job
        draws = []
        if share.causal:
            ahead = 0 if job.uncommitted else 1  # the first row predicts behind so many tokens of the draft
            columns = range(ahead, ahead + share.causal)
            draws.append(
                self._draw(job, share.start, share.canvas_start, columns, job.answer + (job.draft or [])[:ahead],
                           (job.draft or [])[ahead:])
            )
        start = share.canvas_start
        for columns in share.columns:
            known = [token for token, is_known in zip(job.canvas_ids, job.canvas_revealed, strict=True) if is_known]
            draws.append(self._draw(job, start, start + len(columns), columns, job.answer + known))
            start += len(columns)
        return draws

    def _draw(
        self, job: Job, start: int, stop: int, columns: Sequence[int], answer: list[int], following: Sequence[int] = ()
    ) -> Draw:
        sampling, counts = job.request.sampling, None
        if sampling.penalised and stop > start:
            counts = count_tokens(
                job.request.context, answer, following, stop - start, self.model.config.vocab_size, self._device
            )
        without_end: list[int] = []
        forced: dict[int, int] = {}
        if job.request.frozen:
            without_end = [row for row, column in enumerate(columns) if job.bans_end(column)]
            at = {row: job.frozen_at(column) for row, column in enumerate(columns)}
            forced = {row: token for row, token in at.items() if token is not None}
        return Draw(start, stop, sampling, job.generator, counts, without_end, forced)

    def _predictions(
        self, logits: torch.Tensor, choice: Choice | None, shares: Sequence[Share]
    ) -> dict[Job, list[Prediction]]:
        """The causal rows of every job, fetched in one go."""
        found: dict[Job, list[Prediction]] = {share.job: [] for share in shares}
        rows = [row for share in shares for row in range(share.start, share.canvas_start)]
        if choice is None or not rows:
            return found
        index = torch.tensor(rows, device=self._device)
        numbers = torch.stack((choice.log_prob[index], choice.entropy[index], margins(logits[index]))).tolist()
        values = zip(choice.token[index].tolist(), *numbers, strict=True)
        for share in shares:
            found[share.job] = [Prediction(*next(values)) for _ in range(share.causal)]
        return found

    def _prefilled(self, job: Job) -> None:
        buffer = job.committed
        buffer.length += job.prefill_rows
        job.prefill_rows = 0
        if job.lease is not None:
            self.cache.store(job.lease, job.request.context[: min(buffer.length, job.shared)], buffer)

    def _verified(self, job: Job, predictions: Sequence[Prediction]) -> None:
        """Fix what the causal mode agrees with, and its own next token."""
        job.forwards += 1
        if job.known is not None:
            predictions = [job.known, *predictions]
        tokens = [found.token for found in predictions]
        count = agreement(job.draft or [], tokens, end_token_id=self._diffusion.end_token_id, room=job.room)
        job.committed.length = len(job.tokens) + count - 1
        job.count_ties(predictions[:count])
        job.extend(predictions[:count])
        self._go_on(job)

    def _foreseen(self, share: Share, predictions: Sequence[Prediction]) -> bool:
        """Commit the causal rows before a canvas; False when they already tell that the answer ends here."""
        job = share.job
        job.forwards += 1
        job.steps += 1
        job.committed.length += len(job.uncommitted)
        if predictions:
            (job.known,) = predictions
            if job.known.token == self._diffusion.end_token_id:
                job.count_ties(predictions)
                job.extend(predictions)
                self._go_on(job)
                return False
            self._board.fix(job.slot, 0, job.known.token)
        return True

    def _denoise(self, shares: Sequence[Share], choice: Choice) -> None:
        """Reveal one step of every canvas."""
        rows: list[int] = []
        canvas: list[int] = []
        column: list[int] = []
        for index, share in enumerate(shares):
            start, columns = self._probed(share, choice)
            rows += range(start, start + len(columns))
            canvas += [index] * len(columns)
            column += columns
        jobs = [share.job for share in shares]
        for job in jobs:
            job.canvas_steps += 1
        policies: list[RevealPolicy] = [job.policy.reveal or Threshold() for job in jobs]
        last = [job.canvas_steps >= job.request.max_steps for job in jobs]
        slots, revised = [job.slot for job in jobs], [job.request.revise for job in jobs]
        snapshots = self._board.advance(choice, Reading(slots, rows, canvas, column, policies, last, revised))
        for job, snapshot, is_last in zip(jobs, snapshots, last, strict=True):
            with _alone(job):
                self._revealed(job, snapshot, is_last=is_last)

    def _probed(self, share: Share, choice: Choice) -> tuple[int, Sequence[int]]:
        """First row and columns of the canvas to go on with; the first step of several candidates chooses one."""
        job, chosen = share.job, 0
        if len(job.candidates) > 1:
            bounds = [share.canvas_start]
            for columns in share.columns:
                bounds.append(bounds[-1] + len(columns))
            confidences = [
                choice.log_prob[start:stop].exp() for start, stop in zip(bounds[:-1], bounds[1:], strict=True)
            ]
            scores = score_lengths(confidences, job.candidates, self._bias)
            chosen = best_length(job.candidates, scores)
            job.length_scores = tuple(zip(job.candidates, scores, strict=True))
            job.candidates = (job.candidates[chosen],)
            job.length = job.candidates[0]
        job.canvas_length = job.canvas_length or job.length
        before = sum(len(columns) for columns in share.columns[:chosen])
        return share.canvas_start + before, share.columns[chosen]

    def _revealed(self, job: Job, snapshot: Snapshot, *, is_last: bool) -> None:
        """Take over a canvas behind a step: an end token drops the tail, a whole canvas goes into the answer."""
        ends = [
            column
            for column, token in enumerate(snapshot.ids[: job.length])
            if token == self._diffusion.end_token_id and snapshot.revealed[column]
        ]
        if ends:
            job.length = ends[0] + 1
            job.candidates = (job.length,)
        job.canvas_ids, job.canvas_revealed = snapshot.ids[: job.length], snapshot.revealed[: job.length]
        job.masked = [column for column, known in enumerate(job.canvas_revealed) if not known]
        if job.request.record_canvases:
            job.handle.push(job.state())
        if job.masked or (snapshot.revised and not is_last):
            return
        if job.policy.verified:
            job.draft = [token for token in job.canvas_ids if token != self._diffusion.end_token_id][: job.room - 1]
            return
        self._take_canvas(job, job.length)
        self._go_on(job)

    def _take_canvas(self, job: Job, length: int) -> None:
        """Move the first `length` positions of the canvas into the answer, as far as it has room."""
        log_probs, entropies, flips = self._board.confidences(job.slot, length)
        found = [
            Prediction(token, log_prob, entropy, 1.0)
            for token, log_prob, entropy in zip(job.canvas_ids[:length], log_probs, entropies, strict=True)
        ]
        if length > job.room and found[job.room].token != self._diffusion.end_token_id:
            found = found[: job.room]
        job.canvas_ids, job.canvas_revealed = [], []
        job.extend(found, flips)

    def _go_on(self, job: Job) -> None:
        """Finish the answer, or begin its next canvas."""
        if job.end_log_prob is not None:
            self._finish(job, "stop")
        elif not job.room:
            self._finish(job, "length")
        else:
            if job.candidates:
                job.candidates = (job.canvas_length,) if job.canvas_length else ()
            job.begin_canvas(self._board)
            if job.request.record_canvases and job.policy.causal:
                job.handle.push(job.state())

    def _finish(self, job: Job, reason: FinishReason) -> None:
        if job.request.record_canvases and job.policy.causal:
            job.length, job.canvas_ids, job.canvas_revealed = 0, [], []
            job.handle.push(job.state())
        job.handle.settle(job.result(reason, self.clock()))


def run(scheduler: Scheduler, denoiser: Denoiser) -> None:
    """Serve until the scheduler is closed: the one loop over steps."""
    with torch.inference_mode():
        while scheduler.wait():
            for job in scheduler.expired(denoiser.clock()):
                with _alone(job):
                    denoiser.expire(job)
            _leave(scheduler.leaving(), denoiser)
            for job in scheduler.admit():
                with _alone(job):
                    denoiser.begin(job)
            denoiser.step(scheduler.pick())
            _leave(scheduler.leaving(), denoiser)


def _leave(jobs: Iterable[Job], denoiser: Denoiser) -> None:
    for job in jobs:
        denoiser.end(job)


def _share(job: Job, start: int, pieces: Sequence[Piece]) -> Share:
    causal = sum(len(piece.read) for piece in pieces if piece.causal)
    return Share(job, start, causal, tuple(tuple(piece.read) for piece in pieces if not piece.causal))


class _alone:  # noqa: N801  (reads as a statement: with _alone(job))
    """Ends `job`, and it alone, by what is raised within."""

    __slots__ = ("_job",)

    def __init__(self, job: Job) -> None:
        self._job = job

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, EngineError):
            self._job.handle.settle(error)
        elif isinstance(error, Exception):
            failure = RequestFailedError(f"serving the request failed: {error!r}")
            failure.__cause__ = error
            self._job.handle.settle(failure)
        return error is None or isinstance(error, Exception)
