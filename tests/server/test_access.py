"""Who may come in: tokens, names (DNS rebinding, CVE-2024-28224, CVE-2026-48710), pages of others (CVE-2026-22812).

And what a route may be: none writes, uploads, fetches or reads files (CVE-2026-2611).
"""

from __future__ import annotations

import base64
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from tests.server.conftest import TOKEN, Opener, Serving, operations, received

import calomel.server.run
from calomel.infer.proof import PROOF_PATH, proof
from calomel.server.app import create_app
from calomel.server.errors import StartError
from calomel.server.settings import ServeSettings
from calomel.server.tokens import Tokens, parse, read, read_or_make

PUBLIC = {"/health", "/feedback"}


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def routes(app: FastAPI) -> list[tuple[str, str]]:
    schema = app.openapi()["paths"]
    found = [(method.upper(), path) for path, methods in schema.items() for method in methods]
    plain = [(method, r.path) for r in app.routes if isinstance(r, Route) for method in r.methods or ()]
    return sorted({*found, *plain})


def test_every_route_but_the_public_ones_needs_the_token(open_client: Opener) -> None:
    client = open_client(token=None)
    app: Any = client.app

    assert ("POST", "/v1/fim/completions") in routes(app)
    assert ("GET", "/openapi.json") in routes(app)
    open_paths = {p for m, p in routes(app) if client.request(m, p, json={}).status_code != 401}
    assert open_paths == PUBLIC


@pytest.mark.parametrize("path", ["/nothing", "/health/", "/HEALTH", "/health/../v1/models", "/v1/models?/health"])
def test_a_path_that_resembles_a_public_one_needs_the_token(open_client: Opener, path: str) -> None:
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
def test_the_token_may_come_in_either_header(open_client: Opener, headers: dict[str, str]) -> None:
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
def test_a_wrong_token_is_refused(open_client: Opener, headers: dict[str, Any]) -> None:
    assert open_client(token=None).get("/v1/models", headers=headers).status_code == 401


def test_without_authentication_everybody_may_come_in(open_client: Opener) -> None:
    assert open_client(no_auth=True, token=None).get("/v1/models").status_code == 200


def test_an_app_without_a_token_is_not_made_by_accident() -> None:
    with pytest.raises(StartError, match="needs a token"):
        create_app(ServeSettings(), lambda: None)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:9", "localhost:8017", "LOCALHOST", "[::1]:8017", "devbox.lan:8017"]
)
def test_this_machines_own_names_and_those_of_the_settings_are_served(open_client: Opener, host: str) -> None:
    client = open_client(allowed_hosts=("devbox.lan",))
    assert client.get("/v1/models", headers={"host": host}).status_code == 200


def test_a_websocket_is_closed(open_client: Opener) -> None:
    client = open_client(token=None)
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/v1/models"):
        pass


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


def test_no_name_of_a_public_path_in_the_host_opens_a_protected_one(open_client: Opener) -> None:
    """Also where the list of names would let such a host in."""
    client = open_client(token=None, allowed_hosts=("attacker.example",))
    for host in HOSTILE_HOSTS:
        for place in ("", "/health", "/health?x=", "/openapi.json?x="):
            assert client.get("/v1/models", headers={"host": host + place}).status_code in {400, 401}


def test_no_page_of_others_is_served_or_invited(open_client: Opener) -> None:
    client = open_client(allowed_origins=(PAGE,))
    preflight = {"access-control-request-method": "POST", "access-control-request-private-network": "true"}
    for origin in HOSTILE_ORIGINS:
        for method, path, _ in operations(client):
            refused = client.request(method, path, headers={"origin": origin}, json={})
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_not_allowed")
            asked = client.options(path, headers={"origin": origin, **preflight})
            assert (asked.status_code, asked.json()) == (refused.status_code, refused.json())
            for answer in (refused, asked):
                assert [name for name in answer.headers if name.startswith("access-control-allow-")] == []


def test_two_origins_are_none(open_client: Opener) -> None:
    headers = [("origin", PAGE), ("origin", "https://evil.example")]
    assert open_client(allowed_origins=(PAGE,)).get("/health", headers=headers).status_code == 403


def test_the_servers_own_page_is_served(client: TestClient) -> None:
    for origin in ("http://127.0.0.1:8017", "https://127.0.0.1:8017", "HTTP://127.0.0.1:8017"):
        answer = client.get("/v1/models", headers={"origin": origin})
        assert answer.status_code == 200
        assert "access-control-allow-origin" not in answer.headers


