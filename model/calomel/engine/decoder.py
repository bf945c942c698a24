"""What a decoder does in a step: what both decoders have in common.

A request's life: the engine asks the decoder for a `Job`, admits it, and calls `begin`. Every `step` forwards the rows
of all picked jobs at once: context still to be encoded, or a canvas to denoise. A job that is done settles its handle;
after the step the engine calls `end`.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import astuple, dataclass
from operator import add, sub
from typing import ClassVar, Final, Generic, TypedDict, TypeVar, Unpack

import torch

from calomel.engine.attention import Piece, attention_multiplications, has_kernel
from calomel.engine.cache import PrefixCache
from calomel.engine.checkpoint import native_bfloat16
from calomel.engine.config import DiffusionConfig
from calomel.engine.errors import ContextTooLongError, InvalidRequestError, NotFiniteError
from calomel.engine.handle import Handle
from calomel.engine.job import Canvas, Job, alone, fail, generator
from calomel.engine.pages import PageTable
from calomel.engine.request import FinishReason, Priority, Request
from calomel.engine.sampling import Draw, Told, redraw
from calomel.engine.step import Step
from calomel.engine.transformer import Transformer, pack
from calomel.storage.failures import cause

LOG: Final = logging.getLogger(__name__)
Clock = Callable[[], float]
"""Seconds, from any beginning."""

P = TypeVar("P")
K = TypeVar("K", bound=Canvas)
T = TypeVar("T", bound=PageTable)

# Tokens of a chunk on a CPU, and elsewhere. 8,000 tokens of nano took 4.1 s of a core in chunks of 64, 2.7 s by 256 and
# 2.5 s by 512; the next request waits for one chunk.
_CHUNK, _CHUNK_ELSEWHERE = 256, 512
# Multiplications of a forward for each request, from which on all threads are used; below, one where bfloat16 is
# native, else two. Threads wait passively, and waking them costs more than a small forward gains: a step of nano in
# bfloat16 took 5.1 ms on one core and 5.8 on two behind 2K tokens, with 24 rows 10.7 and 11.2, behind 8K with 8 rows
# 10.0 and 11.1, one of eight requests 29 and 37. With float32, which computes longer, keystrokes took 79 to 88 and 66
# to 72 ms behind 2K tokens.
_PARALLEL_WORK, _FEW = 300_000_000, 2
# Tokens of a page: few, since the last page of a context is its own. Tokens that the cache has room for.
PAGE: Final = 64
_CACHE_TOKENS: Final = 65536


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one forward was for: `requests` took part with `rows` rows, `prefill_rows` of them context."""

    requests: int
    rows: int
    prefill_rows: int


@dataclass(frozen=True, slots=True)
class Work:
    """Counts since an engine started; the difference of two is what was done in between.

    Attributes:
        forwards: steps of the engine, each of which is one forward of a decoder on our own network.
        steps: forwards that did more than encode context: denoised, verified or judged.
        rows: of all forwards.
    """

    forwards: int = 0
    steps: int = 0
    rows: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: Work) -> Work:
        return Work(*map(sub, astuple(self), astuple(other)))


class Common(TypedDict, total=False):
    """Settings that all decoders share.

    Attributes:
        cache_tokens: tokens that the cache has room for: contexts and answers of requests that are served, which bounds
            how many are at a time, and, where contexts are read from left to right, of earlier ones.
        page_size: tokens of a page of the cache, rounded up to whole blocks.
        prefill_chunk: context tokens encoded per step at most; a cancellation waits that long.
        threads: of a large CPU forward; None for PyTorch's own choice. A small one runs on one or two.
        clock: seconds that deadlines are compared with.
        observe: called after every forward.
    """

    cache_tokens: int
    page_size: int
    prefill_chunk: int
    threads: int | None
    clock: Clock
    observe: Callable[[StepReport], None] | None


@dataclass(slots=True)
class Part(Generic[P, K, T]):
    """What a job has in a forward: `pieces`, whose read rows begin at `first`, and how they are drawn."""

    job: Job[P, K, T]
    pieces: list[Piece]
    first: int
    read: int
    draw: Draw


