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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, Unpack

import torch

from calomel.engine.attention import FLASH_PAGE, Piece
from calomel.engine.cache import Lease, PrefixCache
from calomel.engine.constraint import decide, settle
from calomel.engine.decoder import Common, Decoder
from calomel.engine.errors import InvalidRequestError
from calomel.engine.handle import Handle
from calomel.engine.job import Canvas, Job, generator
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
from calomel.engine.sampling import Choice, Draw, Prediction
from calomel.engine.transformer import Transformer

# A keystroke adds a few tokens to the cached prefix, and the near suffix follows it: they are encoded in the same
# forward as the first denoising step.
_WITHIN_FIRST_STEP: Final = 64
# Tokens of a page: where flash-attn does not ask for more, few, since the last page of a context is its own.
_PAGE: Final = 64


@dataclass(slots=True)
class BlockCanvas(Canvas):
    """A canvas, or a draft that is verified, after the final tokens.

    Attributes:
        draft: tokens to verify; none while a canvas is denoised.
        verifies: nothing is denoised: the causal mode decides the next tokens and the draft.
        steps: how many were made; `whole_steps` of them found nothing masked.
        masked_first: how many positions were unknown when it began.
        asked: how many tokens the answer had when `Request.until` was last asked about a canvas with masks.
        lookup: where in the request's guess the answer is.
    """

    draft: Sequence[int] = ()
    verifies: bool = False
    steps: int = 0
    whole_steps: int = 0
    masked_first: int = 0
    asked: int = 0
    lookup: PromptLookup = field(default_factory=PromptLookup)


BlockPolicy: TypeAlias = RevealPolicy | Paced | LeftToRight
BlockJob: TypeAlias = Job[BlockPolicy, BlockCanvas, Lease]


