"""The decoder of checkpoints that read their context causally, or block by block, and denoise a canvas after it.

What the prefix cache has of a context is read where it is; the rest is encoded in chunks, and its pages are cached. A
job's page table has the keys and values of its first `length` tokens; the others are `uncommitted` and enter it as
causal rows of a later forward:

1. Prefill: the context, in chunks. If the causal mode predicts, or logits are shifted, all but its last token; for a
   checkpoint with blocks, whole blocks.
2. Denoise: the uncommitted tokens, then the canvas.
3. Verify, if the causal mode decides: the uncommitted tokens and a draft, read causally. Up to the first disagreement
   these are the tokens that the mode would have chosen one by one, and its prediction there is its next one. The draft
   is what a prompt lookup finds, often nothing; a given answer is a draft that is accepted whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from calomel.engine.attention import Piece
from calomel.engine.cache import Lease
from calomel.engine.constraint import decide, settle
from calomel.engine.decoder import Decoder
from calomel.engine.handle import Handle
from calomel.engine.job import Canvas, Job
from calomel.engine.policies import (
    Joint,
    LeftToRight,
    Paced,
    Prefix,
    PromptLookup,
    RevealPolicy,
    agreement,
    parse_policy,
)
from calomel.engine.request import FinishReason, Request, SamplingParams
from calomel.engine.sampling import Draw, Prediction, Told

# A keystroke adds a few tokens to the cached prefix, and the near suffix follows it: they are encoded in the same
# forward as the first denoising step.
_WITHIN_FIRST_STEP: Final = 64


@dataclass(slots=True)
class BlockCanvas(Canvas):
    """A canvas, or a draft that is verified, after the final tokens.

    Attributes:
        draft: tokens to verify; none while a canvas is denoised.
        verifies: nothing is denoised: the causal mode decides the next tokens and the draft.
        steps: how many were made; `whole_steps` of them found nothing masked.
        masked_first: how many positions were unknown when it began.
        asked: how many tokens the answer had when `Request.until` was last asked about a canvas with masks.
        columns: the positions whose logits the step reads.
        lookup: where in the request's guess the answer is.
    """

    draft: Sequence[int] = ()
    verifies: bool = False
    steps: int = 0
    whole_steps: int = 0
    masked_first: int = 0
    asked: int = 0
    columns: Sequence[int] = ()
    lookup: PromptLookup = field(default_factory=PromptLookup)


BlockPolicy: TypeAlias = RevealPolicy | Paced | LeftToRight
BlockJob: TypeAlias = Job[BlockPolicy, BlockCanvas, Lease]


class BlockCausal(Decoder[BlockPolicy, BlockCanvas, Lease]):
    """Serves a decoder with an exact prefix cache; see `Decoder` for its arguments."""

    keeps_contexts = True

    @property
    def scratch(self) -> int:
        """See `Decoder`."""
        return self.diffusion.max_canvas

    def job(self, request: Request, handle: Handle) -> BlockJob:
        """See `Decoder`."""
        # What is given is verified, whatever the policy.
        policy = parse_policy(request.policy) if request.given is None else LeftToRight()
        ahead = policy.ahead if isinstance(policy, LeftToRight | Prefix) else 0
        lookup = PromptLookup(request.guess, request.context, most=ahead)
        canvas = BlockCanvas(self.diffusion.mask_token_id, lookup=lookup)
        job: BlockJob = Job(request, handle, self.diffusion, policy, canvas, self.ends)
        self.check_room(job)
        return job

    def begin(self, job: BlockJob) -> None:
        """Give `job` a page table with what the cache has of its context."""
        super().begin(job)
        request = job.request
        known = request.context[: self._readable(job)]
        job.buffer = self.cache.acquire(known, math.inf if request.reuse is None else request.reuse)
        self.cache.reserve(job.buffer, len(request.context) + self.diffusion.max_canvas)
        job.cached_tokens = job.buffer.length
        left, within = len(request.context) - job.cached_tokens, 0
        if job.cached_tokens:
            within = min(_WITHIN_FIRST_STEP, self.prefill_chunk) if request.given is None else self.prefill_chunk
        job.prefill_target = job.cached_tokens if left <= within else len(known)

    def end(self, job: BlockJob) -> None:
        """Release what `begin` gave; safe for a job that has not begun."""
        super().end(job)
        if job.buffer is not None:
            self.cache.release(job.buffer)
            job.buffer = None

    def take_known(self, job: BlockJob) -> None:
        """Take what the canvas knows without a gap; nothing of a draft is certain."""
        job.extend_by(job.canvas, job.settled(job.canvas.prefix()))

    def finish(self, job: BlockJob, reason: FinishReason) -> None:
        """Settle the handle with the answer; what was only drafted is no longer shown."""
        if isinstance(job.policy, LeftToRight):
            job.show()
        super().finish(job, reason)

    # Room

    def most(self, job: BlockJob) -> int:
        """See `Decoder`."""
        most = len(job.request.context) + job.longest + self.scratch
        return most + -most % self.cache.pool.size

    def _commit(self, job: BlockJob, length: int) -> None:
        """The table holds the first `length` tokens."""
        done, job.encoded.length = job.encoded.length, length
        given, readable = job.request.given, self._readable(job)
        # Nobody asks for an answer again, but for a given one.
        if given is not None:
            self.cache.store(job.encoded, job.request.context + given)
        elif done < readable:
            self.cache.store(job.encoded, job.request.context[:readable])

    # Where a job is

    def _whole(self, count: int) -> int:
        """How many of `count` leading tokens are in whole blocks."""
        return count - count % self.diffusion.block

    def _readable(self, job: BlockJob) -> int:
        """How many leading tokens may come from the prefix cache, stored by another request."""
        verifies = isinstance(job.policy, LeftToRight) or self._slides(job)
        needed = 1 if verifies or self.diffusion.logit_shift else 0
        return self._whole(len(job.request.context) - needed)

    def _head(self, job: BlockJob) -> list[int]:
        """The final tokens that are rows of the canvas: those that fill no block; with shifted logits, the last one."""
        if job.canvas.verifies:
            return []
        if self.diffusion.block > 1:
            return job.tokens[self._whole(len(job.tokens)) :]
        return job.tokens[-1:] if self.diffusion.logit_shift else []

    def _joint(self, job: BlockJob) -> Joint | None:
        """The policy, if it may change what is revealed."""
        return job.policy if isinstance(job.policy, Joint) and job.walk is None else None

    def _slides(self, job: BlockJob) -> bool:
        """Whether revealed tokens join the answer at once, and text from elsewhere is verified first."""
        asked = isinstance(job.policy, Prefix) and job.policy.ahead > 0
        return asked and self.diffusion.verifiable and self.diffusion.block == 1

    def _last_step(self, job: BlockJob) -> bool:
        """Whether the next step of the canvas is its last one, which reveals everything."""
        return job.canvas.steps + 1 >= job.request.max_steps

    def _columns(self, job: BlockJob) -> Sequence[int]:
        """The positions of the canvas whose logits are read."""
        canvas = job.canvas
        if job.walk is not None:
            return range(job.front, len(canvas))
        return range(len(canvas)) if self._joint(job) else canvas.masked()

    # What a job forwards

    def _begin_canvas(self, job: BlockJob) -> None:
        """Set up the next canvas, or the next verification."""
        last, given, room = job.canvas, job.request.given, job.room - 1
        canvas = BlockCanvas(self.diffusion.mask_token_id, lookup=last.lookup)
        causal = isinstance(job.policy, LeftToRight)
        if causal or self._slides(job):
            canvas.draft = canvas.lookup.ahead(room) if given is None else given
            canvas.steps = last.steps
            canvas.verifies = causal or bool(canvas.draft and canvas.steps + 1 < job.request.max_steps)
        if canvas.verifies:
            job.canvas = canvas
            return
        self.lay(job, canvas, self._fitting(job))
        canvas.masked_first = len(canvas.masked())

    def _fitting(self, job: BlockJob) -> int:
        """The canvas length nearest to the requested one that the answer has room for; with blocks, a block ends it."""
        length, block = min(job.request.canvas_length, job.room + 1), self.diffusion.block  # one more for the end token
        if block == 1:
            return length
        head = len(self._head(job))
        rows = min(head + length, self.diffusion.max_canvas)
        return rows + -rows % block - head

    def pieces(self, job: BlockJob) -> list[Piece]:
        """See `Decoder`: a chunk of the context, or the uncommitted tokens and a draft or canvases."""
        if not job.prefill_left and job.prefilled is None:
            job.prefilled = self.clock()
            self._begin_canvas(job)
        pieces = self._pieces(job)
        for piece in pieces:
            self.cache.reserve(job.encoded, piece.stop)
        return pieces

    def _pieces(self, job: BlockJob) -> list[Piece]:
        table, canvas, head = job.encoded, job.canvas, self._head(job)
        length = table.length
        if job.prefill_rows:
            return [Piece(job.tokens[length : length + job.prefill_rows], table, length, causal=True)]
        behind = job.tokens[length : len(job.tokens) - len(head)]
        if canvas.verifies:
            rows = [*behind, *canvas.draft]
            return [Piece(rows, table, length, causal=True, read=range(len(behind) - 1, len(rows)))]
        pieces = [Piece(behind, table, length, causal=True)] if behind else []
        first = len(head) - int(self.diffusion.logit_shift)
        canvas.columns = self._columns(job)
        read = [first + column for column in canvas.columns] if first else canvas.columns
        return [*pieces, Piece([*head, *canvas.ids], table, length + len(behind), causal=False, read=read)]

    def draw(self, job: BlockJob, pieces: Sequence[Piece]) -> Draw:
        """See `Decoder`."""
        canvas, given, last = job.canvas, job.request.given, pieces[-1]
        if given is not None:
            return Draw(SamplingParams(), forced=(*given, self.diffusion.end_token_id) if last.read else ())
        if last.causal:
            return self.drawn(job, range(len(last.read)), following=canvas.draft)
        known: Sequence[int] = ()
        if job.request.sampling.penalised:
            known = [token for token in canvas.ids if token != canvas.mask_token_id]
        return self.drawn(job, canvas.columns, known)

    # What a forward yields

    def take(self, job: BlockJob, told: Told) -> None:
        """See `Decoder`."""
        if job.prefill_rows:
            length, job.prefill_rows = job.encoded.length + job.prefill_rows, 0
            self._commit(job, length)
            return
        canvas = job.canvas
        job.forwards += 1
        if canvas.verifies:
            if job.walk is None:
                self._verified(job, [told.row(row) for row in range(len(told))])
            else:
                self._verified(job, decide(job, job.walk, told, canvas.draft))
            return
        job.steps += 1
        self._commit(job, len(job.tokens) - len(self._head(job)))
        self._denoised(job, told)

    def _verified(self, job: BlockJob, found: Sequence[Prediction]) -> None:
        """A draft was read causally: fix the tokens that the causal mode agrees with, and its own next token."""
        tokens, until = [each.token for each in found], job.request.until
        count = len(found)
        if job.request.given is None:
            count = agreement(job.canvas.draft, tokens, ends=job.ends, room=job.room)
            # It ends where it would have ended token by token.
            if until is not None and count > 1 and until([*job.answer, *tokens[:count]]):
                count = next(size for size in range(1, count + 1) if until([*job.answer, *tokens[:size]]))
        length = len(job.tokens) + count - 1
        job.extend(found[:count])
        self._commit(job, length)
        job.canvas.lookup.found(tokens[:count])
        job.canvas.steps += count == 1  # the draft was wrong
        self._go_on(job)

    def _denoised(self, job: BlockJob, told: Told) -> None:
        """Advance the canvas one step by what was told of its columns."""
        canvas, joint, last = job.canvas, self._joint(job), self._last_step(job)
        masked = canvas.columns if joint is None and job.walk is None else canvas.masked()
        changed = self._write(job, told, masked)
        canvas.steps += 1
        canvas.whole_steps += not masked
        if job.walk is not None:
            settle(job, job.walk, told, last=last)
        if joint is None:
            self._drop_tail(job)
        if job.request.record_canvases:
            job.show(canvas.ids, canvas.revealed)
        if self._slides(job):
            known = job.settled(canvas.prefix())
            canvas.lookup.found(canvas.ids[:known])
            job.extend_by(canvas, known)
            canvas.steps = 0 if last else canvas.steps
            self._go_on(job)
            return
        # If revealed tokens may change, one more step on the whole canvas confirms them.
        again = joint is not None and (changed or bool(masked)) and canvas.whole_steps < joint.after and not last
        if again or canvas.mask_token_id in canvas.ids:
            if self._is_over(job):
                job.extend_by(canvas, canvas.prefix())
                self.finish(job, "stop")
        else:
            job.extend_by(canvas, len(canvas))
            self._go_on(job)

    def _shown(self, job: BlockJob, confidences: Sequence[float]) -> Sequence[int]:
        """Which of the masked positions, with these probabilities, are revealed."""
        canvas, reveal = job.canvas, job.policy
        if self._last_step(job) or isinstance(reveal, LeftToRight):
            return range(len(confidences))
        if isinstance(reveal, Paced):
            reveal = reveal.at(canvas.steps, canvas.masked_first, self.diffusion.block)
        return reveal(confidences)

    def _write(self, job: BlockJob, told: Told, masked: Sequence[int]) -> bool:
        """Put what is revealed on the canvas; returns whether a revealed position was changed."""
        canvas, joint, columns = job.canvas, self._joint(job), job.canvas.columns
        unknown = set(masked)
        rows = [row for row, column in enumerate(columns) if column in unknown]
        changed = False
        if joint is not None:
            for row, column in enumerate(columns):
                there = canvas.ids[column]
                fixed = there in (canvas.mask_token_id, told.tokens[row])
                if not fixed and told.confidences[row] > joint.edit:
                    canvas.take(column, told.row(row))
                    changed = True
        for each in self._shown(job, [told.confidences[row] for row in rows]):
            canvas.take(columns[rows[each]], told.row(rows[each]))
        return changed

    def _drop_tail(self, job: BlockJob) -> None:
        """Drop everything after an end token."""
        canvas = job.canvas
        if not any(end in canvas.ids for end in job.ends):
            return
        # A constraint may still refuse an end that is only proposed.
        ended = job.ended(canvas.ids, job.settled(len(canvas)))
        # A checkpoint with blocks was trained on whole blocks alone: the tail is dropped once nothing before it is
        # masked.
        whole = self.diffusion.block > 1
        if ended is not None and (not whole or ended < canvas.prefix()):
            canvas.drop(ended + 1)

    def _is_over(self, job: BlockJob) -> bool:
        """Whether what is revealed without a gap ends the answer, so that the masks after it do not matter."""
        canvas, until = job.canvas, job.request.until
        known = min(canvas.prefix(), job.room)
        settled = [*job.answer, *canvas.ids[:known]]
        if until is None or self._joint(job) or job.walk is not None or not known or len(settled) <= canvas.asked:
            return False
        canvas.asked = len(settled)
        return until(settled)

    def _go_on(self, job: BlockJob) -> None:
        """Finish the answer, or begin its next canvas."""
        reason = job.over()
        if reason is not None:
            self.finish(job, reason)
            return
        self._begin_canvas(job)
        if job.canvas.verifies:
            job.show()
