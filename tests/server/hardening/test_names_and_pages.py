"""DNS rebinding (CVE-2024-28224), poisoned hosts (CVE-2026-48710), pages of others (CVE-2026-22812)."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import operations, received

PAGE = "https://devbox.lan:8443"
HOSTILE_HOSTS = [
    "attacker.example",
    "attacker.example:8017",
    "localhost.attacker.example",
    "localhost/health",
    "localhost/health?x=",
    "localhost/openapi.json?x=",
    "x/health",
    "a@127.0.0.1",
    "127.0.0.1@a",
    "127.0.0.1:80:80",
    "",
    "h" * 300,
]
HOSTILE_ORIGINS = [
    "https://evil.example",
    "http://localhost.evil.example:80",
    "http://localhost:3000",
    "http://127.0.0.1:8018",
    "http://127.0.0.1.evil.example:8017",
    "http://127.0.0.1:8017@evil.example",
    "http://evil.example#127.0.0.1:8017",
    "file://",
    "null",
    "",
    "chrome-extension://abcdefghijklmnop",
    "https://devbox.lan",
    "https://devbox.lan:8443.evil.example",
    "https://evil.example https://devbox.lan:8443",
]


def test_no_route_answers_without_a_token_under_any_name(open_client: Callable[..., TestClient]) -> None:
    client = open_client(token=None)
    for method, path, _ in operations(client):
        for host in HOSTILE_HOSTS:
            answer = client.request(method, path, headers={"host": host}, json={})
            assert 400 <= answer.status_code < 500, (method, path, host)
            assert answer.json()["error"]["type"] in {"invalid_request_error", "authentication_error"}


def test_no_name_of_a_public_path_in_the_host_opens_a_protected_one(open_client: Callable[..., TestClient]) -> None:
    """Also where the list of names would let such a host in."""
    client = open_client(token=None, allowed_hosts=("attacker.example",))
    for host in HOSTILE_HOSTS:
        for place in ("", "/health", "/health?x=", "/openapi.json?x="):
            assert client.get("/v1/models", headers={"host": host + place}).status_code in {400, 401}


def test_no_page_of_others_is_served_or_invited(open_client: Callable[..., TestClient]) -> None:
    client = open_client(allowed_origins=(PAGE,))
    preflight = {"access-control-request-method": "POST", "access-control-request-private-network": "true"}
    asked: list[tuple[str, str, dict[str, str]]] = []
    for method, path, _ in operations(client):
        asked += [(method, path, {}), ("OPTIONS", path, preflight)]
    for origin in HOSTILE_ORIGINS:
        for sent, path, more in asked:
            answer = client.request(sent, path, headers={"origin": origin, **more}, json={})
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "origin_not_allowed")
            assert [name for name in answer.headers if name.startswith("access-control-")] == []


def test_two_origins_are_none(open_client: Callable[..., TestClient]) -> None:
    headers = [("origin", PAGE), ("origin", "https://evil.example")]
    assert open_client(allowed_origins=(PAGE,)).get("/health", headers=headers).status_code == 403


def test_the_servers_own_page_is_served(client: TestClient) -> None:
    for origin in ("http://127.0.0.1:8017", "https://127.0.0.1:8017", "HTTP://127.0.0.1:8017"):
        answer = client.get("/v1/models", headers={"origin": origin})
        assert answer.status_code == 200
        assert "access-control-allow-origin" not in answer.headers


def test_a_page_on_the_list_may_ask_and_read_errors_but_needs_the_token(open_client: Callable[..., TestClient]) -> None:
    client = open_client(token=None, allowed_origins=(PAGE,))
    invited = client.options(
        "/v1/fim/completions",
        headers={
            "origin": PAGE,
            "access-control-request-method": "POST",
            "access-control-request-private-network": "true",
        },
    )
    refused = client.get("/v1/models", headers={"origin": PAGE})

    assert invited.status_code == 204
    assert invited.headers["access-control-allow-origin"] == PAGE
    assert "authorization" in invited.headers["access-control-allow-headers"]
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, PAGE)
    for answer in (invited, refused):
        assert answer.headers["vary"] == "Origin"
        assert "access-control-allow-private-network" not in answer.headers
        assert "access-control-allow-credentials" not in answer.headers


def test_what_another_site_loads_into_its_page_is_refused_and_a_link_is_followed(client: TestClient) -> None:
    image = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/v1/models", headers=image).status_code == 403
    assert client.get("/health", headers=link).status_code == 200
    assert client.post("/v1/fim/completions", headers=link, json={}).status_code == 403


def test_a_body_that_a_page_may_send_unasked_is_refused(client: TestClient) -> None:
    posts = [path for method, path, _ in operations(client) if method == "POST" and path != "/feedback"]
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", None):
        headers = {} if kind is None else {"content-type": kind}
        for path in posts:
            answer = client.post(path, content=b'{"model": "m", "prompt": "x"}', headers=headers)
            assert (path, answer.status_code) == (path, 415)


@pytest.mark.parametrize(
    "request_line",
    [
        "GET http://evil.example/health HTTP/1.1",
        "GET //health HTTP/1.1",
        "GET /%2e%2e/health HTTP/1.1",
        "GET /v1/models HTTP/1.0",
    ],
)
def test_odd_targets_open_nothing(serving: Callable[..., SimpleNamespace], request_line: str) -> None:
    with serving().connect() as client:
        host = "" if "1.0" in request_line else "host: 127.0.0.1\r\n"
        client.sendall(f"{request_line}\r\n{host}connection: close\r\n\r\n".encode())
        assert received(client).split()[1] in {b"400", b"401"}
