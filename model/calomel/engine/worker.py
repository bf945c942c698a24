"""What an engine's thread needs of whoever does the work of a step, and of the requests that it works on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from calomel.engine.config import Shape
from calomel.engine.handle import Handle
from calomel.engine.request import Request


class Work(Protocol):
    """One request while it is served."""

    request: Request
    handle: Handle
    prefill_rows: int

    @property
    def prefill_left(self) -> int:
        """Context tokens still to be encoded, in chunks of `prefill_rows`; 0 where nothing is done in chunks."""


W = TypeVar("W", bound=Work)


class Worker(Protocol[W]):
    """Does the work of a step. Everything but `job` is called on the engine's thread alone."""

    @property
    def config(self) -> Shape:
        """Of the model."""

    def clock(self) -> float:
        """Seconds that deadlines are compared with."""

    def job(self, request: Request, handle: Handle) -> W:
        """A checked request, not begun; called in the caller's thread."""

    def fits(self, job: W) -> bool:
        """Whether there is memory for `job` beside those that have begun."""

    def begin(self, job: W) -> None:
        """Give `job` what it needs to be served."""

    def step(self, jobs: Sequence[W]) -> None:
        """Take every job one step on; what fails in one of them ends that one alone (see `alone`)."""

    def expired(self, job: W) -> None:
        """The deadline of `job` has passed: settle it with what is known, or by DeadlineExceededError."""

    def end(self, job: W) -> None:
        """Take back what `begin` gave; safe for a job that has not begun."""
