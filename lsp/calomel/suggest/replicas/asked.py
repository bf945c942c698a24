"""One request while replicas answer it."""

from __future__ import annotations

from calomel.engine.errors import EngineStoppedError
from calomel.engine.handle import Handle
from calomel.engine.request import CanvasState, Request
from calomel.suggest.replicas.errors import LineLostError, ReplicaLostError
from calomel.suggest.replicas.wire import Data, Message, read_error, read_result, read_state, request_data


class Asked:
    """A request, what has come of it, and whether it may be asked again.

    Args:
        request: as it was submitted. Raises InvalidRequestError where it is no data.

    Attributes:
        request: the same.
        handle: of whoever waits.
        doubled: results that came when there was one already.
    """

    def __init__(self, request: Request, handle: Handle) -> None:
        self.request = request
        self.handle = handle
        self.doubled = 0
        self._data = request_data(request)
        self._shown = 0  # states that whoever waits has seen
        self._last: CanvasState | None = None
        self._come = 0  # states of this sending
        self._answered = False

    @property
    def over(self) -> bool:
        """Whether nothing more is wanted."""
        return self.handle.done

    @property
    def again(self) -> bool:
        """Whether it may be asked of another replica: nothing was shown, or what was will be the same."""
        sampling = self.request.sampling
        return not self._shown or sampling.temperature == 0 or sampling.seed is not None

    def sent(self, now: float) -> Data:
        """The data for a sending at `now`."""
        self._come = 0
        deadline = self.request.deadline
        return {**self._data, "left": None if deadline is None else deadline - now}

    def take(self, message: Message) -> None:
        """Take in what a replica said.

        Raises:
            LineLostError: it has no engine any more.
        """
        _, kind, data = message
        if kind == "state":
            self._show(read_state(data))
        elif kind == "result":
            self.doubled += self._answered
            self._answered = True
            self.handle.settle(read_result(data))
        else:
            error = read_error(data)
            if isinstance(error, EngineStoppedError):
                raise LineLostError
            self.handle.settle(error)

    def _show(self, state: CanvasState) -> None:
        """Show it, unless an earlier sending has: then it must be what was shown."""
        self._come += 1
        if self._come > self._shown:
            self._shown, self._last = self._come, state
            self.handle.push(state)
        elif self._come == self._shown and state != self._last:
            words = "a replica was lost, and another one's answer differs from what was shown already; ask again"
            self.handle.settle(ReplicaLostError(words))
