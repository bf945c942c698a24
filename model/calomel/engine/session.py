"""An engine as one session asks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calomel.engine.any_engine import AnyEngine
from calomel.engine.config import Shape
from calomel.engine.handle import Handle
from calomel.engine.request import Request


class SessionEngine:
    """Another engine, whose requests are all of one session. Closing it is its owner's business.

    Args:
        engine: any.
        session: see `Request.session`.
        client: see `Request.client`.
    """

    def __init__(self, engine: AnyEngine, session: str, client: str = "") -> None:
        self._engine = engine
        self._session = session
        self._client = client

    @property
    def config(self) -> Shape:
        """Of the model."""
        return self._engine.config

    @property
    def occupancy(self) -> tuple[int, int]:
        """Of the engine, with all of its sessions."""
        return self._engine.occupancy

    def submit(self, request: Request) -> Handle:
        """Queue `request` in the session's name. Raises as the engine's."""
        return self._engine.submit(self._named(request))

    def submit_all(self, requests: Sequence[Request]) -> tuple[Handle, ...]:
        """Queue `requests` in the session's name, at the same moment. Raises as the engine's."""
        return self._engine.submit_all([self._named(request) for request in requests])

    def close(self) -> None:
        """Do nothing: others ask the same engine."""

    def _named(self, request: Request) -> Request:
        return replace(request, session=self._session, client=self._client)
