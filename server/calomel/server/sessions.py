"""Who asks, and in whose session: what is shared fairly among clients, and what keeps their contexts together."""

from __future__ import annotations

from typing import Final

from fastapi import Request

from calomel.server.auth import CLIENT_STATE
from calomel.server.loading import Filler

# A client names its workspace, or whatever else its questions have in common.
SESSION_HEADER: Final = "x-session-id"
_LONGEST: Final = 128


def client_of(request: Request) -> str:
    """Who asks, for fairness among clients: the owner of the token, else the address of the other side."""
    name: str | None = request.scope.get("state", {}).get(CLIENT_STATE)
    if name is not None:
        return f"token {name}"
    return request.client.host if request.client is not None else ""


def session_of(request: Request) -> str:
    """What belongs together: what a client says it does, else what one person asks, else what comes by one connection.

    A name is the client's own business: the same one of two clients is two sessions.
    """
    client = client_of(request)
    named = request.headers.get(SESSION_HEADER, "")
    if named and len(named) <= _LONGEST:
        return f"{client} {named}"
    if request.scope.get("state", {}).get(CLIENT_STATE):
        return client
    return client if request.client is None else f"{client} {request.client.host} {request.client.port}"


def asked_by(filler: Filler, request: Request) -> Filler:
    """The model, asked in the name of the request's session and of its client."""
    name = getattr(filler, "in_session", None)
    return filler if name is None else name(session_of(request), client_of(request))
