from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.loop_watch import _short_turns  # noqa: F401 (a fixture)

from calomel.infer.completer import Candidate, CanvasText, CompleteAnswer, CompleteRequest, EngineTimings, Occupancy
from calomel.server.app import create_app
from calomel.server.lifetime import DrainingServer
from calomel.server.run import config, open_upstream
from calomel.server.settings import NAMES, ServeSettings, variable
from calomel.server.upstream import upstream_of

TOKEN = "test-token-0123456789"
Opener = Callable[..., TestClient]
Serving = Callable[..., SimpleNamespace]
Conforms = Callable[[str, Any], None]


class FakeFiller:
    """Answers with given deltas; may wait for a gate, or raise."""

    def __init__(self) -> None:
        self.deltas: list[str] = ["return ", "n"]
        self.finish_reason = "stop"
        self.trimmed = False
        self.result: Any = SimpleNamespace(
            ids=(5, 6),
            log_probs=(-0.25, -0.5),
            entropies=(0.5, 0.75),
            end_log_prob=-0.125,
            steps=3,
            finish_reason="stop",
            prefill_seconds=0.01,
            denoise_seconds=0.01,
        )
        self.canvas_states: list[CanvasText] = []
        self.error: Exception | None = None
        self.error_after: int = 0  # deltas before the error
        self.gate_after: int = 0  # deltas before the gate
        self.gate: threading.Event | None = None
        self.requests: list[Any] = []
        self.started = threading.Event()
        self.cancelled = threading.Event()
        self.closed = False

    def _fill(self) -> Any:
        return SimpleNamespace(
            text="".join(self.deltas),
            finish_reason=self.finish_reason,
            confidence=0.9,
            prompt_tokens=24,
            completion_tokens=14,
            cached_tokens=16,
            steps=3,
            forwards=4,
            seconds=0.02,
            result=self.result,
            trimmed=self.trimmed,
            estimated=False,
        )

    async def _wait(self, done: int) -> None:
        try:
            # The gate belongs to the test's thread.
            while self.gate is not None and done >= self.gate_after and not self.gate.is_set():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def afill(self, request: Any) -> Any:
        self.requests.append(request)
        self.started.set()
        await self._wait(len(self.deltas))
        if self.error is not None:
            raise self.error
        return self._fill()

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        self.requests.append(request)
        self.started.set()
        try:
            for done, delta in enumerate(self.deltas):
                await self._wait(done)
                if self.error is not None and done >= self.error_after:
                    raise self.error
                yield delta
                await asyncio.sleep(0)  # others have their turn while a real one makes the next
        except GeneratorExit:
            self.cancelled.set()
            raise
        yield self._fill()

    async def canvases(self, request: Any) -> AsyncIterator[Any]:
        self.requests.append(request)
        for state in self.canvas_states:
            yield state
        yield self._fill()

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Every draft is likely; a region that nobody drafted for stays as it is, and a hole is filled."""
        self.requests.append(request)
        self.started.set()
        await self._wait(len(self.deltas))
        if self.error is not None:
            raise self.error
        if request.kind == "fill":
            fill = self._fill()
            own = replace(Candidate.of(fill.result, fill.text), finish_reason=fill.finish_reason)
            timings = EngineTimings(queued=0.005, total=fill.seconds)
            return CompleteAnswer((own,), context_tokens=24, cached_tokens=16, timings=timings)
        candidates = tuple(
            Candidate(draft.text, (-0.01,), end_log_prob=-0.01, maker=draft.maker, log_prob=-0.1, keep_log_prob=-9.0)
            for draft in request.drafts
        )
        return CompleteAnswer(candidates, context_tokens=24, cached_tokens=16, timings=EngineTimings(total=0.02))

    reads_ahead = False
    note = None

    def occupancy(self) -> Occupancy:
        return Occupancy()

    def for_client(self, client: str) -> FakeFiller:
        return self

    def close(self) -> None:
        self.closed = True


def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("did not happen in time")
        time.sleep(0.005)


def app_of(factory: Callable[[], Any], **settings: Any) -> FastAPI:
    """An app with such models, and with the token of these tests unless it wants none."""
    own = {} if settings.get("no_auth") else {"token": TOKEN}
    return create_app(ServeSettings(**(own | settings)), factory)


def upstream_app(url: str, **settings: Any) -> FastAPI:
    """An app that asks the server at an address. Raises StartError as its start would."""
    given = ServeSettings(**{"token": TOKEN, "upstream": url, **settings})
    upstream = upstream_of(given)
    assert upstream is not None
    completer = open_upstream(upstream)
    return create_app(given, lambda: completer, describing=lambda: upstream.model)


@contextmanager
def opened(app: FastAPI, token: str | None = TOKEN, *, ready: bool = True) -> Iterator[TestClient]:
    """A client of a running app, whose model is ready unless `ready=False`."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    with TestClient(app, base_url="http://127.0.0.1:8017", headers=headers) as client:
        until(lambda: not ready or app.state.app_state.loader.state == "ready", 60)
        yield client


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of this machine that nobody vouches for, and its key."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("no openssl to make a certificate with")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    options += f" -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {cert}"
    subprocess.run([program, *options.split()], check=True, capture_output=True)
    return cert, key


