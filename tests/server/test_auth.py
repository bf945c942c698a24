from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from calomel.server.app import create_app
from calomel.server.errors import StartError
from calomel.server.settings import ServerSettings

PUBLIC = {"/health", "/feedback"}


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def routes(app: FastAPI) -> list[tuple[str, str]]:
    schema = app.openapi()["paths"]
    found = [(method.upper(), path) for path, methods in schema.items() for method in methods]
    plain = [(method, r.path) for r in app.routes if isinstance(r, Route) for method in r.methods or ()]
    return sorted({*found, *plain})


def test_every_route_but_the_public_ones_needs_the_token(open_client: Callable[..., TestClient]) -> None:
    client = open_client(token=None)
    app: Any = client.app

    assert ("POST", "/v1/fim/completions") in routes(app)
    assert ("GET", "/openapi.json") in routes(app)
    open_paths = {p for m, p in routes(app) if client.request(m, p, json={}).status_code != 401}
    assert open_paths == PUBLIC


@pytest.mark.parametrize("path", ["/nothing", "/health/", "/HEALTH", "/health/../v1/models", "/v1/models?/health"])
def test_a_path_that_resembles_a_public_one_needs_the_token(open_client: Callable[..., TestClient], path: str) -> None:
    answer = open_client(token=None).get(path)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json() == {
        "error": {
            "message": "Incorrect API key provided",
            "type": "authentication_error",
            "param": None,
            "code": "invalid_api_key",
        }
    }


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer test-token-0123456789"},
        {"authorization": "bearer  test-token-0123456789"},
        {"x-api-key": "test-token-0123456789"},
        {"authorization": basic("", "test-token-0123456789")},
        {"authorization": basic("me", "test-token-0123456789")},
    ],
)
def test_the_token_may_come_in_either_header(open_client: Callable[..., TestClient], headers: dict[str, str]) -> None:
    assert open_client(token=None).get("/v1/models", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer "},
        {"authorization": "Bearer test-token-012345678"},
        {"authorization": "Bearer test-token-01234567890"},
        {"authorization": "Basic test-token-0123456789"},
        {"authorization": "test-token-0123456789"},
        {"authorization": "Bearer té".encode("latin-1")},
        {"x-api-key": "wrong"},
        {"authorization": "Basic"},
        {"authorization": "Basic ***"},
        {"authorization": basic("test-token-0123456789", "")},
        {"authorization": basic("me", "test-token")},
    ],
)
def test_a_wrong_token_is_refused(open_client: Callable[..., TestClient], headers: dict[str, Any]) -> None:
    assert open_client(token=None).get("/v1/models", headers=headers).status_code == 401


def test_a_browser_asks_for_the_token_on_the_page_alone(open_client: Callable[..., TestClient]) -> None:
    client = open_client(token=None)
    assert client.get("/").headers["www-authenticate"].startswith("Basic ")
    assert client.post("/").headers["www-authenticate"] == "Bearer"
    assert client.get("/v1/models").headers["www-authenticate"] == "Bearer"


def test_without_authentication_everybody_may_come_in(open_client: Callable[..., TestClient]) -> None:
    assert open_client(no_auth=True, token=None).get("/v1/models").status_code == 200


def test_an_app_without_a_token_is_not_made_by_accident() -> None:
    with pytest.raises(StartError, match="needs a token"):
        create_app(ServerSettings(), lambda: None)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    "host",
    [
        "attacker.example",
        "attacker.example:8017",
        "localhost.attacker.example",
        "127.0.0.1.attacker.example",
        "localhost/health?x=",
        "localhost/openapi.json?x=",
        "x/health",
        "a@127.0.0.1",
        "",
        "h" * 300,
    ],
)
@pytest.mark.parametrize("method", ["GET", "OPTIONS", "POST"])
def test_a_name_that_is_not_this_machines_is_refused(client: TestClient, host: str, method: str) -> None:
    for path in ("/v1/models", "/health", "/v1/fim/completions"):
        answer = client.request(method, path, headers={"host": host})
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost:8017", "LOCALHOST", "[::1]:8017"])
def test_this_machines_own_names_are_served(client: TestClient, host: str) -> None:
    assert client.get("/v1/models", headers={"host": host}).status_code == 200


def test_a_further_name_can_be_allowed(open_client: Callable[..., TestClient]) -> None:
    client = open_client(allowed_hosts=("devbox.lan",))
    assert client.get("/v1/models", headers={"host": "devbox.lan:8017"}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://localhost.evil.example", "http://localhost:3000", "null"]
)
def test_no_web_page_is_invited(client: TestClient, origin: str) -> None:
    headers = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-private-network": "true",
    }
    for answer in (
        client.options("/v1/fim/completions", headers=headers),
        client.post("/v1/fim/completions", json={"model": "m", "prompt": ""}, headers={"origin": origin}),
    ):
        assert [name for name in answer.headers if name.startswith("access-control-")] == []


def test_a_websocket_is_closed(open_client: Callable[..., TestClient]) -> None:
    client = open_client(token=None)
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/v1/models"):
        pass
