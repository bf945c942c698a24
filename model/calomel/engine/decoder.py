"""What the three decoders have in common: a request while it is served, its canvas, and what a decoder does in a step.

A request's life: the engine asks the decoder for a `Job`, admits it, and calls `begin`. Every `step` forwards the rows
of all picked jobs at once: context that is still to be encoded, or a canvas that is denoised. A job that is done
settles its handle; behind the step the engine calls `end`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from operator import add, sub
from typing import Generic, TypedDict, TypeVar, Unpack

import torch

from calomel.engine.attention import Piece, attention_multiplications, forward
from calomel.engine.cache import Encoded, KeyValueBuffer, Lease
from calomel.engine.compiled import CompiledLayers
from calomel.engine.config import DiffusionConfig, Shape
from calomel.engine.errors import EngineError, InvalidRequestError, RequestFailedError
from calomel.engine.flash import flash_varlen
from calomel.engine.handle import Handle
from calomel.engine.request import CanvasState, FinishReason, Request, Result, Walk
from calomel.engine.sampling import Counts, count_tokens
from calomel.engine.transformer import Transformer

Clock = Callable[[], float]
"""Seconds, from any beginning."""

P = TypeVar("P")
C = TypeVar("C")
B = TypeVar("B", bound=Encoded)

# Multiplications of a forward from which on several threads are faster than one: with passive waiting a thread is woken
# for every operation. Steps of a model of 6M parameters, on one thread and on two: 24 rows behind 2K tokens, 0.2
# billion, 20 and 27 ms; 35 rows behind 8K tokens, 0.6 billion, 50 and 45 ms.
_PARALLEL_WORK = 500_000_000


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a decoder says of one position: a token, its log-probability, and the entropy of its distribution."""

    token: int
    log_prob: float
    entropy: float


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one forward was for: `requests` took part with `rows` rows, `prefill_rows` of them context.

    It took `seconds`; where the device works on by itself, only as long as it was told what to do.
    """

    requests: int
    rows: int
    prefill_rows: int
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Work:
    """Counts since an engine began; the difference of two of them is what was done in between.

    Attributes:
        forwards: of the model.
        steps: of them, those that did more than encode context: denoised, verified or judged.
        rows: of all forwards.
    """

    forwards: int = 0
    steps: int = 0
    rows: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: Work) -> Work:
        return Work(*map(sub, astuple(self), astuple(other)))


@dataclass(slots=True)
class Canvas:
    """Positions of which some hold the mask token, on the host; position i of every list is position i of the canvas.

    Attributes:
        mask_token_id: stands where nothing is known.
        ids: token ids.
        frozen: whether a token stands there from outside, to stay.
        log_probs: of the tokens when they were revealed; `entropies` likewise.
    """

    mask_token_id: int
    ids: list[int] = field(default_factory=list)
    frozen: list[bool] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    def fill(self, length: int, frozen: Mapping[int, int]) -> None:
        """Begin with `length` positions of which only `frozen`, position to token id, are known."""
        self.insert(0, length)
        for column, token in frozen.items():
            self.ids[column], self.frozen[column] = token, True

    @property
    def revealed(self) -> list[bool]:
        """Per position, whether it is known."""
        return [token != self.mask_token_id for token in self.ids]

    def masked(self, start: int = 0, stop: int | None = None) -> list[int]:
        """The positions from `start` to `stop` that are not known."""
        end = len(self.ids) if stop is None else min(stop, len(self.ids))
        return [column for column in range(start, end) if self.ids[column] == self.mask_token_id]

    def prefix(self) -> int:
        """So many leading positions are known."""
        return next(iter(self.masked()), len(self.ids))

    def take(self, column: int, found: Prediction) -> None:
        """`found` stands at `column` now."""
        self.ids[column], self.log_probs[column], self.entropies[column] = found.token, found.log_prob, found.entropy

    def settle(self, column: int, found: Prediction) -> None:
        """`found` stands at `column` now, to stay."""
        self.take(column, found)
        self.frozen[column] = True

    def hide(self, start: int, stop: int) -> None:
        """Mask the positions from `start` to `stop` again, but for the frozen ones."""
        for column in range(start, stop):
            if not self.frozen[column]:
                self.ids[column] = self.mask_token_id

    def insert(self, column: int, count: int) -> None:
        """Put `count` masks before `column`."""
        self.ids[column:column] = [self.mask_token_id] * count
        self.frozen[column:column] = [False] * count
        self.log_probs[column:column] = [0.0] * count
        self.entropies[column:column] = [0.0] * count

    def drop(self, start: int, stop: int | None = None) -> None:
        """Take the positions from `start` to `stop` out."""
        for values in (self.ids, self.frozen, self.log_probs, self.entropies):
            del values[start:stop]


@dataclass(slots=True, eq=False)
class Job(Generic[P, C, B]):
    """The mutable state of one request.

    Attributes:
        request: what was asked; `policy` is its policy, read.
        handle: who waits.
        diffusion: how the checkpoint denoises.
        policy: what the decoder made of the request's.
        canvas: the current one, of the decoder's own kind.
        ends: each of these tokens ends the answer.
        tokens: context and answer so far.
        buffer: what is encoded of them, from `begin` to `end`; `lease` is the prefix cache's part of it.
        walk: where in the request's constraint the answer is, with the settled part of the canvas; None without one.
        front: so many leading positions of the canvas are settled, where a constraint has the last word on it.
        prefill_target: so many tokens are encoded before the next step, in chunks of `prefill_rows`.
        canvas_length: of the first canvas, as asked for or as the length probe chose.
        began: when the first work was done on it; `prefilled` when its context was encoded.
    """

    request: Request
    handle: Handle
    diffusion: DiffusionConfig
    policy: P
    canvas: C
    ends: tuple[int, ...]
    tokens: list[int] = field(init=False)
    walk: Walk | None = field(init=False)
    buffer: B | None = None
    lease: Lease | None = None
    generator: torch.Generator | None = None
    front: int = 0
    prefill_rows: int = 0
    prefill_target: int = 0
    log_probs: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    end_log_prob: float | None = None
    steps: int = 0
    forwards: int = 0
    cached_tokens: int = 0
    canvas_length: int = 0
    length_scores: tuple[tuple[int, float], ...] = ()
    began: float = 0.0
    prefilled: float | None = None

    def __post_init__(self) -> None:
        self.tokens = list(self.request.context)
        self.walk = None if self.request.constraint is None else self.request.constraint.begin()

    @property
    def encoded(self) -> B:
        """The buffer; there is one from `begin` until the job ends."""
        if self.buffer is None:
            raise RuntimeError("the job has not begun")
        return self.buffer

    @property
    def prefill_left(self) -> int:
        """So many tokens are still to be encoded before the next step."""
        return 0 if self.buffer is None else max(0, self.prefill_target - self.buffer.length)

    @property
    def offset(self) -> int:
        """How many tokens of the answer are final."""
        return len(self.tokens) - len(self.request.context)

    @property
    def answer(self) -> list[int]:
        """The tokens of the answer that are final."""
        return self.tokens[len(self.request.context) :]

    @property
    def room(self) -> int:
        """How many tokens the answer may still get."""
        given = self.request.given
        return (self.request.max_new_tokens if given is None else len(given)) - self.offset

    def frozen(self, length: int) -> dict[int, int]:
        """The frozen tokens of a canvas of `length` behind the final tokens, by its positions."""
        places = ((place - self.offset, token) for place, token in self.request.frozen.items())
        return {place: token for place, token in places if 0 <= place < length}

    def frozen_behind(self, column: int) -> bool:
        """Whether a token is frozen behind `column` positions behind the final tokens."""
        return any(place > self.offset + column for place in self.request.frozen)

    def bans_end(self, column: int) -> bool:
        """Whether the answer can not end at `column` positions behind the final tokens: more has to come."""
        return self.offset + column < self.request.min_new_tokens or self.frozen_behind(column)

    def counts(
        self, rows: int, vocab: int, device: torch.device, known: Sequence[int] = (), following: Sequence[int] = ()
    ) -> Counts | None:
        """What the penalties of `rows` rows look at, behind the answer and `known`; None where there are none.

        Row i comes behind the first i tokens of `following` too.
        """
        if not (rows and self.request.sampling.penalised):
            return None
        context = (*self.request.context, *self.request.suffix)
        return count_tokens(context, [*self.answer, *known], following, rows, vocab, device)

    def extend(self, found: Sequence[Prediction]) -> None:
        """Append final tokens to the answer; an end token ends it, and what is beyond `room` is dropped."""
        for each in found:
            if each.token in self.ends:
                self.end_log_prob = each.log_prob
                return
            if not self.room:
                return
            self.tokens.append(each.token)
            self.log_probs.append(each.log_prob)
            self.entropies.append(each.entropy)

    def extend_by(self, canvas: Canvas, length: int) -> None:
        """Append the first `length` positions of `canvas`, which is empty then."""
        rows = zip(canvas.ids[:length], canvas.log_probs, canvas.entropies, strict=False)
        self.extend([Prediction(*row) for row in rows])
        canvas.drop(0)

    def over(self) -> FinishReason | None:
        """Why the answer ends here; None where it goes on."""
        if self.end_log_prob is not None:
            return "stop"
        if not self.room:
            return "length"
        until = self.request.until
        return "stop" if until is not None and until(self.answer) else None

    def show(self, ids: Sequence[int] = (), revealed: Sequence[bool] = ()) -> None:
        """Record the answer and a canvas as they are, where that is asked for."""
        if self.request.record_canvases:
            answer = self.answer
            self.handle.push(CanvasState(self.forwards, (*answer, *ids), (True,) * len(answer) + tuple(revealed)))

    def finish(self, reason: FinishReason, now: float) -> None:
        """Settle the handle with the answer."""
        prefilled = self.began if self.prefilled is None else self.prefilled
        result = Result(
            ids=tuple(self.answer),
            log_probs=tuple(self.log_probs),
            entropies=tuple(self.entropies),
            end_log_prob=self.end_log_prob,
            finish_reason=reason,
            steps=self.steps,
            forwards=self.forwards,
            cached_tokens=self.cached_tokens,
            computed_tokens=len(self.request.context) + len(self.request.suffix) - self.cached_tokens,
            canvas_length=self.canvas_length,
            length_scores=self.length_scores,
            prefill_seconds=prefilled - self.began,
            denoise_seconds=now - prefilled,
        )
        self.handle.settle(result)


@contextmanager
def alone(handle: Handle) -> Iterator[None]:
    """End the request of `handle`, and it alone, by what is raised within."""
    try:
        yield
    except EngineError as error:
        handle.settle(error)
    except Exception as error:  # noqa: BLE001  (whatever it is, the other requests go on)
        failure = RequestFailedError(f"serving the request failed: {error!r}")
        failure.__cause__ = error
        handle.settle(failure)


def generator(device: torch.device, seed: int | None) -> torch.Generator:
    """Random numbers of one request; fresh ones without a seed."""
    made = torch.Generator(device)
    if seed is None:
        made.seed()
    else:
        made.manual_seed(seed)
    return made


class Common(TypedDict, total=False):
    """What every decoder is told.

    Attributes:
        prefill_chunk: context tokens encoded per step at most; so long does a cancellation wait.
        threads: of a large CPU forward; None for PyTorch's own choice. A small one runs on one thread.
        clock: seconds that deadlines are compared with.
        observe: called behind every forward.
    """

    prefill_chunk: int
    threads: int | None
    clock: Clock
    observe: Callable[[StepReport], None] | None


class Decoder(ABC, Generic[P, C, B]):
    """Takes jobs on, step by step. Everything but `job` is called on the engine's thread alone.

    Args:
        config: what is asked of the model before a request is queued.
        device: where it runs.
        parameters: tensors of the weights.
        prefill_unit: chunks are multiples of it, and one is encoded per step at least.
        prefill_chunk: see `Common`; `threads`, `clock` and `observe` likewise.

    Attributes:
        work: what was done so far; may be read from any thread.
    """

    def __init__(
        self,
        config: Shape,
        device: torch.device,
        parameters: Sequence[torch.Tensor],
        *,
        prefill_unit: int = 1,
        prefill_chunk: int = 512,
        threads: int | None = None,
        clock: Clock = time.monotonic,
        observe: Callable[[StepReport], None] | None = None,
    ) -> None:
        for name, value in (("prefill_chunk", prefill_chunk), ("threads", threads)):
            if value is not None and value < 1:
                raise InvalidRequestError(f"{name} is {value}; it must be at least 1")
        self.config = config
        self.device = device
        self.prefill_chunk = prefill_chunk
        self.prefill_unit = prefill_unit
        self.clock = clock
        self.work = Work()
        self._weights = sum(parameter.numel() for parameter in parameters)
        self._threads = threads or torch.get_num_threads()
        self._observe = observe

    @property
    def diffusion(self) -> DiffusionConfig:
        """How the checkpoint denoises."""
        return self.config.diffusion

    @abstractmethod
    def job(self, request: Request, handle: Handle) -> Job[P, C, B]:
        """A checked request, not begun; called in the caller's thread. Raises InvalidRequestError."""

    @abstractmethod
    def begin(self, job: Job[P, C, B]) -> None:
        """Give `job` what it needs to be served."""

    @abstractmethod
    def step(self, jobs: Sequence[Job[P, C, B]]) -> None:
        """Take every job one step on; what fails in one of them ends that one alone (see `alone`)."""

    @abstractmethod
    def take_known(self, job: Job[P, C, B]) -> None:
        """The deadline of `job` has passed: what its canvas knows without a gap is part of the answer."""

    @abstractmethod
    def end(self, job: Job[P, C, B]) -> None:
        """Take back what `begin` gave; safe for a job that has not begun."""

    def fits(self, job: Job[P, C, B]) -> bool:  # noqa: ARG002  (the number of jobs is bounded as it is)
        """Whether there is memory for `job` beside those that have begun."""
        return True

    def finish(self, job: Job[P, C, B], reason: FinishReason) -> None:
        """Settle the handle with the answer."""
        job.finish(reason, self.clock())

    def report(self, report: StepReport) -> None:
        """Count a forward."""
        self.work += Work(1, int(report.rows > report.prefill_rows), report.rows)
        if self._observe is not None:
            self._observe(report)

    def use_threads(self, rows: int, attention: int = 0) -> None:
        """Choose the threads of a forward of `rows` rows, whose attention takes so many multiplications."""
        work = rows * self._weights + attention
        torch.set_num_threads(self._threads if work >= _PARALLEL_WORK else 1)


