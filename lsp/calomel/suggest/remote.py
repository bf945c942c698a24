"""A model behind HTTP: the server that the user configured, or the one that the user's editor windows share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from calomel.suggest.completer import CompleteAnswer, CompleteRequest, ModelInfo


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens.

    Attributes:
        url: `http://host:port`, without a path.
        token: what it wants to see; None for a server that lets everybody in.
    """

    url: str
    token: str | None = field(default=None, repr=False)


# Finds a server that answers, or starts one. Raises CompleterError.
Resolve = Callable[[], Awaitable[Endpoint]]


class HttpCompleter:
    """A `Completer` on the other side of HTTP.

    Args:
        resolve: says where the server is; asked again when the server is gone.
    """

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question. Raises CompleterError."""
        raise NotImplementedError

    async def info(self) -> ModelInfo:
        """What the model can do; waits until it is loaded. Raises CompleterError."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Let go of the connections."""
