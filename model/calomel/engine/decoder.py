"""What a decoder does in a step: what both decoders have in common.

A request's life: the engine asks the decoder for a `Job`, admits it, and calls `begin`. Every `step` forwards the rows
of all picked jobs at once: context still to be encoded, or a canvas to denoise. A job that is done settles its handle;
after the step the engine calls `end`.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from operator import add, sub
from typing import Any, Final, Generic, TypedDict, TypeVar, Unpack

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.attention import Piece, attention_multiplications, flash_attention, forward
from calomel.engine.cache import PrefixCache
from calomel.engine.checkpoint import native_bfloat16
from calomel.engine.config import DiffusionConfig
from calomel.engine.errors import InvalidRequestError
from calomel.engine.handle import Handle
from calomel.engine.job import Canvas, Job, alone
from calomel.engine.pages import PageTable, table_of
from calomel.engine.request import FinishReason, Request
from calomel.engine.sampling import Choice, Draw, choose
from calomel.engine.transformer import Attend, Layer, Transformer, pack

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


# Rows. A canvas with the text typed before it fits into the first or second size, canvases of several requests into the
# last; a chunk of context exceeds them all, and its launches cost little beside its arithmetic.
SIZES: Final = (32, 96, 256)


class CompiledLayers:
    """Steps of few rows on a GPU: the part of layers beside attention, compiled and recorded once per number of rows.

    A denoising step launches hundreds of kernels that take less time than their launches. `torch.compile` fuses them,
    and its mode `reduce-overhead` replays recordings (CUDA graphs). A recording has one shape: rows are padded to the
    next of a few sizes, which changes no row, since everything compiled works row by row. Attention is not compiled, as
    it reads a different number of keys in each step. A failure is logged once; from then on nothing is taken.

    On a CPU there is no launch to save (docs/decisions/011).

    Args:
        backend: of `torch.compile`.
    """

    def __init__(self, backend: str | Callable[..., Any] = "inductor") -> None:
        options: dict[str, Any] = {"mode": "reduce-overhead"} if backend == "inductor" else {}
        self._before = torch.compile(_before, backend=backend, fullgraph=True, dynamic=False, **options)
        self._after = torch.compile(_after, backend=backend, fullgraph=True, dynamic=False, **options)
        self._failed = False

    def __call__(self, layers: Iterable[Layer], x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor | None:
        """X [T, C], cos and sin [T, 1, R] to [T, C]; None if there are too many rows, or compiled layers fail."""
        size = next((size for size in SIZES if size >= len(x)), None)
        if size is not None and not self._failed:
            try:
                return self._padded(layers, x, cos, sin, attend, size)
            except Exception as error:  # noqa: BLE001  (a compiler fails in many ways, none of them fatal)
                self._failed = True
                LOG.warning("compiled steps failed; continuing without compiling: %r", error)
        return None

    def _padded(
        self, layers: Iterable[Layer], x: Tensor, cos: Tensor, sin: Tensor, attend: Attend, size: int
    ) -> Tensor:
        rows = len(x)
        x, cos, sin = (_pad(part, size) for part in (x, cos, sin))
        # Allow the outputs of the last step in recorded memory to be overwritten.
        torch.compiler.cudagraph_mark_step_begin()
        for layer in layers:
            q, k, v = self._before(layer, x, cos, sin)
            x = self._after(layer, x, _pad(attend(layer.number, q[:rows], k[:rows], v[:rows]), size))
        return x[:rows]


def _before(layer: Layer, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return layer.before(x, cos, sin)


def _after(layer: Layer, x: Tensor, attended: Tensor) -> Tensor:
    return layer.after(x, attended)


def _pad(part: Tensor, size: int) -> Tensor:
    """Append rows of zeros to `part`, up to `size`."""
    return F.pad(part, (0, 0) * (part.dim() - 1) + (0, size - len(part)))


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
        prefill_chunk: context tokens encoded per step at most; a cancellation waits that long.
        threads: of a large CPU forward; None for PyTorch's own choice. A small one runs on one or two.
        clock: seconds that deadlines are compared with.
        observe: called after every forward.
    """

    prefill_chunk: int
    threads: int | None
    clock: Clock
    observe: Callable[[StepReport], None] | None