class TransformerDecoder(Decoder[P, C, KeyValueBuffer]):
    """One on our own network: the rows of all jobs are pieces of one flat forward.

    Args:
        model: the network, on its device.
        prefill_unit: see `Decoder`.
        common: see `Common`.
    """

    def __init__(self, model: Transformer, prefill_unit: int = 1, **common: Unpack[Common]) -> None:
        weight = model.embed_tokens.weight
        super().__init__(model.config, weight.device, list(model.parameters()), prefill_unit=prefill_unit, **common)
        self.model = model.eval()
        if weight.is_cuda and model.compiled is None:
            model.compiled = CompiledLayers()
        self._flash = flash_varlen() if weight.dtype in (torch.float16, torch.bfloat16) else None

    def new_buffer(self, capacity: int) -> KeyValueBuffer:
        """Room for the keys and values of `capacity` tokens."""
        weight = self.model.embed_tokens.weight
        return KeyValueBuffer(self.model.config, capacity, dtype=weight.dtype, device=weight.device)

    def forward(self, pieces: Sequence[Piece], requests: int, encoded: int = 0) -> torch.Tensor:
        """The logits of `pieces`, see `attention.forward`; `encoded` of their rows are context."""
        rows = sum(len(piece.ids) for piece in pieces)
        self.use_threads(rows, attention_multiplications(self.model.config, pieces))
        began = time.perf_counter()
        logits = forward(self.model, pieces, self._flash)
        self.report(StepReport(requests, rows, encoded, time.perf_counter() - began))
        return logits
