"""The host's side of steps on the device: whose canvases they take on, how many at a time, and what became of them.

A request is served here from one step to the next: what is not done on the device (see `Resident.takes`) is done by the
`Denoiser`, on the same board and in the same buffer, and the next step of the same request may be done here again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from calomel.engine.alone import alone
from calomel.engine.canvas import Board, Snapshot
from calomel.engine.job import Job
from calomel.engine.progress import Progress
from calomel.engine.resident.arena import Arena, ArenaBuffer
from calomel.engine.resident.attention import ArenaAttention, Attending
from calomel.engine.resident.graphs import Capture, Graphs
from calomel.engine.resident.shape import CANVASES, CAUSAL, ROWS, StepShape, bucket, most_keys, reach
from calomel.engine.resident.state import Row, State
from calomel.engine.resident.step import Stepper
from calomel.engine.reveal import EntropyBound, EntropyWithin, Factor, Fixed, Prefix, RevealPolicy, Threshold
from calomel.engine.transformer import Transformer

_POLICIES = (Threshold, Prefix, Factor, EntropyBound, EntropyWithin, Fixed)
_Group: TypeAlias = tuple[RevealPolicy, bool]


class Resident:
    """Takes canvases on by several steps, of which the host sees the last.

    Args:
        model: the decoder.
        board: of the engine; its last row is no request's.
        arena: where the requests' keys and values are.
        progress: takes over what was done.
        look: the host looks every so many steps.
        capture: how steps are recorded, see `Graphs`.
        attending: how they attend; by gathering keys, unless there is a kernel that reads them where they are.
    """

    def __init__(  # noqa: PLR0913  (its parts, each made elsewhere)
        self,
        model: Transformer,
        board: Board,
        arena: Arena,
        progress: Progress,
        *,
        look: int,
        capture: Capture | None = None,
        attending: Attending = ArenaAttention,
        told_lengths: bool = False,
        observe: Callable[[int, int], None] | None = None,
    ) -> None:
        self.arena = arena
        self._config = model.config
        self._stepper = Stepper(model, board, arena, attending)
        self._board = board
        self._progress = progress
        self._look = look
        self._graphs = Graphs(capture)
        self._told_lengths = told_lengths
        self._observe = observe
        self._states: dict[int, State] = {}

    def takes(self, job: Job) -> bool:
        """Whether the next step of `job` is one that can be done here; `job` has a canvas."""
        buffer, request = job.buffer, job.request
        if job.prefill_rows or job.draft is not None or job.opening or len(job.candidates) != 1 or not job.masked_first:
            return False
        if (
            job.diffusion.block > 1
            or job.overlaps
            or request.constraint is not None
            or request.sampling.temperature > 0
        ):
            return False
        if request.sampling.penalised or job.policy.verified or not isinstance(job.policy.reveal, _POLICIES):
            return False
        if len(job.uncommitted) > CAUSAL[-1] or not isinstance(buffer, ArenaBuffer):
            return False
        buffer.reserve(len(job.tokens) + job.length)
        return buffer.start is not None

    def run(self, jobs: Sequence[Job]) -> None:
        """Take `jobs` on until the next look; those of one policy side by side."""
        for (policy, watched), group in self._groups(jobs).items():
            for first in range(0, len(group), CANVASES[-1]):
                self._run(policy, group[first : first + CANVASES[-1]], 1 if watched else self._look)

    def _groups(self, jobs: Sequence[Job]) -> dict[_Group, list[Job]]:
        groups: dict[_Group, list[Job]] = {}
        for job in jobs:
            # Somebody wants to know of every step.
            watched = job.request.record_canvases or job.request.until is not None
            groups.setdefault((job.reveal, watched), []).append(job)
        return groups

    def _run(self, policy: RevealPolicy, jobs: Sequence[Job], look: int) -> None:
        state = self._state(len(jobs))
        steps = min(look, max(job.request.max_steps - job.canvas_steps for job in jobs))
        shapes = list(self._shapes(state, jobs, steps))
        calls = {
            shape: self._graphs.prepared(
                (shape, policy),
                partial(self._stepper.step, state, shape, policy),
                partial(state.load, ()),
            )
            for shape in dict.fromkeys(shapes)
        }
        state.load([self._row(job) for job in jobs])
        for shape in shapes:
            calls[shape]()
            if self._observe is not None:
                self._observe(len(jobs), shape.canvases * shape.width)
        looks = state.report(self._board.ids, self._board.revealed)
        for job, look_at in zip(jobs, looks, strict=False):
            with alone(job):
                snapshot = Snapshot(look_at.ids, look_at.revealed, look_at.revised)
                self._progress.looked(job, snapshot, look_at.taken, look_at.length)

    def _state(self, jobs: int) -> State:
        canvases = bucket(jobs, CANVASES) or CANVASES[-1]
        if canvases not in self._states:
            head = int(self._config.diffusion.logit_shift)
            idle = self._board.ids.shape[0] - 1
            self._states[canvases] = State(canvases, head=head, idle=idle, device=self._board.device)
        return self._states[canvases]

    def _shapes(self, state: State, jobs: Sequence[Job], steps: int) -> Iterator[StepShape]:
        """The shapes of `steps` steps: the first one reads what is uncommitted, too."""
        head = int(self._config.diffusion.logit_shift)
        longest = max(job.length for job in jobs) + head
        rows = bucket(longest, ROWS) or longest
        causal = bucket(max(len(job.uncommitted) for job in jobs), CAUSAL) or 0
        tokens = max(len(job.tokens) + job.length for job in jobs)
        seen = None if self._told_lengths else reach(tokens, most_keys(self._config))
        canvases = state.numbers.shape[0]
        yield StepShape(canvases, rows, causal, seen)
        for _ in range(steps - 1):
            yield StepShape(canvases, rows, 0, seen)

    def _row(self, job: Job) -> Row:
        buffer, request = job.buffer, job.request
        if not isinstance(buffer, ArenaBuffer) or buffer.start is None:
            raise RuntimeError("the job's buffer is not in the arena")
        job.canvas_length = job.canvas_length or job.length
        ends_from = max(request.min_new_tokens, max(request.frozen, default=-1)) - (
            len(job.tokens) - len(request.context)
        )
        return Row(
            start=buffer.start,
            context=buffer.length,
            known=[*job.uncommitted, *job.head],
            slot=job.slot,
            length=job.length,
            ends_from=ends_from,
            revise=request.revise,
            steps=request.max_steps - job.canvas_steps,
        )
