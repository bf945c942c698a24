"""The decoder of checkpoints that read their context causally, or block by block, and denoise a canvas behind it.

What the prefix cache has of a request's context is copied into its buffer, the rest is encoded in chunks and its pages
are kept. A job's buffer holds keys and values of its first `length` tokens; the others are `uncommitted` and enter the
buffer as causal rows of a coming forward:

1. Prefill: the context, in chunks. Where the causal mode predicts, or logits are shifted, all but its last token; of a
   checkpoint with blocks, whole blocks.
2. Open: with blocks and shifted logits, the row before a block's first position is the last of the block before. A
   forward of its own encodes that block and decides the position, as the block is denoised with it.
3. Denoise: the uncommitted tokens, then the canvas (all candidate canvases in the first step of a probed one).
4. Verify: the uncommitted tokens and the draft, read causally. Up to the first disagreement these are the very tokens
   that left-to-right decoding would have taken, and the prediction there is its next one. Left-to-right decoding is the
   verification of empty drafts, or of what a prompt lookup guesses; a given answer is a draft that is taken whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, Unpack

import torch
from torch import Tensor

from calomel.engine.attention import Piece, text_of
from calomel.engine.cache import KeyValueBuffer, PrefixCache, Spares
from calomel.engine.constraint import Rows, decide, settle
from calomel.engine.decoder import Canvas, Common, Job, Prediction, TransformerDecoder, alone, generator
from calomel.engine.errors import InvalidRequestError
from calomel.engine.handle import Handle
from calomel.engine.policies import Joint, Paced, Policy, RevealPolicy, Threshold, parse_policy
from calomel.engine.request import FinishReason, Request, SamplingParams, Walk
from calomel.engine.sampling import Draw, best_length, choose
from calomel.engine.transformer import Transformer

# A keystroke adds a few tokens to the cached prefix, and the near suffix follows it: these are encoded in the forward
# that denoises first.
_WITHIN_FIRST_STEP: Final = 64
# Tokens of an answer that have room at once: a buffer that grows is there twice, with all of its context.
_ROOM: Final = 1024
# How far ahead the answer is looked for in a guess once it has left it: a replaced name or a dropped argument.
_REACH: Final = 24


class PromptLookup:
    """Where in a guess of the answer the answer is: which tokens come next when it has left it and comes back.

    The causal mode decides every token; a wrong guess costs rows of a forward, and nothing else.

    Args:
        guess: what the answer is probably made of, in order.
    """

    def __init__(self, guess: Sequence[int]) -> None:
        self._guess = tuple(guess)
        self._sure = 0  # the answer agrees with the guess before it
        self._next = 0  # what is shown next begins here
        self._astray = 0  # tokens in a row that the guess did not foretell
        self._last = -1

    def ahead(self, room: int) -> list[int]:
        """The tokens that are worth verifying now, at most `room`; none while the answer goes ways of its own."""
        return list(self._guess[self._next : self._next + max(0, room)]) if self._next >= 0 else []

    def found(self, tokens: Sequence[int]) -> None:
        """Take in the tokens that were decided: a beginning of what was shown, and one more."""
        if not tokens:
            return
        agreed, own = len(tokens) - 1, tokens[-1]
        if agreed:
            self._sure = self._next + agreed
            self._astray, self._last = 0, tokens[-2]
        self._astray += 1
        self._next = self._behind(own)
        self._last = own

    def _behind(self, own: int) -> int:
        """Where the guess goes on behind a token that it did not foretell; -1 where that is unknown.

        Nothing is sure before the next tokens agree, so that a token which stands there by chance loses nothing.
        """
        stop = min(len(self._guess), self._sure + _REACH)
        places = [at for at in range(self._sure, stop) if self._guess[at] == own]
        pairs = [at for at in places if at and self._guess[at - 1] == self._last]
        if places:
            return (pairs or places)[0] + 1
        # Behind the first one, another token in place of one is likeliest.
        return self._sure + 1 if self._astray == 1 else -1


@dataclass(slots=True)
class BlockCanvas(Canvas):
    """A canvas, or a draft that is verified, behind the final tokens.

    Attributes:
        candidates: its lengths, until the length probe has chosen; one, or none where there is a draft alone.
        draft: tokens to verify; None while a canvas is denoised.
        known: the causal prediction of the first position, when the forward that began the canvas has made it.
        opening: the next forward decides the first position, and nothing else.
        steps: so many have been made; `whole_steps` of them found nothing masked.
        masked_first: so many positions were not known when it began.
        asked: so many tokens the answer had when `Request.until` was asked about a canvas with masks last.
        lookup: where in the request's guess the answer is.
    """

    candidates: tuple[int, ...] = ()
    draft: list[int] | None = None
    known: Prediction | None = None
    opening: bool = False
    steps: int = 0
    whole_steps: int = 0
    masked_first: int = 0
    asked: int = 0
    lookup: PromptLookup | None = None


BlockJob: TypeAlias = Job[Policy, BlockCanvas, KeyValueBuffer]


@dataclass(frozen=True, slots=True)
class _Share:
    """A job's rows in the logits of a forward: `causal` rows from `start`, then those of every candidate canvas.

    `canvases` are pairs of the first row and the positions that it and the next ones predict.
    """

    job: BlockJob
    start: int
    causal: int
    canvases: tuple[tuple[int, Sequence[int]], ...]
    stop: int


class BlockCausal(TransformerDecoder[Policy, BlockCanvas]):
    """Serves a decoder behind an exact prefix cache.

    Args:
        model: the network, on its device.
        cache_tokens: context tokens that the prefix cache has room for.
        spare_tokens: room for contexts and answers that are laid out: those being served, of which there are no more at
            a time, and those of the last requests, so that the next keystroke of as many contexts copies nothing. None
            for a quarter of the cache beside whatever is being served.
        page_size: tokens of a cache page; a whole number of blocks at least, where the checkpoint has blocks.
        common: see `Common`.
    """

    def __init__(
        self,
        model: Transformer,
        *,
        cache_tokens: int = 65536,
        spare_tokens: int | None = None,
        page_size: int = 16,
        **common: Unpack[Common],
    ) -> None:
        if page_size < 1:
            raise InvalidRequestError(f"page_size is {page_size}; it must be at least 1")
        if cache_tokens < page_size:
            raise InvalidRequestError(f"cache_tokens is {cache_tokens}; it must be at least a page of {page_size}")
        weight, block = model.embed_tokens.weight, model.config.diffusion.block
        super().__init__(model, block, **common)
        page_size += -page_size % block
        self._begun: set[BlockJob] = set()
        self._room = spare_tokens
        self._spares: Spares[KeyValueBuffer] = Spares(
            cache_tokens // 4 if spare_tokens is None else spare_tokens, block=block
        )
        self.cache = PrefixCache(
            model.config,
            pages=max(1, cache_tokens // page_size),
            page_size=page_size,
            dtype=weight.dtype,
            device=weight.device,
        )

    def job(self, request: Request, handle: Handle) -> BlockJob:
        """See `Decoder`."""
        policy = parse_policy(request.policy) if request.given is None else Policy(reveal=None)
        canvas = BlockCanvas(self.diffusion.mask_token_id, lookup=PromptLookup(request.guess))
        return Job(request, handle, self.diffusion, policy, canvas, (self.diffusion.end_token_id,))

    def fits(self, job: BlockJob) -> bool:
        """Whether there is room for its buffer beside the others'.

        A quarter is kept for clients that have nothing there, and as much again beside a context that takes it all.
        """
        if self._room is None:
            return True
        others = any(other.request.client == job.request.client for other in self._begun)
        room = self._room * (3 if others else 5) // 4
        return self._used + self._most(job) <= room

    def begin(self, job: BlockJob) -> None:
        """Give `job` a buffer and what the cache has of its context."""
        job.began = self.clock()
        request, longest, given = job.request, self.diffusion.max_canvas, job.request.given
        known = request.context[: self._readable(job)]
        room = min(request.max_new_tokens, _ROOM) + longest if given is None else len(given)
        job.buffer = self._buffer(known, len(request.context) + room)
        self._begun.add(job)
        self._trim()
        job.lease = self.cache.acquire(known, job.buffer)
        job.cached_tokens = job.lease.length
        left, within = len(request.context) - job.cached_tokens, 0
        if job.cached_tokens:
            within = min(_WITHIN_FIRST_STEP, self.prefill_chunk) if given is None else self.prefill_chunk
        job.prefill_target = job.cached_tokens if left <= within else len(known)
        if request.sampling.temperature > 0:
            job.generator = generator(self.device, request.sampling.seed)

    def end(self, job: BlockJob) -> None:
        """Take back what `begin` gave; safe for a job that has not begun."""
        if job.lease is not None:
            self.cache.release(job.lease, job.buffer)
            job.lease = None
        if job.buffer is not None:
            self._spares.put(job.tokens[: job.buffer.length], job.buffer)
            job.buffer = None
            self._begun.remove(job)
            self._trim()

    def take_known(self, job: BlockJob) -> None:
        """What a canvas knows without a gap; of a draft nothing is sure."""
        if job.canvas.draft is None and not job.policy.causal:
            job.extend_by(job.canvas, job.canvas.prefix() if self._walk(job) is None else job.front)

    def step(self, jobs: Sequence[BlockJob]) -> None:
        """Take every job one step on; what fails in one of them ends that one alone."""
        pieces: list[Piece] = []
        shares: list[_Share] = []
        draws: list[Draw] = []
        for job in jobs:
            with alone(job.handle):
                mine = self._pieces(job)
                share = self._share(job, mine, shares[-1].stop if shares else 0)
                draws += self._draws(share)
                shares.append(share)
                pieces += mine
        if not pieces:
            return
        encoded = sum(share.job.prefill_rows for share in shares)
        self._take(shares, draws, self.forward(pieces, len(shares), encoded))
        if encoded and self.device.type == "cuda":
            # What is only queued has no measured time, and whoever comes next waits for all of it.
            torch.cuda.synchronize(self.device)

    # Room

    @property
    def _used(self) -> int:
        return sum(map(self._most, self._begun))

    def _most(self, job: BlockJob) -> int:
        """Tokens that the buffer of `job` may have to hold before it ends."""
        request = job.request
        answer = request.max_new_tokens if request.given is None else len(request.given)
        return len(request.context) + answer + self.diffusion.max_canvas

    def _trim(self, more: int = 0) -> None:
        """Let go of unused buffers until the others, and `more` tokens, have their room."""
        self._spares.trim(more + (0 if self._room is None else self._used), least=0 if self._begun or more else 1)

    def _buffer(self, tokens: Sequence[int], capacity: int) -> KeyValueBuffer:
        """The spare buffer that holds most of `tokens` already, or a new one, with room for `capacity`."""
        buffer = self._spares.take(tokens)
        if buffer is None:
            self._trim(capacity)
            return self.new_buffer(capacity)
        buffer.reserve(capacity)
        return buffer

    def _keep(self, job: BlockJob) -> None:
        """Store what is encoded of the context, as far as it is to be shared and is not stored yet."""
        request, readable = job.request, self._readable(job)
        stored = readable if request.given is None else len(request.context) + len(request.given)
        if request.reuse is not None:
            stored = self._whole(min(request.reuse, readable))
        encoded = min(job.encoded.length, stored)
        if job.lease is not None and encoded > job.lease.length:
            self.cache.store(job.lease, job.tokens[:encoded], job.encoded)

    # Where a job is

    def _whole(self, count: int) -> int:
        """So many of `count` leading tokens are in whole blocks."""
        return count - count % self.diffusion.block

    def _readable(self, job: BlockJob) -> int:
        """So many leading tokens may come from the prefix cache, where another request left them."""
        needed = 1 if job.policy.causal or self.diffusion.logit_shift else 0
        return self._whole(len(job.request.context) - needed)

    def _head(self, job: BlockJob) -> list[int]:
        """The final tokens that are rows of the canvas: those that fill no block; with shifted logits, the last one."""
        if self.diffusion.block > 1:
            return job.tokens[self._whole(len(job.tokens)) :]
        return job.tokens[-1:] if self.diffusion.logit_shift else []

    def _uncommitted(self, job: BlockJob) -> list[int]:
        """Tokens that are to be read causally before a canvas; those that head it are not among them."""
        stop = len(job.tokens) - (0 if job.canvas.draft is not None else len(self._head(job)))
        return job.tokens[job.encoded.length : stop]

    def _walk(self, job: BlockJob) -> Walk | None:
        """The constraint that has the last word on the canvas; none where the causal mode has it."""
        return None if job.policy.causal else job.walk

    def _joint(self, job: BlockJob) -> Joint | None:
        """The policy, where it changes what is revealed."""
        reveal = job.policy.reveal
        return reveal if isinstance(reveal, Joint) and job.walk is None and not job.policy.verified else None

    def _last_step(self, job: BlockJob) -> bool:
        """Whether the next step of the canvas is its last one, which reveals everything."""
        return job.canvas.steps + 1 >= job.request.max_steps

    def _reach(self, job: BlockJob) -> int:
        """The step reveals positions before this one: up to the end of the first sub-block that has masked ones."""
        run, length, masked = self.diffusion.sub_block, len(job.canvas), job.canvas.masked()
        if run is None or not masked or self._last_step(job):
            return length
        head = len(self._head(job))
        return min(length, (head + masked[0]) // run * run + run - head)

    def _columns(self, job: BlockJob, length: int) -> Sequence[int]:
        """The positions of a canvas of `length` whose logits are read."""
        if self._walk(job) is not None:
            return range(job.front, length)
        if self._joint(job):  # what a block's opening has decided is no row's to change
            return range(0 if self._head(job) or not self.diffusion.logit_shift else 1, length)
        return job.canvas.masked(0, min(length, self._reach(job)))

    def _policy(self, job: BlockJob) -> RevealPolicy:
        """The reveal policy of the next step."""
        reveal, canvas = job.policy.reveal or Threshold(), job.canvas
        return (
            reveal.at(canvas.steps, canvas.masked_first, self.diffusion.block) if isinstance(reveal, Paced) else reveal
        )

    # What a job forwards

    def _begin_canvas(self, job: BlockJob) -> None:
        """Set up the next canvas, or the next verification where nothing is drafted."""
        before, request, diffusion = job.canvas, job.request, self.diffusion
        job.canvas = canvas = BlockCanvas(diffusion.mask_token_id, lookup=before.lookup)
        job.front = 0
        if request.given is not None:
            canvas.draft = list(request.given)
        elif job.policy.reveal is None or (job.policy.verified and job.room == 1):
            canvas.draft = before.lookup.ahead(job.room - 1) if before.lookup else []
        else:
            lengths = (job.canvas_length,) if job.canvas_length else request.canvas_lengths
            canvas.candidates = tuple(sorted({self._fitting(job, length) for length in lengths}))
            canvas.fill(canvas.candidates[-1], job.frozen(canvas.candidates[-1]))
            canvas.masked_first = len(canvas.masked())
            canvas.opening = diffusion.block > 1 and diffusion.logit_shift and not self._head(job)

    def _fitting(self, job: BlockJob, length: int) -> int:
        """The canvas length nearest to `length` that the answer has room for; with blocks, it ends with a block."""
        longest = job.room if job.policy.verified else job.room + 1  # one more for the end token
        length, block = min(length, longest), self.diffusion.block
        if block == 1:
            return length
        head = len(self._head(job))
        rows = min(head + length, self.diffusion.max_canvas)
        return rows + -rows % block - head

    def _pieces(self, job: BlockJob) -> list[Piece]:
        """The rows of `job` in the next forward."""
        if not job.prefill_left and job.prefilled is None:
            job.prefilled = self.clock()
            self._begin_canvas(job)
        pieces = self._bare_pieces(job)
        for piece in pieces:
            job.encoded.reserve(piece.stop)
        memory = self.model.config.memory
        if memory is None:
            return pieces
        return [replace(piece, text=text_of(piece, job.tokens, memory, self.device)) for piece in pieces]

    def _bare_pieces(self, job: BlockJob) -> list[Piece]:
        buffer, canvas = job.encoded, job.canvas
        length = buffer.length
        if job.prefill_rows:
            return [Piece(job.tokens[length : length + job.prefill_rows], buffer, length, causal=True)]
        behind = self._uncommitted(job)
        if canvas.draft is not None:
            rows = behind + canvas.draft
            return [Piece(rows, buffer, length, causal=True, read=range(max(0, len(behind) - 1), len(rows)))]
        if canvas.opening:
            return [Piece(behind, buffer, length, causal=True, read=[len(behind) - 1])]
        # The causal prediction of the canvas' first position is read on the way; where logits are shifted, the last
        # token is a row of the canvas.
        foresees = job.policy.verified and canvas.known is None and not self.diffusion.logit_shift
        pieces = []
        if behind:
            pieces.append(Piece(behind, buffer, length, causal=True, read=[len(behind) - 1] if foresees else []))
        head = self._head(job)
        first = len(head) - int(self.diffusion.logit_shift)
        for size in canvas.candidates:
            read = [first + column for column in self._columns(job, size)]
            rows = [*head, *canvas.ids[:size]]
            pieces.append(Piece(rows, buffer, length + len(behind), causal=False, read=read))
        return pieces

    def _share(self, job: BlockJob, pieces: Sequence[Piece], start: int) -> _Share:
        stop = start + sum(len(piece.read) for piece in pieces if piece.causal)
        causal, final = stop - start, len(job.tokens) - int(self.diffusion.logit_shift)
        canvases = []
        for piece in pieces:
            if not piece.causal:
                canvases.append((stop, [piece.context + row - final for row in piece.read]))
                stop += len(piece.read)
        return _Share(job, start, causal, tuple(canvases), stop)

    def _draws(self, share: _Share) -> list[Draw]:
        """How the tokens of these rows are drawn."""
        job, draft = share.job, share.job.canvas.draft or []
        draws = []
        if share.causal:
            ahead = 0 if self._uncommitted(job) else 1  # the first row predicts behind so many tokens of the draft
            columns = range(ahead, ahead + share.causal)
            draws.append(self._draw(job, share.start, columns, draft[:ahead], draft[ahead:]))
        known = [token for token in job.canvas.ids if token != job.canvas.mask_token_id] if share.canvases else []
        draws += [self._draw(job, first, columns, known) for first, columns in share.canvases]
        return draws

    def _draw(
        self, job: BlockJob, start: int, columns: Sequence[int], known: Sequence[int], following: Sequence[int] = ()
    ) -> Draw:
        """Rows from `start` on predict the positions `columns` behind the final tokens; see `Job.counts`."""
        request, stop = job.request, start + len(columns)
        if request.given is not None:
            given = (*request.given, self.diffusion.end_token_id)
            return Draw(start, stop, SamplingParams(), forced={row: given[place] for row, place in enumerate(columns)})
        counts = job.counts(len(columns), self.config.vocab_size, self.device, known, following)
        without_end: list[int] = []
        forced: dict[int, int] = {}
        if request.frozen or request.min_new_tokens:
            without_end = [row for row, column in enumerate(columns) if job.bans_end(column)]
            places = ((row, job.offset + column) for row, column in enumerate(columns))
            forced = {row: request.frozen[place] for row, place in places if place in request.frozen}
        return Draw(start, stop, request.sampling, job.generator, counts, without_end, forced)

    # What a forward means

    def _take(self, shares: Sequence[_Share], draws: Sequence[Draw], logits: Tensor) -> None:
        diffusion = self.diffusion
        choice = choose(logits, draws, mask_token_id=diffusion.mask_token_id, end_token_id=diffusion.end_token_id)
        told = (choice.token, choice.log_prob, choice.entropy)
        # The one thing that the host waits for.
        numbers = torch.stack([values.double() for values in told]).tolist()
        found = [Prediction(int(token), *rest) for token, *rest in zip(*numbers, strict=True)]
        rows = Rows(logits, choice)
        for share in shares:
            job, canvas = share.job, share.job.canvas
            with alone(job.handle):
                causal = found[share.start : share.start + share.causal]
                if job.walk is not None and causal:
                    column, draft = int(canvas.known is not None), canvas.draft or []
                    causal = decide(job, job.walk, causal, rows, row=share.start, column=column, draft=draft)
                if job.prefill_rows:
                    self._prefilled(job)
                elif job.request.given is not None:
                    self._scored(job, causal)
                elif canvas.opening:
                    self._opened(job, causal[0])
                elif canvas.draft is not None:
                    self._verified(job, causal)
                elif self._goes_on(job, causal):
                    first, columns = self._probed(share, found)
                    self._denoised(job, columns, found[first : first + len(columns)], rows, first)

    def _prefilled(self, job: BlockJob) -> None:
        """A chunk of the context is encoded: keep its pages."""
        job.encoded.length += job.prefill_rows
        job.prefill_rows = 0
        self._keep(job)

    def _scored(self, job: BlockJob, predictions: Sequence[Prediction]) -> None:
        """A given answer was read causally: it is the answer, with the end token behind it."""
        job.forwards += 1
        job.encoded.length += len(self._uncommitted(job)) + len(predictions) - 1
        job.extend(predictions)
        self._keep(job)
        self.finish(job, "stop")

    def _opened(self, job: BlockJob, found: Prediction) -> None:
        """The block before the canvas is committed; its last row has decided the canvas' first position."""
        canvas = job.canvas
        job.forwards += 1
        job.encoded.length += len(self._uncommitted(job))
        self._keep(job)
        canvas.opening = False
        if found.token in job.ends:
            job.extend([found])
            self._go_on(job)
            return
        canvas.settle(0, found)
        canvas.masked_first = len(canvas.masked())
        job.front = int(self._walk(job) is not None)
        self._show(job)

    def _verified(self, job: BlockJob, predictions: Sequence[Prediction]) -> None:
        """A draft was read causally: fix what the causal mode agrees with, and its own next token."""
        canvas = job.canvas
        job.forwards += 1
        if canvas.known is not None:
            predictions = [canvas.known, *predictions]
        tokens = [found.token for found in predictions]
        count = agreement(canvas.draft or [], tokens, end_token_id=self.diffusion.end_token_id, room=job.room)
        job.encoded.length = len(job.tokens) + count - 1
        self._keep(job)
        job.extend(predictions[:count])
        if canvas.lookup is not None:
            canvas.lookup.found(tokens[:count])
        self._go_on(job)

    def _goes_on(self, job: BlockJob, predictions: Sequence[Prediction]) -> bool:
        """The causal rows before a canvas are committed; False when they already tell that the answer ends here."""
        job.forwards += 1
        job.steps += 1
        job.encoded.length += len(self._uncommitted(job))
        self._keep(job)
        if predictions:
            (job.canvas.known,) = predictions
            if job.canvas.known.token in job.ends:
                job.extend(predictions)
                self._go_on(job)
                return False
            job.canvas.settle(0, job.canvas.known)
        return True

    def _probed(self, share: _Share, found: Sequence[Prediction]) -> tuple[int, Sequence[int]]:
        """First row and columns of the canvas to go on with; the first step of several candidates chooses one."""
        job, canvas, chosen = share.job, share.job.canvas, 0
        if len(canvas.candidates) > 1:
            rows = [found[first : first + len(columns)] for first, columns in share.canvases]
            chosen, job.length_scores = best_length(canvas.candidates, [[row.log_prob for row in own] for own in rows])
            canvas.drop(canvas.candidates[chosen])
            canvas.candidates = (len(canvas),)
        job.canvas_length = job.canvas_length or len(canvas)
        return share.canvases[chosen]

    def _denoised(
        self, job: BlockJob, columns: Sequence[int], found: Sequence[Prediction], rows: Rows, first: int
    ) -> None:
        """Take the canvas one step on: `found`, the `rows` from `first` on, says what stands at `columns`."""
        canvas, joint, last = job.canvas, self._joint(job), self._last_step(job)
        whole = not canvas.masked()
        changed = self._write(job, dict(zip(columns, found, strict=True)))
        canvas.steps += 1
        canvas.whole_steps += whole
        walk = self._walk(job)
        if walk is not None:
            settle(job, walk, rows, row=first, last=last)
        if joint is None:
            self._drop_tail(job)
        self._show(job)
        # Where revealed tokens may change, a step on a whole canvas has the last word.
        again = joint is not None and (changed or not whole) and canvas.whole_steps < joint.after and not last
        if canvas.masked() or again:
            if self._is_over(job):
                job.extend_by(canvas, canvas.prefix())
                self.finish(job, "stop")
        elif job.policy.verified:
            canvas.draft = [token for token in canvas.ids if token not in job.ends][: job.room - 1]
        else:
            job.extend_by(canvas, len(canvas))
            self._go_on(job)

    def _shown(self, job: BlockJob, told: Mapping[int, Prediction]) -> list[bool]:
        """Which positions of the canvas a step reveals that has `told` of some of them."""
        canvas, reach = job.canvas, self._reach(job)
        everywhere = [told.get(column, Prediction(-1, -math.inf, 0.0)) for column in range(len(canvas))]
        asked = [column in told and column < reach and not known for column, known in enumerate(canvas.revealed)]
        if self._last_step(job):
            return asked
        confidence = torch.tensor([[found.log_prob for found in everywhere]]).exp()
        entropy = torch.tensor([[found.entropy for found in everywhere]])
        shown: list[bool] = self._policy(job)(confidence, entropy, torch.tensor([asked]))[0].tolist()
        return shown

    def _write(self, job: BlockJob, told: Mapping[int, Prediction]) -> bool:
        """Put what is revealed on the canvas, and tell whether a revealed position was changed."""
        canvas, joint, shown = job.canvas, self._joint(job), self._shown(job, told)
        changed = False
        for column, here in told.items():
            if canvas.ids[column] == canvas.mask_token_id:
                if shown[column]:
                    canvas.take(column, here)
            elif joint and not canvas.frozen[column] and here.token != canvas.ids[column]:
                changes = math.exp(here.log_prob) > joint.edit
                changed = changed or changes
                if changes:
                    canvas.take(column, here)
        return changed

    def _drop_tail(self, job: BlockJob) -> None:
        """An end token drops what stands behind it."""
        canvas = job.canvas
        # A constraint may still refuse an end that is only proposed.
        sure = len(canvas) if self._walk(job) is None else job.front
        ended = next((column for column in range(sure) if canvas.ids[column] in job.ends), None)
        # A checkpoint with blocks has read whole blocks alone: the tail goes when nothing before it is masked.
        if ended is not None and (self.diffusion.block == 1 or ended < canvas.prefix()):
            canvas.drop(ended + 1)
            canvas.candidates = (len(canvas),)

    def _is_over(self, job: BlockJob) -> bool:
        """Whether what is revealed without a gap ends the answer: nobody asks what is masked behind it."""
        canvas, until = job.canvas, job.request.until
        masked = canvas.masked()
        if until is None or not masked or self._joint(job) or job.policy.causal or job.walk is not None:
            return False
        known = min(masked[0], job.room)
        settled = [*job.answer, *canvas.ids[:known]]
        if not known or len(settled) <= canvas.asked:
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
        if job.policy.causal:
            self._show(job)

    def _show(self, job: BlockJob) -> None:
        canvas = job.canvas
        # What is only drafted may still be rejected.
        sure = 0 if job.policy.verified else len(canvas) if self._walk(job) is None else job.front
        job.show(canvas.ids, [known and column < sure for column, known in enumerate(canvas.revealed)])

    def finish(self, job: BlockJob, reason: FinishReason) -> None:
        """Settle the handle with the answer; what was only drafted is not shown any more."""
        if job.policy.causal:
            job.show()
        super().finish(job, reason)


def agreement(draft: Sequence[int], predicted: Sequence[int], *, end_token_id: int, room: int) -> int:
    """How many of the `predicted` tokens are fixed.

    Args:
        draft: the drafted tokens, without an end token.
        predicted: the causal mode's tokens for the same positions and the one behind them, each predicted from the
            drafted tokens before it.
        end_token_id: nothing is fixed behind it.
        room: at most so many.

    Returns:
        The length of the agreeing prefix plus one, for the causal mode's own token behind it, within `room`.
    """
    for position, token in enumerate(predicted[:room]):
        if token == end_token_id or position >= len(draft) or draft[position] != token:
            return position + 1
    return min(room, len(predicted))
