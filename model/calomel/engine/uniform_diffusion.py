"""The decoder of canvases of uniform noise: every position is drawn anew in each step, and what is sure is kept.

DiffusionGemma denoises so: there is no mask token. A canvas begins as random tokens; the model reads it together with
its own last prediction (self-conditioning), positions of low entropy are accepted, the others get fresh noise, and the
best tokens of the last step are the answer. An answer is a sequence of canvases: behind each, what it says is encoded
like the context, and the next one begins. The network is a `Backbone`; nothing here knows one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeAlias, TypeVar, Unpack

import torch
from torch import Tensor

from calomel.engine.cache import E, Spares
from calomel.engine.config import DiffusionConfig, need_whole
from calomel.engine.constraint import accepts, draw_allowed, only_token
from calomel.engine.decoder import Common, Decoder, StepReport
from calomel.engine.errors import CheckpointError, InvalidRequestError, PolicyUnavailableError
from calomel.engine.handle import Handle
from calomel.engine.job import Job, alone, generator
from calomel.engine.policies import EntropyBound, Paced, RevealPolicy, parse_policy
from calomel.engine.request import Request, SamplingParams, Walk
from calomel.engine.sampling import LOWEST, Prediction, narrow, penalise

T = TypeVar("T")

# There is no mask token; this is the id of none.
_NO_MASK = -1


@dataclass(frozen=True, slots=True)
class NoiseRules:
    """How a canvas of uniform noise is denoised. The defaults are those of DiffusionGemma's generation code.

    Attributes:
        canvas: positions of every canvas; the one length that the model was trained on.
        end_token_ids: each of them ends an answer.
        hottest: temperature before the first step; it falls linearly with the steps.
        coldest: temperature that the last step comes near to.
        pictures: tokens that stand for pictures, which a context can't have.
        stable: so many steps in a row must leave the best tokens unchanged before a canvas is done early.
        sure: mean entropy in nats, at the step's temperature, below which a stable canvas is done.
    """

    canvas: int
    end_token_ids: tuple[int, ...]
    hottest: float = 0.8
    coldest: float = 0.4
    pictures: tuple[int, ...] = ()
    stable: int = 1
    sure: float = 0.005

    def __post_init__(self) -> None:
        need_whole(self, 1, "canvas")
        need_whole(self, 0, "stable")
        for name in ("hottest", "coldest", "sure"):
            if not 0 < getattr(self, name) < math.inf:
                raise CheckpointError(f"{name} is {getattr(self, name)}; it must be a number above 0")
        if not self.end_token_ids or min(self.end_token_ids) < 0:
            raise CheckpointError(f"eos_token_id is {self.end_token_ids}; it must be token ids of at least 0")


@dataclass(frozen=True, slots=True)
class NoiseShape:
    """What is asked of the model before a request is queued, with the rules of its canvases."""

    vocab_size: int
    max_position_embeddings: int
    rules: NoiseRules

    def __post_init__(self) -> None:
        need_whole(self, 1, "vocab_size", "max_position_embeddings")
        for end in self.rules.end_token_ids:
            if end >= self.vocab_size:
                raise CheckpointError(f"eos_token_id is {end}; vocab_size is {self.vocab_size}")

    @property
    def diffusion(self) -> DiffusionConfig:
        """How the checkpoint denoises, as far as other decoders' requests ask."""
        return DiffusionConfig(
            mask_token_id=_NO_MASK,
            end_token_id=self.rules.end_token_ids[0],
            max_canvas=self.rules.canvas,
            verifiable=False,
        )


