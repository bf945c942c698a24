"""The decoder of canvases of uniform noise: each step redraws every position and keeps those that are certain.

DiffusionGemma denoises like this: there is no mask token. A canvas begins as random tokens; the model reads it together
with its own last prediction (self-conditioning), positions of low entropy are accepted, the others get fresh noise, and
the best tokens of the last step are the answer. An answer is a sequence of canvases: each finished one is encoded like
the context before the next one begins. The network is a `Backbone`; nothing here depends on a particular one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, Unpack

import torch
from torch import Tensor

from calomel.engine.config import DiffusionConfig, Positive, TokenId, Whole
from calomel.engine.constraint import accepts, draw_allowed, only_token
from calomel.engine.decoder import Common, Decoder, StepReport
from calomel.engine.errors import CheckpointError, InvalidRequestError
from calomel.engine.handle import Handle
from calomel.engine.job import Job, alone, generator
from calomel.engine.policies import LeftToRight, Paced, RevealPolicy, parse_policy
from calomel.engine.request import Request, Walk
from calomel.engine.sampling import LOWEST, Prediction, narrow, penalise
from calomel.engine.spares import E, Spares

# There is no mask token; no token has this id.
_NO_MASK = -1


@dataclass(frozen=True, slots=True)
class NoiseShape:
    """What a request is checked against before it is queued, and how canvases are denoised.

    The defaults are those of DiffusionGemma's generation code.

    Attributes:
        canvas: positions of every canvas; the one length that the model was trained on.
        end_token_ids: tokens that end an answer.
        hottest: temperature before the first step; it falls linearly with the steps.
        coldest: temperature that the last step approaches.
        pictures: tokens that stand for pictures, which a context may not have.
        stable: how many steps in a row must leave the best tokens unchanged before a canvas is done early.
        sure: mean entropy in nats, at the step's temperature, below which a stable canvas is done.
    """

    vocab_size: Whole
    max_position_embeddings: Whole
    canvas: Whole
    end_token_ids: tuple[TokenId, ...]
    hottest: Positive = 0.8
    coldest: Positive = 0.4
    pictures: tuple[TokenId, ...] = ()
    stable: TokenId = 1
    sure: Positive = 0.005

    def __post_init__(self) -> None:
        ends = self.end_token_ids
        if not ends or max(ends) >= self.vocab_size:
            raise CheckpointError(f"eos_token_id is {ends}; it must be token ids below vocab_size ({self.vocab_size})")

    @property
    def diffusion(self) -> DiffusionConfig:
        """How the checkpoint denoises, as far as checks of requests need it."""
        end = self.end_token_ids[0]
        return DiffusionConfig(_NO_MASK, end_token_id=end, max_canvas=self.canvas, verifiable=False)


class Backbone(Protocol[E]):
    """A network that encodes contexts causally and denoises canvases after them."""

    @property
    def shape(self) -> NoiseShape:
        """What it was trained for."""

    @property
    def weights(self) -> Sequence[Tensor]:
        """Its parameters, each once."""

    @property
    def device(self) -> torch.device:
        """Where it runs."""

    @property
    def dtype(self) -> torch.dtype:
        """Of its weights, and of what a step passes to the next one."""

    def empty(self) -> E:
        """A context without tokens."""

    def encode(self, ids: Sequence[int], behind: E) -> None:
        """Append `ids` to what `behind` has encoded, causally."""

    def denoise(self, canvases: Tensor, conditions: Sequence[Tensor | None], behind: Sequence[E]) -> Tensor:
        """Denoise canvases, each after its own context.

        Args:
            canvases: [B, L] int64.
            conditions: for each canvas the processed logits [L, V] of its last step; None in its first.
            behind: B contexts, of any length.

        Returns:
            Logits [B, L, V] float32, which the caller may overwrite.
        """


@dataclass(frozen=True, slots=True)
class Stepped:
    """The result of a step on a canvas of L positions.

    Attributes:
        best: [L] int64, the likeliest tokens: what the canvas says if it is done.
        accepted: [L] bool.
        warmth: the temperature of the step.
        condition: [L, V], what this step passes to the next one: the logits at that temperature.
    """

    best: Tensor
    accepted: Tensor
    warmth: Tensor
    condition: Tensor


@dataclass(slots=True)
class NoiseCanvas:
    """A canvas of noise.

    Attributes:
        tokens: [L] int64, what the next step reads: accepted tokens and fresh noise.
        held: what stays, by its position: what a constraint has settled.
        last: the result of the last step.
        steps: how many were made.
        unchanged: how many steps in a row left the best tokens as they were; a scalar tensor after the second one.
    """

    tokens: Tensor
    held: dict[int, Prediction] = field(default_factory=dict)
    last: Stepped | None = None
    steps: int = 0
    unchanged: Tensor | int = 0

    def hold(self) -> None:
        """Put the tokens that stay on the canvas."""
        for column, found in self.held.items():
            self.tokens[column] = found.token


NoiseJob: TypeAlias = Job[RevealPolicy, NoiseCanvas | None, E]


class UniformDiffusion(Decoder[RevealPolicy, NoiseCanvas | None, E], Generic[E]):
    """Serves requests with a backbone whose canvases are uniform noise; encoded contexts are kept.

    A request's `canvas_lengths` is ignored: the model knows canvases of one length. `guess` changes nothing: every
    position may change in every step anyway. `SamplingParams.temperature` is a factor of the published schedule: 1 is
    the published one, and 0 takes the best token of each position, by that schedule, with the same noise every time
    unless there is a seed. Penalties count the context and the previous canvases.

    Args:
        backbone: the network.
        spare_tokens: tokens of contexts that stay encoded for the next keystroke.
        common: see `Common`.
    """

    def __init__(self, backbone: Backbone[E], *, spare_tokens: int = 65_536, **common: Unpack[Common]) -> None:
        super().__init__(backbone.shape, backbone.device, backbone.weights, **common)
        self._backbone = backbone
        self._shape = backbone.shape
        self._spares: Spares[E] = Spares(spare_tokens)

    def job(self, request: Request, handle: Handle) -> NoiseJob[E]:
        """See `Decoder`.

        Raises:
            InvalidRequestError: the policy needs masks, or the context contains a picture.
        """
        for token in self._shape.pictures:
            if token in request.context:
                raise InvalidRequestError(f"context has token id {token}, a picture; this engine reads only text")
        reveal = parse_policy(request.policy)
        if isinstance(reveal, LeftToRight | Paced):
            raise InvalidRequestError(
                f"policy {request.policy!r} needs masked positions; this checkpoint's canvases have none: "
                "choose entropy_bound:NATS"
            )
        job: NoiseJob[E] = Job(request, handle, self.diffusion, reveal, None, self._shape.end_token_ids)
        job.canvas_length = self._shape.canvas
        return job

    def begin(self, job: NoiseJob[E]) -> None:
        """Give `job` what is already encoded of its context, and its random numbers."""
        job.began = self.clock()
        taken = self._spares.take(job.request.context)
        job.buffer = self._backbone.empty() if taken is None else taken
        job.cached_tokens = job.buffer.length
        job.prefill_target = len(job.tokens)
        sampling = job.request.sampling
        still = sampling.temperature == 0 and sampling.seed is None
        job.generator = generator(self.device, 0 if still else sampling.seed)

    def end(self, job: NoiseJob[E]) -> None:
        """Keep what is encoded for the next request; safe for a job that has not begun."""
        if job.buffer is None:
            return
        held = job.buffer.length
        kept = held if job.request.reuse is None else min(held, job.request.reuse)
        if kept and job.buffer.reaches(kept):
            job.buffer.cut(kept)
            self._spares.put(job.tokens[:kept], job.buffer)
        job.buffer = job.canvas = None

    def take_known(self, job: NoiseJob[E]) -> None:
        """Take what is accepted without a gap."""
        last = None if job.canvas is None else job.canvas.last
        if last is not None:
            sure = [*last.accepted.tolist(), False].index(False)
            # Between two steps only the condition of the next one is kept at this size.
            warm = last.condition.float() * last.warmth
            self._take_canvas(job, last, warm, sure if job.walk is None else job.front)

    def step(self, jobs: Sequence[NoiseJob[E]]) -> None:
        """Encode a chunk of every job that has something to encode, and denoise one step of all others together."""
        if not jobs:
            return
        encoded = sum(job.prefill_rows for job in jobs)
        ready: list[tuple[NoiseJob[E], NoiseCanvas]] = []
        self.use_threads(encoded + len(jobs) * self._shape.canvas)
        for job in jobs:
            with alone(job.handle):
                self._encode(job)
                if not job.prefill_left:
                    ready.append((job, job.canvas or self._open(job)))
        if ready:
            logits = self._backbone.denoise(
                torch.stack([canvas.tokens for _, canvas in ready]),
                [None if canvas.last is None else canvas.last.condition for _, canvas in ready],
                [job.encoded for job, _ in ready],
            )
        self.report(StepReport(len(jobs), encoded + len(ready) * self._shape.canvas, encoded))
        if not ready:
            return
        taken: list[tuple[NoiseJob[E], NoiseCanvas, Stepped, Tensor, Tensor]] = []
        for (job, canvas), told in zip(ready, logits, strict=True):
            with alone(job.handle):
                taken.append((job, canvas, *self._advance(job, canvas, told)))
        if taken:
            # The only value that the host waits for.
            dones = torch.stack([done for *_, done in taken]).tolist()
            for (job, canvas, last, raw, _), done in zip(taken, dones, strict=True):
                with alone(job.handle):
                    self._go_on(job, canvas, last, raw, done=done)

    def _encode(self, job: NoiseJob[E]) -> None:
        encoded = job.encoded
        if job.prefill_rows:
            # A failure midway leaves some layers longer than others: nothing may read them again.
            job.buffer = None
            self._backbone.encode(job.tokens[encoded.length : encoded.length + job.prefill_rows], encoded)
            job.buffer = encoded
            job.prefill_rows = 0
            job.forwards += job.prefilled is not None
        if job.prefilled is None and not job.prefill_left:
            job.prefilled = self.clock()

    def _open(self, job: NoiseJob[E]) -> NoiseCanvas:
        """Begin a canvas: the last one is done."""
        job.canvas = canvas = NoiseCanvas(self._noise(job))
        job.front = 0
        canvas.hold()
        return canvas

    def _noise(self, job: NoiseJob[E]) -> Tensor:
        """Uniformly random tokens: [L] int64."""
        size, high = (self._shape.canvas,), self._shape.vocab_size
        return torch.randint(low=0, high=high, size=size, generator=job.generator, device=self.device)

    def _advance(self, job: NoiseJob[E], canvas: NoiseCanvas, logits: Tensor) -> tuple[Stepped, Tensor, Tensor]:
        """Advance a canvas by one step, as DiffusionGemma's code does, with the model's logits [L, V].

        The order of the random draws is that of the published code too (a token for every position, then noise for
        every position), so that the same seed gives the same tokens.

        Returns:
            The result of the step; the shaped `logits` at temperature 1; and whether the canvas is stable and sure, a
            scalar bool.
        """
        shape, sampling, most = self._shape, job.request.sampling, job.request.max_steps
        job.steps += 1
        job.forwards += 1
        left = torch.tensor(most - canvas.steps, dtype=torch.int32)
        warmth = shape.coldest + (shape.hottest - shape.coldest) * (left / most)
        drawn_at_random = sampling.temperature > 0
        if drawn_at_random:
            warmth = warmth * sampling.temperature
        raw = self._shaped(job, canvas, logits)
        told = raw / warmth
        best, entropy = told.argmax(dim=-1), _entropies(told)
        chances = (narrow(told, sampling) if drawn_at_random else told).softmax(dim=-1)
        drawn = torch.multinomial(chances, 1, generator=job.generator)[:, 0] if drawn_at_random else best
        confidence = chances.gather(-1, drawn[:, None])[:, 0]
        accepted = job.policy(confidence[None], entropy[None], torch.ones_like(best, dtype=torch.bool)[None])[0]
        canvas.tokens = torch.where(accepted, drawn, self._noise(job))
        canvas.hold()
        if canvas.last is not None:
            canvas.unchanged = (canvas.unchanged + 1) * (best == canvas.last.best).all()
        done = (entropy.mean() < shape.sure) & (canvas.unchanged >= shape.stable)
        canvas.steps += 1
        canvas.last = Stepped(best, accepted, warmth, told.to(self._backbone.dtype))
        return canvas.last, raw, done

    def _shaped(self, job: NoiseJob[E], canvas: NoiseCanvas, logits: Tensor) -> Tensor:
        """Apply penalties, bans of early ends and tokens that stay to logits [L, V]."""
        counts = job.counts(1, logits.shape[-1], logits.device)
        if counts is not None:
            logits = penalise(logits, job.request.sampling, counts)
        banned = [column for column in range(self._shape.canvas) if job.bans_end(column)]
        for end in job.ends if banned else ():
            logits[banned, end] = -torch.inf
        for column, found in canvas.held.items():
            told = logits[column, found.token].clone()
            logits[column] = -torch.inf
            logits[column, found.token] = told.nan_to_num(neginf=0.0)
        return logits

    def _go_on(self, job: NoiseJob[E], canvas: NoiseCanvas, last: Stepped, raw: Tensor, *, done: bool) -> None:
        """After a step: append a canvas that is done to the answer, which may end with it."""
        final = canvas.steps >= job.request.max_steps
        settled = done or final
        if job.walk is not None:
            settled = self._settle(job, canvas, last, raw, job.walk, done=done, final=final)
        if job.request.record_canvases:
            ids = last.best.tolist()
            end = job.ended(ids, len(ids))
            shown = min(len(ids) if end is None else end, job.room)
            sure = last.accepted.tolist() if job.walk is None else [True] * len(ids)
            job.show(ids[:shown], sure[:shown])
        if settled:
            self._take_canvas(job, last, raw, self._shape.canvas)
            reason = job.over()
            if reason is not None:
                self.finish(job, reason)

    def _settle(
        self, job: NoiseJob[E], canvas: NoiseCanvas, told: Stepped, raw: Tensor, walk: Walk, *, done: bool, final: bool
    ) -> bool:
        """Move the front of a canvas within a constraint after a step, and return whether the canvas is settled.

        What is before the front is held in the following steps. If the likeliest token is refused, an allowed one takes
        its place, and what comes after it is denoised again.

        Args:
            job: whose canvas it is; gets the settled tokens.
            canvas: that one.
            told: the result of the step.
            raw: [L, V], the model's logits for it.
            walk: is at the front.
            done: the canvas is stable and sure, as far as the model is concerned.
            final: there is no further step: the canvas is settled as it is.
        """
        accepted, proposed = told.accepted.tolist(), told.best.tolist()
        while job.front < len(proposed):
            column = job.front
            token = only_token(job, walk, column, raw.shape[-1])
            if token is None:
                if not (accepted[column] or done or final):
                    return False
                token = proposed[column]
            taken = accepts(job, walk, token)
            if not taken:
                token = draw_allowed(job, walk, column, raw[column])
            canvas.held[column] = _predictions(raw[column][None], told.best.new_tensor([token]))[0]
            job.front += 1
            told.best[column] = canvas.tokens[column] = token
            if token in job.ends:
                return True
            if not taken and not final:
                done, accepted[column + 1 :] = False, [False] * (len(accepted) - column - 1)
        return True

    def _take_canvas(self, job: NoiseJob[E], last: Stepped, raw: Tensor, length: int) -> None:
        """Move the first `length` positions of the canvas into the answer, as far as it has room.

        `raw` [L, V] is the model's logits for them, at temperature 1.
        """
        held = job.canvas.held if job.canvas is not None else {}
        found = _predictions(raw[:length], last.best[:length])
        job.extend([held.get(column, told) for column, told in enumerate(found)])
        job.canvas = None
        job.prefill_target = len(job.tokens)


def _predictions(logits: Tensor, tokens: Tensor) -> list[Prediction]:
    """What the model's logits [L, V] say of `tokens` [L]."""
    log_probs = logits.log_softmax(dim=-1).gather(-1, tokens[:, None])[:, 0].clamp(min=LOWEST)
    numbers = (log_probs.tolist(), _entropies(logits).tolist())
    return [Prediction(*row) for row in zip(tokens.tolist(), *numbers, strict=True)]


def _entropies(logits: Tensor) -> Tensor:
    """The entropy of every row's distribution in nats: [..., V] to [...]; a logit of -inf is no token."""
    normal = logits - logits.logsumexp(dim=-1, keepdim=True)
    return -(normal.clamp(min=LOWEST) * normal.softmax(dim=-1)).sum(dim=-1)
