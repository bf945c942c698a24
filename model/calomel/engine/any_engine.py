"""What is asked of an engine by whoever puts questions to one, wherever its forwards are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from calomel.engine.config import Shape
from calomel.engine.handle import Handle
from calomel.engine.request import Request


class AnyEngine(Protocol):
    """Takes requests and settles their handles; `calomel.engine.Serving` is one. Safe to share between threads."""

    @property
    def config(self) -> Shape:
        """Of the model."""

    @property
    def occupancy(self) -> tuple[int, int]:
        """How many requests are being served, and how many wait for that."""

    def submit(self, request: Request) -> Handle:
        """Queue `request` and return at once. Raises InvalidRequestError, EngineStoppedError."""

    def submit_all(self, requests: Sequence[Request]) -> tuple[Handle, ...]:
        """Queue `requests` at the same moment. Raises as `submit`, before any of them is queued."""

    def close(self) -> None:
        """Stop serving; requests that are not done raise EngineStoppedError."""
