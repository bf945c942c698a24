"""The decoder of models that read the whole sequence in both directions: prefix, canvas and suffix alike.

Nothing of a context can be cached for the next request: every token sees every other one. So a window (context, answer
so far, canvas and suffix) is a few thousand tokens, and each step is a forward of all of it, or of one block of the
canvas over the keys and values of the block's first forward (`BidirectionalOptions.dual_cache`, approximate). With a
suffix there is one canvas, and it is the whole answer: its text joins up with the suffix. Without one, further canvases
follow until the end token.

Some canvases grow and shrink while they are denoised: one token becomes two masks, another deletes its position. As in
DreamOn (arXiv 2602.01326), a canvas starts short, and a revealed token may ask for more room or less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, Unpack

import torch
from torch import Tensor

from calomel.engine.algorithms import Algorithm, Moment, parse_algorithm
from calomel.engine.attention import Piece
from calomel.engine.cache import Lease
from calomel.engine.constraint import settle
from calomel.engine.decoder import Common, Decoder
from calomel.engine.errors import InvalidRequestError
from calomel.engine.handle import Handle
from calomel.engine.job import Canvas, Job
from calomel.engine.request import Request
from calomel.engine.sampling import LOWEST, Draw, Told, precise
from calomel.engine.transformer import Transformer

# Revealed tokens after which the whole window is forwarded again: the block size of Fast-dLLM's figures.
REFRESH: Final = 32


@dataclass(frozen=True, slots=True)
class BidirectionalOptions:
    """How the canvases of a family are denoised.

    Attributes:
        block: a canvas is denoised in blocks of this many positions, from left to right, all of it masked at first
            (LLaDA's semi-autoregressive mode); None for all of it at once.
        dual_cache: the first forward of a block keeps the keys and values of the whole window, and later steps forward
            the block alone (Fast-dLLM, arXiv 2505.22618), plus the token before it where logits are shifted: its row
            predicts the block's first position. Approximate: what is around the block is as of its start, or of
            `REFRESH` revealed tokens ago, or of the last change of the canvas' length.
        transfer: tokens revealed per step if a canvas changes its length, so that the number of steps is unknown.
        expand_token_id: this token becomes two masks (DreamOn); None where canvases keep their length.
        delete_token_id: the position of this token is deleted (DreamOn).
        expand_budget: how often a canvas may grow; None for the published value: twice `max_new_tokens` plus the
            suffix.
        end_token_ids: tokens that end an answer besides the configuration's end token.
    """

    block: int | None = None
    dual_cache: bool = False
    transfer: int = 1
    expand_token_id: int | None = None
    delete_token_id: int | None = None
    expand_budget: int | None = None
    end_token_ids: tuple[int, ...] = ()

    @property
    def elastic(self) -> bool:
        """Whether canvases grow and shrink."""
        return self.expand_token_id is not None or self.delete_token_id is not None


@dataclass(slots=True)
class WindowCanvas(Canvas):
    """A canvas within its window.

    Attributes:
        start: the current block is the positions from `start` to `stop`.
        step: number of the step in the block; `began` is how many of its positions were masked at its first step.
        kept: whether the keys and values of the last forward of the window are kept; else the next one forwards it.
        hidden: how many positions of the block were masked then.
        budget: how often it may still grow.
    """

    start: int = 0
    stop: int = 0
    step: int = 0
    began: int = 0
    kept: bool = False
    hidden: int = 0
    budget: int = 0

    def block(self) -> list[int]:
        """The positions of the current block that are not known."""
        return self.masked(self.start, self.stop)


BidirectionalJob: TypeAlias = Job[Algorithm, WindowCanvas, Lease]


class Bidirectional(Decoder[Algorithm, WindowCanvas, Lease]):
    """Serves a model that reads in both directions; its configuration has `reads_suffix`.

    Args:
        model: the network, on its device.
        options: how the family denoises.
        common: see `Common`.
    """

    def __init__(
        self, model: Transformer, options: BidirectionalOptions | None = None, **common: Unpack[Common]
    ) -> None:
        self._options = options or BidirectionalOptions()
        super().__init__(model, self._options.end_token_ids, **common)

    def job(self, request: Request, handle: Handle) -> BidirectionalJob:
        """See `Decoder`."""
        options, algorithm = self._options, parse_algorithm(request.policy)
        if request.constraint is not None and (options.elastic or algorithm.rereads):
            what = "a canvas that grows and shrinks" if options.elastic else f"the policy {request.policy!r}"
            raise InvalidRequestError(f"{what} can undo what a constraint has fixed: remove constraint")
        if options.elastic and algorithm.rereads:
            raise InvalidRequestError(f"{request.policy!r} is set, but this checkpoint's canvases grow and shrink")
        # If a token can delete a position, it does not end the answer.
        ends = () if options.elastic else self.ends
        job: BidirectionalJob = Job(
            request, handle, self.diffusion, algorithm, WindowCanvas(self.diffusion.mask_token_id), ends
        )
        self.check_room(job)
        return job

    def most(self, job: BidirectionalJob) -> int:
        """See `Decoder`."""
        window = len(job.request.context) + len(job.request.suffix) + job.longest
        return window + -window % self.cache.pool.size

    def begin(self, job: BidirectionalJob) -> None:
        """Set up the first canvas."""
        # The order of positions may be random even if the tokens are not.
        super().begin(job)
        job.buffer = self.cache.acquire(())
        self._begin_canvas(job)

    def end(self, job: BidirectionalJob) -> None:
        """Release what the job holds of its window."""
        super().end(job)
        if job.buffer is not None:
            self.cache.release(job.buffer)
            job.buffer = None

    def take_known(self, job: BidirectionalJob) -> None:
        """Take everything that is final."""
        job.extend_by(job.canvas, job.settled(job.canvas.prefix()))

    # Where a job is

    def _begin_canvas(self, job: BidirectionalJob) -> None:
        """Set up the next canvas."""
        budget, request = self._options.expand_budget, job.request
        canvas = WindowCanvas(self.diffusion.mask_token_id)
        canvas.budget = 2 * (request.max_new_tokens + len(request.suffix)) if budget is None else budget
        self.lay(job, canvas, min(request.canvas_length, job.room))
        self._begin_block(canvas, 0)

    def _begin_block(self, canvas: WindowCanvas, start: int) -> None:
        """Move on to the positions from `start` on."""
        canvas.start, canvas.step, canvas.kept = start, 0, False
        canvas.stop = min(start + (self._options.block or len(canvas)), len(canvas))
        canvas.began = len(canvas.block())

    def _caches(self, job: BidirectionalJob) -> bool:
        """Whether the later steps of a block forward the block alone."""
        has_row = bool(job.tokens or job.canvas.start) or not self.diffusion.logit_shift
        return self._options.dual_cache and has_row

    def _moment(self, job: BidirectionalJob) -> Moment:
        """Where the block is in its schedule."""
        canvas, options = job.canvas, self._options
        blocks = max(1, -(-len(canvas) // options.block)) if options.block else 1
        steps = max(1, job.request.max_steps // blocks)
        return Moment(
            step=canvas.step,
            steps=steps,
            began=canvas.began,
            masked=len(canvas.block()),
            sampling=job.request.sampling,
            generator=job.generator,
            transfer=options.transfer if options.elastic and canvas.step < steps - 1 else None,
        )

    def _skip(self, job: BidirectionalJob) -> None:
        """Skip steps that would reveal nothing: the same forward again would give the same result."""
        canvas = job.canvas
        if job.walk is not None:
            return
        while not (moment := self._moment(job)).last and job.policy.quota(moment) == 0:
            canvas.step += 1

    def _columns(self, job: BidirectionalJob) -> list[int]:
        """The positions of the canvas whose logits the next step reads."""
        canvas = job.canvas
        if job.walk is not None:
            return list(range(max(job.front, canvas.start), canvas.stop))
        if job.policy.rereads:
            return list(range(canvas.start, canvas.stop))
        return canvas.block()

    def pieces(self, job: BidirectionalJob) -> list[Piece]:
        """See `Decoder`: the window, or the block alone."""
        self._skip(job)
        canvas, shift, suffix = job.canvas, int(self.diffusion.logit_shift), job.request.suffix
        columns, first = self._columns(job), len(job.tokens)
        if canvas.kept:
            read = [column - canvas.start for column in columns]
            behind = len(canvas) - canvas.stop + len(suffix)
            begin = canvas.start - shift
            before = job.tokens[-1:] if begin < 0 else canvas.ids[begin : canvas.start]
            ids = [*before, *canvas.ids[canvas.start : canvas.stop]]
            return [Piece(ids, job.encoded, first + begin, causal=False, read=read, behind=behind)]
        ids = [*job.tokens, *canvas.ids, *suffix]
        self.cache.reserve(job.encoded, len(ids))
        read = [first + column - shift for column in columns]
        return [Piece(ids, job.encoded, 0, causal=False, read=read)]

    def draw(self, job: BidirectionalJob, pieces: Sequence[Piece]) -> Draw:  # noqa: ARG002
        """See `Decoder`: penalties and banned ends. The algorithm draws the tokens."""
        known = [token for token in job.canvas.ids if token != job.canvas.mask_token_id]
        draw = self.drawn(job, self._columns(job), known)
        without_end = () if self._options.elastic else draw.without_end
        return replace(draw, generator=None, without_end=without_end, logits=True, host=False)

    # What a forward means

    def take(self, job: BidirectionalJob, told: Told) -> None:
        """See `Decoder`."""
        canvas = job.canvas
        job.forwards += 1
        job.steps += 1
        if self._caches(job) and not canvas.kept:
            canvas.kept, canvas.hidden = True, len(canvas.block())
        self._reveal(job, told)
        job.show(canvas.ids, canvas.revealed)
        self._go_on(job)

    def _reveal(self, job: BidirectionalJob, told: Told) -> None:
        """Advance the canvas of `job` by what the model told of it.

        If a step leaves the canvas as it was, the next step uses the same logits: another forward would give the same.
        Path planning has many such steps.
        """
        canvas, columns, before = job.canvas, self._columns(job), list(job.canvas.ids)
        while True:
            last = self._moment(job).last
            proposed = self._step(job, told, columns)
            if job.walk is not None:
                settle(job, job.walk, proposed, last=last)
            if last or job.walk is not None or canvas.ids != before:
                return

    def _step(self, job: BidirectionalJob, told: Told, columns: Sequence[int]) -> Told:
        """One step of the canvas of `job` by what was told of its `columns`; returns what the step proposed."""
        canvas, moment, logits = job.canvas, self._moment(job), told.logits
        if logits is None:
            raise RuntimeError("the algorithms read logits")
        if self._options.elastic:
            self._ban(job, logits, last=moment.last)
        was_masked = [canvas.ids[column] == canvas.mask_token_id for column in columns]
        asked = [row for row, masks in enumerate(was_masked) if masks or job.policy.rereads]
        rows = torch.tensor(asked, device=logits.device)
        masked = torch.tensor([was_masked[row] for row in asked], device=logits.device)
        token, shown = job.policy(logits[rows], masked, moment)
        best = torch.tensor([told.tokens[row] for row in asked], device=logits.device)
        worse = (logits[rows, token] - logits[rows, best]).clamp(max=0.0)
        found = torch.stack([precise(values) for values in (token, worse, shown)], dim=-1).tolist()
        drawn = dict(zip(asked, found, strict=True))
        proposed = Told(list(told.tokens), list(told.log_probs), told.confidences, told.entropies, logits)
        for row, (column, masks) in enumerate(zip(columns, was_masked, strict=True)):
            here, less, is_shown = drawn.get(row, (told.tokens[row], 0.0, 0.0))
            proposed.tokens[row], proposed.log_probs[row] = int(here), told.log_probs[row] + less
            if masks and is_shown:
                canvas.take(column, proposed.row(row))
            elif job.policy.rereads and not is_shown:
                # What is masked again is drawn anew; what stays keeps its token, even if the step preferred another.
                canvas.ids[column] = canvas.mask_token_id
        canvas.step += 1
        length = len(canvas)
        if self._options.elastic:
            self._resize(job, [column for column, was in zip(columns, was_masked, strict=True) if was])
        if canvas.hidden - len(canvas.block()) >= REFRESH or len(canvas) != length:
            canvas.kept = False
        return proposed

    def _ban(self, job: BidirectionalJob, logits: Tensor, *, last: bool) -> None:
        """Exclude from logits [N, V] what the canvas can no longer do; in the `last` step it does not grow."""
        options, canvas, request = self._options, job.canvas, job.request
        full = len(canvas) >= request.max_new_tokens or canvas.budget < 1
        if options.expand_token_id is not None and (last or full):
            logits[:, options.expand_token_id] = LOWEST
        going = len(canvas.masked()) if last else options.transfer
        if options.delete_token_id is not None and len(canvas) - going < request.min_new_tokens:
            logits[:, options.delete_token_id] = LOWEST

    def _resize(self, job: BidirectionalJob, columns: Sequence[int]) -> None:
        """Of the `columns` that were masked, delete those that ask for it, and double those that ask for that.

        From right to left, so that no position moves before its turn.
        """
        options, canvas = self._options, job.canvas
        for column, token in [(column, canvas.ids[column]) for column in reversed(columns)]:
            if token == options.delete_token_id:
                canvas.drop(column, column + 1)
            elif token == options.expand_token_id:
                canvas.ids[column] = canvas.mask_token_id
                if len(canvas) < job.request.max_new_tokens and canvas.budget > 0:
                    canvas.insert(column, 1)
                    canvas.budget -= 1
        canvas.stop = len(canvas)

    def _go_on(self, job: BidirectionalJob) -> None:
        """After a step: finish the answer, or begin its next block or canvas."""
        canvas, until = job.canvas, job.request.until
        ended = job.ended(canvas.ids, job.settled(canvas.prefix()))
        if ended is not None and not job.policy.rereads:
            job.extend_by(canvas, ended + 1)
            self.finish(job, "stop")
        elif canvas.block():
            return
        elif canvas.stop < len(canvas):
            if until is not None and until([*job.answer, *canvas.ids[: canvas.stop]]):
                job.extend_by(canvas, canvas.stop)
                self.finish(job, "stop")
            else:
                self._begin_block(canvas, canvas.stop)
        else:
            job.extend_by(canvas, len(canvas))
            reason = "stop" if job.request.suffix else job.over()
            if reason is None and self._options.elastic:
                reason = "stop"
            if reason is None:
                self._begin_canvas(job)
            else:
                self.finish(job, reason)