def test_a_page_on_the_list_may_ask_and_read_errors_but_needs_the_token(open_client: Opener) -> None:
    client = open_client(token=None, allowed_origins=(PAGE,))
    preflight = {"origin": PAGE, "access-control-request-method": "POST"}
    invited = client.options("/v1/fim/completions", headers=preflight)
    refused = client.get("/v1/models", headers={"origin": PAGE})

    assert invited.status_code == 200
    assert invited.headers["access-control-allow-origin"] == PAGE
    assert "authorization" in invited.headers["access-control-allow-headers"]
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, PAGE)
    for answer in (invited, refused):
        assert answer.headers["vary"].startswith("Origin")
        assert "access-control-allow-private-network" not in answer.headers
        assert "access-control-allow-credentials" not in answer.headers
    nearby = client.options(
        "/v1/fim/completions", headers={**preflight, "access-control-request-private-network": "true"}
    )
    assert (nearby.status_code, nearby.headers["access-control-allow-private-network"]) == (200, "true")


def test_what_another_site_loads_into_its_page_is_refused_and_a_link_is_followed(client: TestClient) -> None:
    image = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/v1/models", headers=image).status_code == 403
    assert client.get("/health", headers=link).status_code == 200
    assert client.post("/v1/fim/completions", headers=link, json={}).status_code == 403


def test_a_body_that_a_page_may_send_unasked_is_refused(client: TestClient) -> None:
    posts = [path for method, path, _ in operations(client) if method == "POST"]
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
def test_odd_targets_open_nothing(serving: Serving, request_line: str) -> None:
    with serving().connect() as client:
        host = "" if "1.0" in request_line else "host: 127.0.0.1\r\n"
        client.sendall(f"{request_line}\r\n{host}connection: close\r\n\r\n".encode())
        assert received(client).split()[1] in {b"400", b"401"}


def test_a_name_that_is_not_this_machines_is_refused_on_every_route(client: TestClient) -> None:
    for method, path, _ in [*operations(client), ("OPTIONS", "/v1/fim/completions", {})]:
        for host in HOSTILE_HOSTS:
            answer = client.request(method, path, headers={"host": host}, json={})
            assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error"), (path, host)


def test_a_browser_asks_its_user_for_the_token_on_the_page_alone(open_client: Opener) -> None:
    client = open_client(token=None)
    assert client.get("/").headers["www-authenticate"].startswith("Basic ")
    assert client.post("/").headers["www-authenticate"] == "Bearer"
    assert client.get("/v1/models").headers["www-authenticate"] == "Bearer"
    assert client.get("/", headers={"authorization": basic("me", TOKEN)}).status_code == 200


FORBIDDEN = (
    r"^\s*(?:import|from) (?:pickle|marshal|shelve|zmq)\b",
    r"torch\.load\(",
    r"trust_remote_code\s*=",
    r"\b(?:FileResponse|StaticFiles|UploadFile)\b",
    r"(?<![.\w])(?:eval|exec)\(",
    r"yaml\.load\(",
    r"shell=True",
)


SOURCES = Path(calomel.server.run.__file__).parents[3]


def test_no_route_takes_a_model_or_a_file(client: TestClient) -> None:
    """CVE-2026-7482, CVE-2024-37032 and their like began with an upload or a download on demand."""
    for method, path, description in operations(client):
        assert method in {"GET", "POST"}
        assert not re.search(r"pull|push|create$|upload|download|blobs?|delete|copy|load|file", path.rpartition("/")[2])
        content = description.get("requestBody", {}).get("content", {})
        assert set(content) <= {"application/json"}