class Decoder(ABC, Generic[P, K, T]):
    """Serves jobs step by step: the rows of all jobs are pieces of one flat forward of our network.

    Everything but `job` is called on the engine's thread alone.

    Args:
        model: the network, on its device.
        common: see `Common`.

    Attributes:
        config: what a request is checked against before it is queued.
        device: where it runs.
        weights: how many numbers they are.
        work: what was done so far; may be read from any thread.
        cache: the encoded contexts that are kept, if they are.
        ends: tokens that are not drawn while an answer may not end yet.
    """

    cache: PrefixCache | None = None

    def __init__(self, model: Transformer, **common: Unpack[Common]) -> None:
        weight = model.embed_tokens.weight
        self.config, self.device = model.config, weight.device
        usual = _CHUNK if self.device.type == "cpu" else _CHUNK_ELSEWHERE
        self.prefill_chunk, threads = common.get("prefill_chunk", usual), common.get("threads")
        for name, value in (("prefill_chunk", self.prefill_chunk), ("threads", threads)):
            if value is not None and value < 1:
                raise InvalidRequestError(f"{name} is {value}; it must be at least 1")
        self.clock = common.get("clock", time.monotonic)
        self.work = Work()
        self.weights = sum(parameter.numel() for parameter in model.parameters())
        self._threads = threads or torch.get_num_threads()
        self._few = min(_FEW, self._threads)
        self._observe = common.get("observe")
        self.ends: tuple[int, ...] = (self.diffusion.end_token_id,)
        self.model = model.eval()
        if weight.is_cuda and model.compiled is None:
            model.compiled = CompiledLayers()
        if weight.device.type == "cpu" and weight.dtype == torch.bfloat16 and native_bfloat16():
            pack(model)
            self._few = 1
        self._flash = flash_attention(self.device) if weight.dtype in (torch.float16, torch.bfloat16) else None

    @property
    def diffusion(self) -> DiffusionConfig:
        """How the checkpoint denoises."""
        return self.config.diffusion

    @abstractmethod
    def job(self, request: Request, handle: Handle) -> Job[P, K, T]:
        """A checked request, not begun; called in the caller's thread. Raises InvalidRequestError."""

    @abstractmethod
    def begin(self, job: Job[P, K, T]) -> None:
        """Give `job` what it needs to be served."""

    @abstractmethod
    def take_known(self, job: Job[P, K, T]) -> None:
        """The deadline of `job` has passed: add what its canvas knows without a gap to the answer."""

    @abstractmethod
    def end(self, job: Job[P, K, T]) -> None:
        """Release what `begin` gave; safe for a job that has not begun."""

    def fits(self, job: Job[P, K, T]) -> bool:  # noqa: ARG002  (the number of jobs is bounded anyway)
        """Whether there is memory for `job` besides those that have begun."""
        return True

    def finish(self, job: Job[P, K, T], reason: FinishReason) -> None:
        """Settle the handle with the answer."""
        job.finish(reason, self.clock())

    def report(self, report: StepReport) -> None:
        """Count a forward."""
        self.work += Work(1, int(report.rows > report.prefill_rows), report.rows)
        if self._observe is not None:
            self._observe(report)

    def use_threads(self, rows: int, attention: int = 0, requests: int = 1) -> None:
        """Choose the threads of a forward of `rows` rows, whose attention takes `attention` multiplications."""
        work = (rows * self.weights + attention) // requests
        torch.set_num_threads(self._threads if work >= _PARALLEL_WORK else self._few)

    @abstractmethod
    def pieces(self, job: Job[P, K, T]) -> list[Piece]:
        """The rows of `job` in the next forward."""

    @abstractmethod
    def draws(self, job: Job[P, K, T], pieces: Sequence[Piece], first: int) -> list[Draw]:
        """How to draw the tokens of the rows that `pieces` read, from row `first` of the forward on."""

    @abstractmethod
    def take(self, job: Job[P, K, T], pieces: Sequence[Piece], choice: Choice, first: int) -> None:
        """Apply a forward's results to `job`, whose rows begin at row `first` of `choice`."""

    def step(self, jobs: Sequence[Job[P, K, T]]) -> None:
        """Advance every job by one step; a failure in one of them ends that one alone (see `alone`)."""
        pieces: list[Piece] = []
        draws: list[Draw] = []
        taking: list[tuple[Job[P, K, T], list[Piece], int]] = []
        read = 0
        for job in jobs:
            with alone(job.handle):
                mine = self.pieces(job)
                draws += self.draws(job, mine, read)
                taking.append((job, mine, read))
                pieces += mine
                read += sum(len(piece.read) for piece in mine)
        if not pieces:
            return
        encoded, rows = sum(job.prefill_rows for job, *_ in taking), sum(len(piece.ids) for piece in pieces)
        self.use_threads(rows, attention_multiplications(self.model.config, pieces), len(taking))
        logits = forward(self.model, pieces, self._flash)
        self.report(StepReport(len(taking), rows, encoded))
        choice = choose(logits, draws, mask_token_id=self.diffusion.mask_token_id, end_token_ids=self.ends)
        for job, mine, first in taking:
            with alone(job.handle):
                self.take(job, mine, choice, first)
        if encoded and self.device.type != "cpu":
            # Work that is only queued has no measured time, and the next request would wait for all of it.
            torch.accelerator.synchronize(self.device)

    def lay(self, job: Job[P, K, T], canvas: K, length: int) -> None:
        """Make `canvas`, an empty one, that of `job`: `length` masks after its final tokens."""
        canvas.insert(0, length)
        job.canvas, job.front = canvas, 0

    def draw(
        self,
        job: Job[P, K, T],
        start: int,
        columns: Sequence[int],
        known: Sequence[int] = (),
        following: Sequence[int] = (),
    ) -> Draw:
        """Rows from `start` on predict the positions `columns` after the final tokens; see `Job.counts`."""
        counts = job.counts(len(columns), self.config.vocab_size, self.device, known, following)
        without_end = [row for row, column in enumerate(columns) if job.bans_end(column)]
        return Draw(start, start + len(columns), job.request.sampling, job.generator, counts, without_end)

    def new_table(self, tokens: int) -> PageTable:
        """Room for the keys and values of `tokens` tokens, outside of a cache."""
        weight = self.model.embed_tokens.weight
        return table_of(self.model.config, tokens, dtype=weight.dtype, device=weight.device)