class Decoder(ABC, Generic[P, K, T]):
    """Serves jobs step by step: the rows of all jobs are pieces of one flat forward of our network.

    Everything but `job` is called on the engine's thread alone.

    Args:
        model: the network, on its device.
        end_token_ids: tokens that end an answer besides the configuration's end token.
        common: see `Common`.

    Attributes:
        config: what a request is checked against before it is queued.
        device: where it runs.
        weights: how many numbers they are.
        work: what was done so far; may be read from any thread.
        cache: keys and values of all requests.
        forward: computes a step.
        ends: tokens that are not drawn while an answer may not end yet.
        keeps_contexts: whether the cache keeps those of earlier requests.
    """

    keeps_contexts: ClassVar[bool] = False

    def __init__(self, model: Transformer, end_token_ids: Sequence[int] = (), **common: Unpack[Common]) -> None:
        weight = model.embed_tokens.weight
        self.config, self.device = model.config, weight.device
        usual = _CHUNK if self.device.type == "cpu" else _CHUNK_ELSEWHERE
        self.prefill_chunk, threads = common.get("prefill_chunk", usual), common.get("threads")
        cache_tokens, page = common.get("cache_tokens", _CACHE_TOKENS), common.get("page_size", PAGE)
        for name, value in (("prefill_chunk", self.prefill_chunk), ("threads", threads), ("page_size", page)):
            if value is not None and value < 1:
                raise InvalidRequestError(f"{name} is {value}; it must be at least 1")
        if cache_tokens < page:
            raise InvalidRequestError(f"cache_tokens is {cache_tokens}; it must be at least a page of {page}")
        self.clock = common.get("clock", time.monotonic)
        self.work = Work()
        self.weights = sum(parameter.numel() for parameter in model.parameters())
        self._threads = threads or torch.get_num_threads()
        self._few = min(_FEW, self._threads)
        self._observe = common.get("observe")
        self.ends: tuple[int, ...] = tuple(dict.fromkeys((self.diffusion.end_token_id, *end_token_ids)))
        self.model = model.eval()
        if weight.device.type == "cpu" and weight.dtype == torch.bfloat16 and native_bfloat16():
            pack(model)
            self._few = 1
        page += -page % self.diffusion.block
        self.cache = PrefixCache(
            model.config,
            pages=max(1, cache_tokens // page),
            page_size=page,
            dtype=weight.dtype,
            device=self.device,
            together=not has_kernel(self.device, self.config.head_dim, page),
        )
        self.forward = Step(model, self.cache.pool, self.ends)
        self._begun: set[Job[P, K, T]] = set()

    @property
    def scratch(self) -> int:
        """Tokens that a request needs room for beside context and answer."""
        return 0

    @property
    def diffusion(self) -> DiffusionConfig:
        """How the checkpoint denoises."""
        return self.config.diffusion

    @abstractmethod
    def job(self, request: Request, handle: Handle) -> Job[P, K, T]:
        """A checked request, not begun; called in the caller's thread. Raises InvalidRequestError."""

    def begin(self, job: Job[P, K, T]) -> None:
        """Give `job` what it needs to be served."""
        job.began = self.clock()
        self._begun.add(job)
        job.generator = generator(self.device, job.request.sampling.seed)

    @abstractmethod
    def take_known(self, job: Job[P, K, T]) -> None:
        """The deadline of `job` has passed: add what its canvas knows without a gap to the answer."""

    def end(self, job: Job[P, K, T]) -> None:
        """Release what `begin` gave; safe for a job that has not begun."""
        self._begun.discard(job)

    @abstractmethod
    def most(self, job: Job[P, K, T]) -> int:
        """Tokens that the pages of `job` have room for before it ends, at most."""

    def fits(self, job: Job[P, K, T]) -> bool:
        """Whether there is room for all that `job` may come to need, besides the others.

        A client with running requests, and work that nobody waits for, leave a quarter free.
        """
        others = any(other.request.client == job.request.client for other in self._begun)
        modest = self._begun and (others or job.request.priority > Priority.INTERACTIVE)
        room = self.cache.tokens * 3 // 4 if modest else self.cache.tokens
        return sum(map(self.most, self._begun)) + self.most(job) <= room

    def check_room(self, job: Job[P, K, T]) -> None:
        """Raise ContextTooLongError if `job` would not fit even alone."""
        if self.most(job) > self.cache.tokens:
            raise ContextTooLongError(
                f"context and answer may take {self.most(job)} tokens, and the cache has room for {self.cache.tokens}: "
                "shorten one of them, or raise cache-tokens"
            )

    def finish(self, job: Job[P, K, T], reason: FinishReason) -> None:
        """Settle the handle with the answer."""
        job.finish(reason, self.clock())

    def report(self, report: StepReport) -> None:
        """Count a forward."""
        self.work += Work(1, int(report.rows > report.prefill_rows), report.rows)
        if self._observe is not None:
            self._observe(report)

    @contextmanager
    def _own_threads(self, pieces: Sequence[Piece], requests: int) -> Iterator[None]:
        """Compute a forward of `pieces` with as many threads as it is worth; then others have theirs again."""
        rows, before = sum(len(piece.ids) for piece in pieces), torch.get_num_threads()
        work = rows * self.weights + attention_multiplications(self.model.config, pieces)
        torch.set_num_threads(self._threads if work >= _PARALLEL_WORK * requests else self._few)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    @abstractmethod
    def pieces(self, job: Job[P, K, T]) -> list[Piece]:
        """The rows of `job` in the next forward."""

    @abstractmethod
    def draw(self, job: Job[P, K, T], pieces: Sequence[Piece]) -> Draw:
        """How to draw the tokens of the rows that `pieces` read."""

    @abstractmethod
    def take(self, job: Job[P, K, T], told: Told) -> None:
        """Apply what the rows that its pieces read have `told` to `job`."""

    def step(self, jobs: Sequence[Job[P, K, T]]) -> None:
        """Advance every job by one step; a failure in one of them ends that one alone (see `alone`)."""
        parts = list[Part[P, K, T]]()
        read = 0
        for job in jobs:
            with alone(job.handle):
                pieces = self.pieces(job)
                mine = sum(len(piece.read) for piece in pieces)
                parts.append(Part(job, pieces, read, mine, self.draw(job, pieces)))
                read += mine
        if not parts:
            return
        try:
            self._advance(parts)
        except Exception as error:  # noqa: BLE001  (memory runs out, a kernel fails: the other requests go on)
            if len(parts) == 1:
                fail(parts[0].job.handle, error)
                return
            LOG.warning("a step of %d requests failed, and is tried again one by one: %s", len(parts), cause(error))
            for part in parts:
                part.first = 0
                with alone(part.job.handle):
                    self._advance([part])

    def _advance(self, parts: Sequence[Part[P, K, T]]) -> None:
        """One forward."""
        pieces = [piece for part in parts for piece in part.pieces]
        encoded, rows = sum(part.job.prefill_rows for part in parts), sum(len(piece.ids) for piece in pieces)
        forced = [(part.first + row, token) for part in parts for row, token in enumerate(part.draw.forced)]
        unending = [part.first + row for part in parts for row in part.draw.without_end]
        with self._own_threads(pieces, len(parts)) if self.device.type == "cpu" else nullcontext():
            found = self.forward(pieces, forced, unending)
        told = [found.part(part.first, part.first + part.read) for part in parts]
        asked = [number for number, part in enumerate(parts) if part.read and not part.draw.plain]
        if asked:
            own = [range(parts[number].first, parts[number].first + parts[number].read) for number in asked]
            logits = self.forward.logits([row for rows_of in own for row in rows_of])
            drawn = redraw(logits, [parts[number].draw for number in asked], [told[number] for number in asked])
            for number, mine in zip(asked, drawn, strict=True):
                told[number] = mine
        self.report(StepReport(len(parts), rows, encoded))
        for part, mine in zip(parts, told, strict=True):
            with alone(part.job.handle):
                if not mine.finite:
                    raise NotFiniteError("the model's predictions are not finite numbers: try dtype float32")
                self.take(part.job, mine)
        if encoded and self.device.type != "cpu":
            # Work that is only queued has no measured time, and the next request would wait for all of it.
            torch.accelerator.synchronize(self.device)

    def lay(self, job: Job[P, K, T], canvas: K, length: int) -> None:
        """Make `canvas`, an empty one, that of `job`: `length` masks after its final tokens."""
        canvas.insert(0, length)
        job.canvas, job.front = canvas, 0

    def drawn(
        self, job: Job[P, K, T], columns: Sequence[int], known: Sequence[int] = (), following: Sequence[int] = ()
    ) -> Draw:
        """Rows that predict the positions `columns`, ascending, after the final tokens; see `Job.counts`."""
        params = job.request.sampling
        return Draw(
            params,
            job.generator if params.temperature > 0 else None,
            job.counts(len(columns), known, following),
            range(bisect_left(columns, job.request.min_new_tokens - job.offset)),
            logits=job.walk is not None,
            host=True,
        )
