"""Who may call what: deny by default (CVE-2026-2611), and nothing that writes, uploads, fetches or reads files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import operations

import calomel.server.run

PUBLIC = {"/health", "/feedback"}
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


def test_every_route_but_two_wants_the_token(open_client: Callable[..., TestClient]) -> None:
    client = open_client(token=None)
    for method, path, _ in operations(client):
        status = client.request(method, path, json={}).status_code
        assert (path in PUBLIC) == (status != 401), (method, path)


def test_reading_changes_nothing_and_only_posts_do(client: TestClient) -> None:
    assert {method for method, _, _ in operations(client)} <= {"GET", "POST"}


def test_no_route_takes_a_model_or_a_file(client: TestClient) -> None:
    """CVE-2026-7482, CVE-2024-37032 and their like began with an upload or a download on demand."""
    for _, path, description in operations(client):
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