class Backbone(Protocol[E]):
    """A network that encodes contexts causally and denoises canvases behind them."""

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
        """Of its weights; what a step is told of the one before has it too."""

    def empty(self) -> E:
        """A context without tokens."""

    def encode(self, ids: Sequence[int], behind: E) -> None:
        """Append `ids` to what `behind` has encoded, causally."""

    def denoise(self, canvases: Tensor, conditions: Sequence[Tensor | None], behind: Sequence[E]) -> Tensor:
        """One forward of canvases, each behind its own context.

        Args:
            canvases: [B, L] int64.
            conditions: of each canvas the processed logits [L, V] of its last step; None in its first.
            behind: B contexts, of any length.

        Returns:
            Logits [B, L, V] float32, which the caller may overwrite.
        """


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a step made of a canvas of L positions.

    Attributes:
        canvas: [L] int64, accepted tokens and fresh noise: what the next step reads.
        best: [L] int64, the likeliest tokens: what the canvas says if it is done.
        accepted: [L] bool.
        condition: [L, V], what the next step is told of this one: the logits at this step's temperature.
        entropy: [L] float32, at this step's temperature, in nats.
    """

    canvas: Tensor
    best: Tensor
    accepted: Tensor
    condition: Tensor
    entropy: Tensor


def denoising_step(
    current: Tensor,
    logits: Tensor,
    warmth: Tensor,
    sampling: SamplingParams,
    reveal: RevealPolicy,
    numbers: torch.Generator,
) -> Stepped:
    """Take a canvas one step on, as DiffusionGemma's code does.

    The order of the random draws is that of the published code too (a token for every position, then noise for every
    position), so that the same seed gives the same tokens.

    Args:
        current: [L] int64, the canvas that was read.
        logits: [L, V] float32, what the model said of it.
        warmth: the step's temperature, that of the request included.
        sampling: a temperature of 0 takes the best token instead of a drawn one.
        reveal: which positions are accepted.
        numbers: random ones, of the canvas.
    """
    told = logits / warmth.to(logits.device)
    best = told.argmax(dim=-1)
    if sampling.temperature > 0:
        chances = narrow(told, sampling).softmax(dim=-1)
        drawn = torch.multinomial(chances, num_samples=1, generator=numbers).squeeze(-1)
    else:
        chances, drawn = None, best
    entropy = _entropies(told)
    if isinstance(reveal, EntropyBound):
        accepted = _within_bound(entropy, reveal.nats)
    else:
        chances = told.softmax(dim=-1) if chances is None else chances
        confidence = chances.gather(-1, drawn[:, None])[:, 0]
        accepted = reveal(confidence[None], entropy[None], torch.ones_like(current, dtype=torch.bool)[None])[0]
    fresh = _noise(current.shape[-1], logits.shape[-1], numbers)
    return Stepped(torch.where(accepted, drawn, fresh), best, accepted, told, entropy)


def _noise(length: int, vocab: int, numbers: torch.Generator) -> Tensor:
    """Uniformly random tokens: [length] int64."""
    return torch.randint(low=0, high=vocab, size=(length,), generator=numbers, device=numbers.device)


def _entropies(logits: Tensor) -> Tensor:
    """The entropy of every row's distribution in nats: [..., V] to [...]; a logit of -inf is no token."""
    normal = logits - logits.logsumexp(dim=-1, keepdim=True)
    return -(normal.clamp(min=LOWEST) * normal.softmax(dim=-1)).sum(dim=-1)


def _within_bound(entropy: Tensor, nats: float) -> Tensor:
    """Positions in order of rising entropy, while the entropies of those before sum to `nats`: [..., L] to [..., L].

    Of so few dependent decisions the joint distribution is near the product of its parts (arXiv 2505.24857).
    """
    ordered, order = entropy.sort(dim=-1)
    chosen = ordered.cumsum(dim=-1) - ordered <= nats
    return torch.zeros_like(chosen).scatter(-1, order, chosen)


@dataclass(slots=True)
class NoiseCanvas:
    """A canvas of noise.

    Attributes:
        tokens: [L] int64, what the next step reads; None between two canvases.
        last: what the last step made of it; its `condition` is what the next step is told.
        raw: [L, V], what the model said in the last step, at temperature 1; None once that is no longer needed.
        warmth: the temperature of the last step.
        steps: so many have been made.
        unchanged: scalar tensor, so many steps in a row left the best tokens as they were.
        settled: the leading positions that the constraint has had its word on, with their tokens.
    """

    tokens: Tensor | None = None
    last: Stepped | None = None
    raw: Tensor | None = None
    warmth: Tensor | None = None
    steps: int = 0
    unchanged: Tensor | None = None
    settled: dict[int, int] = field(default_factory=dict)


NoiseJob: TypeAlias = Job[RevealPolicy, NoiseCanvas, E]


