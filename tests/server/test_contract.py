"""The answers against the published OpenAPI document, where that document lies beside the repository."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from calomel.server.routes.completions import FimRequest

jsonschema = pytest.importorskip("jsonschema")

CONTRACTS = Path(os.environ.get("CALOMEL_CONTRACTS", Path(__file__).parents[3] / "shared" / "contracts"))
FIM = "/v1/fim/completions"
ASK: dict[str, Any] = {"model": "mercury-edit-2", "prompt": "x"}


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    path = CONTRACTS / "inception-openapi.json"
    if not path.exists():
        pytest.skip(f"no published OpenAPI document at {path}; CALOMEL_CONTRACTS names another folder")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


@pytest.fixture
def check(document: dict[str, Any]) -> Callable[[str, Any], None]:
    def check_(component: str, value: Any) -> None:
        schema = {**document, "$ref": f"#/components/schemas/{component}"}
        jsonschema.Draft202012Validator(schema).validate(value)

    return check_


def test_a_plain_answer_conforms(client: TestClient, check: Callable[[str, Any], None]) -> None:
    check("FIMCompletionResponse", client.post(FIM, json=ASK).json())


def test_every_chunk_of_a_stream_conforms(client: TestClient, check: Callable[[str, Any], None]) -> None:
    body = {**ASK, "stream": True, "stream_options": {"include_usage": True}}
    events = client.post(FIM, json=body).text.split("\n\n")

    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    assert len(chunks) == 4
    for chunk in chunks:
        check("TextCompletionChunk", chunk)
    check("FIMUsage", chunks[-1]["usage"])


@pytest.mark.parametrize("path", ["/v1/models", "/v1/fim/completions/models", "/v1/edit/completions/models"])
def test_the_list_of_models_conforms(client: TestClient, check: Callable[[str, Any], None], path: str) -> None:
    check("ModelsResponse", client.get(path).json())


def test_every_error_conforms(open_client: Callable[..., TestClient], check: Callable[[str, Any], None]) -> None:
    client = open_client(max_body_bytes=1024)
    answers = [
        client.post(FIM, json={}),
        client.post(FIM, json={**ASK, "prompt": "x" * 2000}),
        client.post(FIM, content=b"{}"),
        client.get(FIM),
        client.get("/nothing"),
        client.get("/v1/models", headers={"authorization": "Bearer wrong"}),
        client.get("/v1/models", headers={"host": "attacker.example"}),
    ]
    assert [answer.status_code for answer in answers] == [400, 413, 415, 405, 404, 401, 400]
    for answer in answers:
        check("ErrorResponse", answer.json())


def test_the_published_example_is_answered(client: TestClient, document: dict[str, Any]) -> None:
    content = document["paths"][FIM]["post"]["requestBody"]["content"]["application/json"]
    assert client.post(FIM, json=content["example"]).status_code == 200


def test_every_published_request_field_is_known(document: dict[str, Any]) -> None:
    published = set(document["components"]["schemas"]["FIMCompletionRequest"]["properties"])
    assert published <= set(FimRequest.model_fields)
    ours = {"temperature", "seed", "min_tokens", "max_steps", "diffusing"}
    assert ours <= set(FimRequest.model_fields) - published