@pytest.mark.parametrize(
    "piece",
    ["../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "....//etc/passwd", "%00", "C:%5c"],
)
def test_no_path_leads_to_the_file_system(client: TestClient, piece: str) -> None:
    for _, path, _ in operations(client):
        for tried in (f"{path}/{piece}", f"{path.rpartition('/')[0]}/{piece}"):
            # Whole, lest a path that begins with // is taken for a host.
            answer = client.get(f"http://127.0.0.1:8017{tried}")
            assert answer.status_code in {400, 401, 404, 405}
            assert "root:" not in answer.text


def test_a_range_is_not_computed(client: TestClient) -> None:
    """CVE-2025-62727: files served by ranges cost quadratic time; no file is served."""
    ranges = "bytes=" + ",".join(f"{n}-{n + 1}" for n in range(5_000))
    for method, path, _ in operations(client):
        if method == "GET":
            assert client.get(path, headers={"range": ranges}).status_code != 206


def test_nothing_in_the_product_runs_what_it_reads() -> None:
    """CVE-2025-32434, CVE-2025-62164, CVE-2024-50050 and their like."""
    packages = [SOURCES / "server" / "calomel", SOURCES / "model" / "calomel" / "engine", SOURCES / "lsp" / "calomel"]
    files = [file for package in packages for file in package.rglob("*.py")]
    assert len(files) > 50
    for file in files:
        code = "\n".join(line.partition("#")[0] for line in file.read_text().splitlines())
        code = re.sub(r'"""[\s\S]*?"""', "", code)
        for forbidden in FORBIDDEN:
            assert re.search(forbidden, code, re.MULTILINE) is None, (file, forbidden)


def challenged(token: str, nonce: str = "0" * 32) -> dict[str, str]:
    return {"authorization": f"Proof {nonce}:{proof(token, 'client', nonce)}"}


@pytest.mark.parametrize("no_auth", [False, True])
def test_the_server_proves_that_it_knows_the_token(filler: Any, *, no_auth: bool) -> None:
    tokens = Tokens({"ann": "first", "ben": "second"})
    client = TestClient(create_app(ServeSettings(no_auth=no_auth), lambda: filler, tokens), "http://127.0.0.1")
    for token in ("first", "second"):
        answer = client.get(PROOF_PATH, headers=challenged(token))
        assert answer.json() == {"proof": proof(token, "server", "0" * 32)}
        assert token not in answer.text


@pytest.mark.parametrize(
    "headers",
    [{}, challenged("guess"), {"authorization": "Proof x"}, {"authorization": "Proof " + "0" * 9999}],
)
def test_a_stranger_gets_no_proof(open_client: Opener, headers: dict[str, str]) -> None:
    client = open_client(token=None)
    answers = [client.get(PROOF_PATH, headers=headers).status_code for _ in range(40)]
    assert set(answers) <= {401, 429}
    assert (429 in answers) == bool(headers)
    assert client.get(PROOF_PATH, headers=challenged(TOKEN)).status_code == 200


def test_wrong_tokens_of_one_address_are_bounded_and_keep_no_owner_out(open_client: Opener) -> None:
    client = open_client(token=None)
    wrong = [client.get("/v1/models", headers={"authorization": f"Bearer guess-{n}"}) for n in range(60)]

    assert wrong[0].status_code == 401
    assert (wrong[-1].status_code, wrong[-1].json()["error"]["code"]) == (429, "rate_limit_reached")
    assert int(wrong[-1].headers["retry-after"]) >= 1
    assert client.get("/v1/models", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client.get("/v1/models", headers={"authorization": "Bearer guess"}).status_code == 429
    assert client.get("/health").status_code == 200


def test_no_token_at_all_is_no_guess(open_client: Opener) -> None:
    client = open_client(token=None)
    assert {client.get("/v1/models").status_code for _ in range(100)} == {401}


def test_a_token_is_made_once_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "token"
    first, made = read_or_make(path)
    again, made_again = read_or_make(path)

    assert (made, made_again) == (True, False)
    assert first == again
    assert len(first.by_name[""]) >= 43
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    assert oct(path.parent.stat().st_mode & 0o777) == "0o700"
    assert list(path.parent.iterdir()) == [path]


def test_servers_that_start_at_the_same_time_make_one_token(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: read_or_make(tmp_path / "token")[0].by_name[""], range(32)))
    assert len(set(found)) == 1


@pytest.mark.parametrize("mode", [0o604, 0o606, 0o620, 0o666])
def test_a_file_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.write_text("abc\n")
    path.chmod(mode)
    with pytest.raises(StartError, match="open to other users"):
        read(path)


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o640])
def test_a_file_of_the_users_own_is_read(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.write_text("# for the team\n\nann a-token\nbob\tb-token\n")
    path.chmod(mode)
    assert read(path) == Tokens({"ann": "a-token", "bob": "b-token"})


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "a b c\n", "ann x\nann y\n", "ann x\nbob x\n", "../x y\n", "x\x7fy\n", "editors x\n"]
)
def test_a_list_that_cannot_be_used_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(StartError) as caught:
        parse(text, Path("/tokens"))
    assert "ann" not in str(caught.value)


def test_no_plain_file_is_no_list(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(StartError):
            read(path)
