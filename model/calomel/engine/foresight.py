"""What canvases look like behind their first step, so that the second one can be taken in the same forward.

Short answers are alike: of nano's, every third canvas knows behind its first step that its second position is the end,
and nothing else. The rows of that state ride on the first forward, and where the step brings about that very state, the
second one has been forwarded already. The answer is the same without; a wrong guess costs its rows, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from calomel.engine.job import Job

State = tuple[int, ...]
"""The token ids of a canvas; the mask token where nothing is known."""

# On a CPU a row costs a twentieth of a forward, with the keys that it reads: two rows that come true one time in five
# are worth it.
ROWS: Final = 4
SHARE: Final = 0.2
# A canvas in so many counts for a third of one that was just seen: who writes something else soon finds other answers.
_MEMORY: Final = 32
_FEWEST: Final = 7.0
_FORGOTTEN: Final = 0.01


@dataclass(slots=True)
class _Seen:
    """Canvases of one length: how many there were of late, and of them by the state behind the first step."""

    canvases: float = 0.0
    states: dict[State, float] = field(default_factory=dict)
    guesses: tuple[State, ...] = ()


class Foresight:
    """Learns from the canvases of all requests; one thread at a time.

    Args:
        rows: of all guesses about a canvas at most; 0 for none.
        share: of canvases that have to look like it, for a guess to be made.
    """

    def __init__(self, rows: int = ROWS, share: float = SHARE) -> None:
        self.rows = rows
        self._share = share
        self._seen: dict[int, _Seen] = {}

    def guesses(self, length: int) -> tuple[State, ...]:
        """What a canvas of `length` positions may look like behind its first step, the likeliest first."""
        seen = self._seen.get(length)
        return () if seen is None or not self.rows else seen.guesses

    def saw(self, length: int, state: Sequence[int] | None) -> None:
        """A canvas of `length` positions became `state` in its first step; None where that was its last one."""
        seen = self._seen.setdefault(length, _Seen())
        keep = 1.0 - 1.0 / _MEMORY
        seen.canvases = seen.canvases * keep + 1.0
        seen.states = {known: count * keep for known, count in seen.states.items() if count > _FORGOTTEN}
        if state is not None:
            key = tuple(state)
            seen.states[key] = seen.states.get(key, 0.0) + 1.0
        seen.guesses = self._likely(seen)

    def _likely(self, seen: _Seen) -> tuple[State, ...]:
        if seen.canvases < _FEWEST:
            return ()
        found: list[State] = []
        room = self.rows
        for state, count in sorted(seen.states.items(), key=lambda item: -item[1]):
            if count < self._share * seen.canvases:
                break
            if len(state) <= room:
                found.append(state)
                room -= len(state)
        return tuple(found)


def foreseeable(job: Job) -> bool:
    """Whether a canvas' second step depends on nothing but what the first one made of it."""
    request, diffusion, policy = job.request, job.diffusion, job.policy
    if request.given is not None or request.max_steps == 1 or request.frozen or request.constraint is not None:
        return False
    if request.sampling.temperature or request.sampling.penalised:
        return False
    if len(job.candidates) > 1 or policy.verified or policy.reveal is None or job.revises:
        return False
    return diffusion.block == 1 and diffusion.sub_block is None