class BlockCausal(Decoder[BlockPolicy, BlockCanvas, Lease]):
    """Serves a decoder with an exact prefix cache.

    Args:
        model: the network, on its device.
        cache_tokens: tokens that the prefix cache has room for: contexts and answers of requests that are served, which
            bounds how many are at a time, and of earlier ones.
        page_size: tokens of a cache page, rounded up to whole blocks; None for what suits the device.
        end_token_ids: tokens that end an answer like its end token.
        common: see `Common`.
    """

    cache: PrefixCache

    def __init__(
        self,
        model: Transformer,
        *,
        cache_tokens: int = 65536,
        page_size: int | None = None,
        end_token_ids: Sequence[int] = (),
        **common: Unpack[Common],
    ) -> None:
        weight, block = model.embed_tokens.weight, model.config.diffusion.block
        if page_size is None:
            page_size = FLASH_PAGE if weight.is_cuda else _PAGE
        if page_size < 1:
            raise InvalidRequestError(f"page_size is {page_size}; it must be at least 1")
        if cache_tokens < page_size:
            raise InvalidRequestError(f"cache_tokens is {cache_tokens}; it must be at least a page of {page_size}")
        super().__init__(model, **common)
        self.ends = tuple(dict.fromkeys((*self.ends, *end_token_ids)))
        page_size += -page_size % block
        pages = max(1, cache_tokens // page_size)
        self.cache = PrefixCache(
            model.config,
            pages=pages,
            page_size=page_size,
            dtype=weight.dtype,
            device=self.device,
            together=self._flash is None,
        )
        self._begun: set[BlockJob] = set()

    def job(self, request: Request, handle: Handle) -> BlockJob:
        """See `Decoder`."""
        # What is given is verified, whatever the policy.
        policy = parse_policy(request.policy) if request.given is None else LeftToRight()
        ahead = policy.ahead if isinstance(policy, LeftToRight | Prefix) else 0
        lookup = PromptLookup(request.guess, request.context, most=ahead)
        canvas = BlockCanvas(self.diffusion.mask_token_id, lookup=lookup)
        return Job(request, handle, self.diffusion, policy, canvas, self.ends)

    def fits(self, job: BlockJob) -> bool:
        """Whether there is room for it besides the others; a client with running requests leaves a quarter free."""
        others = any(other.request.client == job.request.client for other in self._begun)
        room = self.cache.tokens * 3 // 4 if others else self.cache.tokens
        return sum(map(self._most, self._begun)) + self._most(job) <= room

    def begin(self, job: BlockJob) -> None:
        """Give `job` a page table with what the cache has of its context."""
        job.began = self.clock()
        request = job.request
        known = request.context[: self._readable(job)]
        self._begun.add(job)
        job.buffer = self.cache.acquire(known, math.inf if request.reuse is None else request.reuse)
        self.cache.reserve(job.buffer, len(request.context) + self.diffusion.max_canvas)
        job.cached_tokens = job.buffer.length
        left, within = len(request.context) - job.cached_tokens, 0
        if job.cached_tokens:
            within = min(_WITHIN_FIRST_STEP, self.prefill_chunk) if request.given is None else self.prefill_chunk
        job.prefill_target = job.cached_tokens if left <= within else len(known)
        job.generator = generator(self.device, request.sampling.seed)

    def end(self, job: BlockJob) -> None:
        """Release what `begin` gave; safe for a job that has not begun."""
        self._begun.discard(job)
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

    def _most(self, job: BlockJob) -> int:
        """Tokens that the pages of `job` have room for before it ends, at most."""
        most = len(job.request.context) + job.longest + self.diffusion.max_canvas
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
        read = [first + column for column in self._columns(job)]
        return [*pieces, Piece([*head, *canvas.ids], table, length + len(behind), causal=False, read=read)]

    def draws(self, job: BlockJob, pieces: Sequence[Piece], first: int) -> list[Draw]:
        """See `Decoder`."""
        canvas, given, draws = job.canvas, job.request.given, []
        known = [token for token in canvas.ids if token != canvas.mask_token_id]
        for piece in (piece for piece in pieces if piece.read):
            stop = first + len(piece.read)
            if given is not None:
                forced = dict(enumerate((*given, self.diffusion.end_token_id)))
                draws.append(Draw(first, stop, SamplingParams(), forced=forced))
            elif piece.causal:
                draws.append(self.draw(job, first, range(len(piece.read)), following=canvas.draft))
            else:
                draws.append(self.draw(job, first, self._predicted(job, piece), known))
            first = stop
        return draws

    def _predicted(self, job: BlockJob, piece: Piece) -> list[int]:
        """The positions that the read rows of a canvas predict."""
        final = len(job.tokens) - int(self.diffusion.logit_shift)
        return [piece.context + row - final for row in piece.read]

    # What a forward yields

    def take(self, job: BlockJob, pieces: Sequence[Piece], choice: Choice, first: int) -> None:
        """See `Decoder`."""
        if job.prefill_rows:
            length, job.prefill_rows = job.encoded.length + job.prefill_rows, 0
            self._commit(job, length)
            return
        canvas = job.canvas
        job.forwards += 1
        if canvas.verifies:
            found = choice.predictions[first : first + len(pieces[0].read)]
            if job.walk is not None:
                found = decide(job, job.walk, found, choice, first, canvas.draft)
            self._verified(job, found)
            return
        job.steps += 1
        self._commit(job, len(job.tokens) - len(self._head(job)))
        self._denoised(job, self._predicted(job, pieces[-1]), choice, first)

    def _verified(self, job: BlockJob, found: Sequence[Prediction]) -> None:
        """A draft was read causally: fix the tokens that the causal mode agrees with, and its own next token."""
        tokens, until = [each.token for each in found], job.request.until
        count = len(found)
        if job.request.given is None:
            count = agreement(job.canvas.draft, tokens, ends=job.ends, room=job.room)
            # It ends where it would have ended token by token.
            asked = range(1, count if until is not None else 0)
            count = next((size for size in asked if until and until([*job.answer, *tokens[:size]])), count)
        length = len(job.tokens) + count - 1
        job.extend(found[:count])
        self._commit(job, length)
        job.canvas.lookup.found(tokens[:count])
        job.canvas.steps += count == 1  # the draft was wrong
        self._go_on(job)

    def _denoised(self, job: BlockJob, columns: Sequence[int], choice: Choice, first: int) -> None:
        """Advance the canvas one step: the rows of `choice` from `first` on predict the positions `columns`."""
        canvas, joint, last = job.canvas, self._joint(job), self._last_step(job)
        whole = not canvas.masked()
        found = choice.predictions[first : first + len(columns)]
        changed = self._write(job, dict(zip(columns, found, strict=True)))
        canvas.steps += 1
        canvas.whole_steps += whole
        if job.walk is not None:
            settle(job, job.walk, choice, row=first, last=last)
        if joint is None:
            self._drop_tail(job)
        job.show(canvas.ids, canvas.revealed)
        if self._slides(job):
            known = job.settled(canvas.prefix())
            canvas.lookup.found(canvas.ids[:known])
            job.extend_by(canvas, known)
            canvas.steps = 0 if last else canvas.steps
            self._go_on(job)
            return
        # If revealed tokens may change, one more step on the whole canvas confirms them.
        again = joint is not None and (changed or not whole) and canvas.whole_steps < joint.after and not last
        if canvas.masked() or again:
            if self._is_over(job):
                job.extend_by(canvas, canvas.prefix())
                self.finish(job, "stop")
        else:
            job.extend_by(canvas, len(canvas))
            self._go_on(job)

    def _shown(self, job: BlockJob, told: Mapping[int, Prediction]) -> list[bool]:
        """Which positions of the canvas are revealed by a step that has `told` of some of them."""
        canvas, reveal = job.canvas, job.policy
        asked = [column in told and not known for column, known in enumerate(canvas.revealed)]
        if self._last_step(job) or isinstance(reveal, LeftToRight):
            return asked
        if isinstance(reveal, Paced):
            reveal = reveal.at(canvas.steps, canvas.masked_first, self.diffusion.block)
        everywhere = [told.get(column, Prediction(-1, -math.inf, 0.0)) for column in range(len(canvas))]
        confidence = torch.tensor([[found.log_prob for found in everywhere]]).exp()
        shown: list[bool] = reveal(confidence, torch.tensor([asked]))[0].tolist()
        return shown

    def _write(self, job: BlockJob, told: Mapping[int, Prediction]) -> bool:
        """Put what is revealed on the canvas; returns whether a revealed position was changed."""
        canvas, joint, shown = job.canvas, self._joint(job), self._shown(job, told)
        changed = False
        for column, here in told.items():
            there = canvas.ids[column]
            fixed = joint is None or there in (canvas.mask_token_id, here.token)
            changes = joint is not None and not fixed and math.exp(here.log_prob) > joint.edit
            if shown[column] or changes:
                canvas.take(column, here)
            changed = changed or changes
        return changed

    def _drop_tail(self, job: BlockJob) -> None:
        """Drop everything after an end token."""
        canvas = job.canvas
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