class UniformDiffusion(Decoder[RevealPolicy, NoiseCanvas, E], Generic[E]):
    """Serves requests on a backbone whose canvases are of uniform noise: contexts are kept, requests share forwards.

    Of a request, `canvas_lengths` is not looked at: the model knows canvases of one length. `guess` changes nothing:
    every position may change in every step as it is. `SamplingParams.temperature` is a factor of the published
    schedule: 1 is what was published, and 0 takes the best token of each position, by that schedule, with the same
    noise every time where there is no seed. Penalties count the context and the canvases before.

    Args:
        backbone: the network.
        spare_tokens: tokens of contexts that stay encoded for their next keystroke.
        common: see `Common`.
    """

    def __init__(self, backbone: Backbone[E], *, spare_tokens: int = 65_536, **common: Unpack[Common]) -> None:
        super().__init__(backbone.shape, backbone.device, backbone.weights, **common)
        self._backbone = backbone
        self._rules = backbone.shape.rules
        self._spares: Spares[E] = Spares(spare_tokens)

    def job(self, request: Request, handle: Handle) -> NoiseJob[E]:
        """See `Decoder`.

        Raises:
            InvalidRequestError: the policy needs masks, or the context has a picture.
        """
        for token in self._rules.pictures:
            if token in request.context:
                raise InvalidRequestError(f"context has token id {token}, a picture; this engine reads text alone")
        reveal = parse_policy(request.policy)
        if reveal is None or isinstance(reveal, Paced):
            raise PolicyUnavailableError(
                f"policy {request.policy!r} needs masked positions; this checkpoint's canvases have none: "
                "choose entropy_bound:NATS"
            )
        job: NoiseJob[E] = Job(request, handle, self.diffusion, reveal, NoiseCanvas(), self._rules.end_token_ids)
        job.canvas_length = self._rules.canvas
        return job

    def begin(self, job: NoiseJob[E]) -> None:
        """Give `job` what is encoded of its context already, and its random numbers."""
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
            self._spares.trim()
        job.buffer, job.canvas = None, NoiseCanvas()

    def take_known(self, job: NoiseJob[E]) -> None:
        """What is accepted without a gap."""
        if job.canvas.last is not None:
            sure = job.canvas.last.accepted.tolist()
            known = sure.index(False) if False in sure else len(sure)
            self._take_canvas(job, known if job.walk is None else len(job.canvas.settled))

    def step(self, jobs: Sequence[NoiseJob[E]]) -> None:
        """Encode a chunk of every job that has something to encode, and denoise one step of all others together."""
        encoded = sum(job.prefill_rows for job in jobs)
        ready: list[NoiseJob[E]] = []
        self.use_threads(encoded + len(jobs) * self._rules.canvas)
        for job in jobs:
            with alone(job.handle):
                self._encode(job)
                if not job.prefill_left:
                    self._open(job)
                    ready.append(job)
        if ready:
            logits = self._backbone.denoise(
                torch.stack([_there(job.canvas.tokens) for job in ready]),
                [None if job.canvas.last is None else job.canvas.last.condition for job in ready],
                [job.encoded for job in ready],
            )
        rows = encoded + len(ready) * self._rules.canvas
        self.report(StepReport(len(jobs), rows, encoded))
        if not ready:
            return
        for job, told in zip(ready, logits, strict=True):
            with alone(job.handle):
                self._advance(job, told)
        ready = [job for job in ready if not job.handle.done]
        if ready:
            # The one thing that the host waits for.
            for job, done in zip(ready, torch.stack([self._is_done(job) for job in ready]).tolist(), strict=True):
                with alone(job.handle):
                    self._go_on(job, done=done)

    def _encode(self, job: NoiseJob[E]) -> None:
        encoded = job.encoded
        if job.prefill_rows:
            # What fails on the way leaves some layers longer than others: nobody may read them again.
            job.buffer = None
            self._backbone.encode(job.tokens[encoded.length : encoded.length + job.prefill_rows], encoded)
            job.buffer = encoded
            job.prefill_rows = 0
            job.forwards += job.prefilled is not None
        if job.prefilled is None and not job.prefill_left:
            job.prefilled = self.clock()

    def _open(self, job: NoiseJob[E]) -> None:
        """Begin a canvas, where the last one is done."""
        if job.canvas.tokens is None:
            tokens = _noise(self._rules.canvas, self.config.vocab_size, _there(job.generator))
            job.canvas = NoiseCanvas(_with(tokens, self._held(job)))

    def _held(self, job: NoiseJob[E]) -> dict[int, int]:
        """The tokens of the current canvas that stay, by its positions."""
        return job.frozen(self._rules.canvas) | job.canvas.settled

    def _advance(self, job: NoiseJob[E], logits: Tensor) -> None:
        """Take `job` one step on, with what the model said of its canvas: [L, V]."""
        canvas, rules, sampling, most = job.canvas, self._rules, job.request.sampling, job.request.max_steps
        job.steps += 1
        job.forwards += 1
        left = torch.tensor(most - canvas.steps, dtype=torch.int32)
        warmth = rules.coldest + (rules.hottest - rules.coldest) * (left / most)
        if sampling.temperature > 0:
            warmth = warmth * sampling.temperature
        canvas.steps += 1
        logits = self._shaped(job, logits)
        taken = denoising_step(_there(canvas.tokens), logits, warmth, sampling, job.policy, _there(job.generator))
        if canvas.last is None or canvas.unchanged is None:
            canvas.unchanged = torch.zeros((), dtype=torch.int64, device=logits.device)
        else:
            canvas.unchanged = torch.where((taken.best != canvas.last.best).any(), 0, canvas.unchanged + 1)
        canvas.raw, canvas.warmth = logits, warmth
        canvas.last = replace(taken, condition=taken.condition.to(self._backbone.dtype))
        canvas.tokens = _with(taken.canvas, self._held(job))

    def _shaped(self, job: NoiseJob[E], logits: Tensor) -> Tensor:
        """Penalties, ends that come too early and frozen tokens, in logits [L, V]."""
        counts = job.counts(1, logits.shape[-1], logits.device)
        if counts is not None:
            logits = penalise(logits, job.request.sampling, counts)
        banned = [column for column in range(self._rules.canvas) if job.bans_end(column)]
        for end in job.ends if banned else ():
            logits[banned, end] = -torch.inf
        for column, token in self._held(job).items():
            told = logits[column, token].clone()
            logits[column] = -torch.inf
            logits[column, token] = told.nan_to_num(neginf=0.0)
        return logits

    def _is_done(self, job: NoiseJob[E]) -> Tensor:
        """Whether the canvas is stable and sure: a scalar, bool."""
        last = _there(job.canvas.last)
        return (_there(job.canvas.unchanged) >= self._rules.stable) & (last.entropy.mean() < self._rules.sure)

    def _go_on(self, job: NoiseJob[E], *, done: bool) -> None:
        """Behind a step: a canvas that is done goes into the answer, which may end by it."""
        canvas, last = job.canvas, job.canvas.steps >= job.request.max_steps
        settled = done or last
        if job.walk is not None:
            settled = self._settle(job, job.walk, done=done, last=last)
        if job.request.record_canvases and canvas.last is not None:
            ids, sure = canvas.last.best.tolist(), canvas.last.accepted.tolist()
            if job.walk is not None:
                sure = [column < len(canvas.settled) for column in range(len(ids))]
            end = next((column for column, token in enumerate(ids) if token in job.ends), len(ids))
            shown = min(end, job.room)
            job.show(ids[:shown], sure[:shown])
        if settled:
            self._take_canvas(job, self._rules.canvas)
            reason = job.over()
            if reason is not None:
                self.finish(job, reason)
        canvas.raw = None

    def _settle(self, job: NoiseJob[E], walk: Walk, *, done: bool, last: bool) -> bool:
        """Move the front of a canvas within a constraint behind a step, and tell whether the canvas is settled.

        What stands before the front is held in the steps to come. Where the likeliest token is refused, one of those
        that are allowed takes its place, and what stands behind it is denoised anew.

        Args:
            job: its canvas gets the settled tokens.
            walk: stands behind the front.
            done: the canvas is stable and sure, as far as the model is concerned.
            last: there is no further step: the canvas is settled whatever it says.
        """
        canvas, raw, frozen = job.canvas, _there(job.canvas.raw), job.frozen(self._rules.canvas)
        best, accepted = _there(canvas.last).best, _there(canvas.last).accepted.tolist()
        proposed = best.tolist()
        while len(canvas.settled) < len(proposed):
            column = len(canvas.settled)
            token = frozen.get(column)
            if token is None:
                token = only_token(job, walk, column, raw.shape[-1])
            if token is None:
                if not (accepted[column] or done or last):
                    return False
                token = proposed[column]
            taken = accepts(job, walk, token)
            if not taken:
                token = draw_allowed(job, walk, column, raw[column])
            canvas.settled[column] = token
            best[column] = _there(canvas.tokens)[column] = token
            if token in job.ends:
                return True
            if not taken and not last:
                done, accepted[column + 1 :] = False, [False] * (len(accepted) - column - 1)
        return True

    def _take_canvas(self, job: NoiseJob[E], length: int) -> None:
        """Move what the first `length` positions of the canvas say into the answer, as far as it has room."""
        canvas, last = job.canvas, _there(job.canvas.last)
        # Between two steps nothing of this size is kept but what the next one is told.
        warm = last.condition.float() * _there(canvas.warmth).to(last.best.device)
        raw, best = (warm if canvas.raw is None else canvas.raw)[:length], last.best[:length]
        log_probs = raw.log_softmax(dim=-1).gather(-1, best[:, None])[:, 0].clamp(min=LOWEST)
        numbers = (log_probs.tolist(), _entropies(raw).tolist())
        found = [Prediction(*row) for row in zip(best.tolist(), *numbers, strict=True)]
        job.extend(found)
        job.canvas = NoiseCanvas()
        job.prefill_target = len(job.tokens)


def _with(tokens: Tensor, held: dict[int, int]) -> Tensor:
    for column, token in held.items():
        tokens[column] = token
    return tokens


def _there(value: T | None) -> T:
    if value is None:
        raise RuntimeError("the canvas has not begun")
    return value