@pytest.fixture(autouse=True)
def _own_folders_and_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in NAMES:
        monkeypatch.delenv(variable(name), raising=False)


@pytest.fixture(scope="session")
def _torch() -> Iterator[None]:
    """Comes with a model, which the fake one is not; the collector does not look at it after each test."""
    import_module("calomel.engine")
    gc.collect()
    gc.freeze()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "unfreeze", lambda: None)
        yield


@pytest.fixture
def filler(_torch: None) -> FakeFiller:
    return FakeFiller()


@pytest.fixture
def open_client(filler: FakeFiller) -> Iterator[Opener]:
    """A client of an app with these settings."""
    with ExitStack() as stack:

        def open_(
            *, factory: Callable[[], Any] = lambda: filler, ready: bool = True, token: str | None = TOKEN, **more: Any
        ) -> TestClient:
            return stack.enter_context(opened(app_of(factory, **more), token, ready=ready))

        yield open_


@pytest.fixture
def client(open_client: Opener) -> TestClient:
    return open_client()


@contextmanager
def listening(app: FastAPI) -> Iterator[tuple[str, int]]:
    """The app behind a real socket, exactly as `calomel serve` serves it."""
    state = app.state.app_state
    server = DrainingServer(config(state.settings, app), state.admission, state.loader)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: app.state.app_state.loader.state == "ready")
            yield listener.getsockname()[:2]
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def serving(filler: FakeFiller) -> Iterator[Serving]:
    """Such an app with these settings."""
    with ExitStack() as stack:

        def serve(**settings: Any) -> SimpleNamespace:
            app = app_of(lambda: filler, shutdown_seconds=1, **settings)
            place = stack.enter_context(listening(app))
            return SimpleNamespace(
                app=app,
                url=f"http://{place[0]}:{place[1]}",
                headers={"authorization": f"Bearer {TOKEN}"},
                connect=lambda: socket.create_connection(place, timeout=10),
            )

        yield serve


@pytest.fixture
def live(serving: Serving) -> SimpleNamespace:
    return serving()


def events(answer: Any) -> list[Any]:
    """The events of a stream, or its lines; with [DONE] as a text."""
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n") if line]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


CONTRACTS = Path(os.environ.get("CALOMEL_CONTRACTS", Path(__file__).parents[3] / "shared" / "contracts"))
DOCUMENT = CONTRACTS / "inception-openapi.json"


@pytest.fixture(scope="session")
def published() -> dict[str, Any]:
    """The published OpenAPI document, where it lies beside the repository."""
    if not DOCUMENT.exists():
        pytest.skip(f"no published OpenAPI document at {DOCUMENT}; CALOMEL_CONTRACTS names another folder")
    content: dict[str, Any] = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    return content


@pytest.fixture(scope="session")
def conforms(request: pytest.FixtureRequest) -> Conforms:
    """Compares a body with a component of that document, if it is there."""
    document = request.getfixturevalue("published") if DOCUMENT.exists() else None

    def check(component: str, value: Any) -> None:
        if document is not None:
            schema = {**document, "$ref": f"#/components/schemas/{component}"}
            jsonschema.Draft202012Validator(schema).validate(value)

    return check


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
        (method.upper(), re.sub(r"\{\w+\}", "x", path), description)
        for path, methods in app.openapi()["paths"].items()
        for method, description in methods.items()
    ]
    assert len(found) > 5
    return found
