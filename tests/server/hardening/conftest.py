from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.server.conftest import TOKEN, until

from calomel.server.run import config


@contextmanager
def _listening(app: FastAPI) -> Iterator[tuple[str, int]]:
    server = uvicorn.Server(config(app.state.door.settings, app))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: app.state.door.loader.state == "ready")
            yield listener.getsockname()[:2]
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def serving(make_app: Callable[..., FastAPI]) -> Iterator[Callable[..., SimpleNamespace]]:
    """The app behind a real socket, exactly as `calomel serve` serves it, with these settings."""
    with ExitStack() as stack:

        def serve(**settings: Any) -> SimpleNamespace:
            app = make_app(**{"shutdown_seconds": 1, **settings})
            place = stack.enter_context(_listening(app))
            return SimpleNamespace(app=app, place=place, url=f"http://{place[0]}:{place[1]}", connect=_connect(place))

        yield serve


def _connect(place: tuple[str, int]) -> Callable[[], socket.socket]:
    return lambda: socket.create_connection(place, timeout=10)


def received(client: socket.socket) -> bytes:
    """Everything until the server closes."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while part := client.recv(65536):
            data += part
    return data


def head(path: str = "/v1/fim/completions", method: str = "POST", *more: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"authorization: Bearer {TOKEN}", *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def operations(client: TestClient) -> list[tuple[str, str, dict[str, Any]]]:
    """Every route of the application as (method, path with its parameters filled, description)."""
    app: Any = client.app
    found = [
        (method.upper(), filled(path), description)
        for path, methods in app.openapi()["paths"].items()
        for method, description in methods.items()
    ]
    assert len(found) > 5
    return found


def filled(path: str) -> str:
    while "{" in path:
        before, _, rest = path.partition("{")
        path = before + "x" + rest.partition("}")[2]
    return path
