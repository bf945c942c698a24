"""The answers against the published OpenAPI document, and a shipping client's recorded requests, where those are."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import Conforms, Opener, events

from calomel.prompts.mercury import parse_mercury
from calomel.server.routes.completions import FimRequest

FIM = "/v1/fim/completions"


ASK: dict[str, Any] = {"model": "mercury-edit-2", "prompt": "x"}


@pytest.fixture
def check(published: Any, conforms: Conforms) -> Conforms:
    return conforms


def test_an_answer_and_every_chunk_of_a_stream_conform(client: TestClient, check: Conforms) -> None:
    check("FIMCompletionResponse", client.post(FIM, json=ASK).json())
    body = {**ASK, "stream": True, "stream_options": {"include_usage": True}}
    chunks = events(client.post(FIM, json=body))[:-1]
    assert len(chunks) == 4
    for chunk in chunks:
        check("TextCompletionChunk", chunk)
    check("FIMUsage", chunks[-1]["usage"])


@pytest.mark.parametrize("path", ["/v1/models", "/v1/fim/completions/models", "/v1/edit/completions/models"])
def test_the_list_of_models_conforms(client: TestClient, check: Conforms, path: str) -> None:
    check("ModelsResponse", client.get(path).json())


def test_every_error_conforms(open_client: Opener, check: Conforms) -> None:
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


def test_the_published_example_is_answered(client: TestClient, published: dict[str, Any]) -> None:
    content = published["paths"][FIM]["post"]["requestBody"]["content"]["application/json"]
    assert client.post(FIM, json=content["example"]).status_code == 200


def test_every_published_request_field_is_known(published: dict[str, Any]) -> None:
    fields = set(published["components"]["schemas"]["FIMCompletionRequest"]["properties"])
    assert fields <= set(FimRequest.model_fields)
    ours = {"temperature", "seed", "min_tokens", "max_steps", "diffusing"}
    assert ours <= set(FimRequest.model_fields) - fields


DATA = Path(os.environ.get("CALOMEL_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


RECORDINGS = sorted((DATA / "next-edit-scenarios" / "mercury").glob("*.ndjson"))


URL = "/v1/edit/completions"


def exchanges() -> Iterator[Any]:
    for file in RECORDINGS:
        request: dict[str, Any] = {}
        for line in file.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry["kind"] == "request":
                request = json.loads(base64.b64decode(entry["body_b64"]))
            elif entry["kind"] == "response":
                answer = json.loads(base64.b64decode(entry["body_b64"]))
                yield pytest.param(request, answer, id=f"{file.stem}-{entry['interaction']}")


RECORDED = [*exchanges()] or [pytest.param({}, {}, marks=pytest.mark.skip(reason=f"no recordings below {DATA}"))]


def shape(value: Any) -> Any:
    """The names and types of an answer."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    return [shape(each) for each in value] if isinstance(value, list) else type(value).__name__


@pytest.mark.parametrize(("request_body", "recorded"), RECORDED)
def test_a_recorded_request_is_answered_in_the_recorded_shape(
    client: TestClient, request_body: dict[str, Any], recorded: dict[str, Any]
) -> None:
    answer = client.post(URL, json=request_body)

    assert answer.status_code == 200
    body = answer.json()
    ours, theirs = shape(body), shape(recorded)
    # The document says `tool_calls` alone, and usage in two forms.
    for message in (theirs["choices"][0]["message"], ours["choices"][0]["message"]):
        message.pop("tool_call_id", None)
    assert theirs.pop("usage").items() <= ours.pop("usage").items()
    assert ours == theirs
    choice, told = body["choices"][0], recorded["choices"][0]
    assert (choice["index"], choice["finish_reason"]) == (told["index"], told["finish_reason"])
    for content in (choice["message"]["content"], told["message"]["content"]):
        assert content.startswith("```\n")
        assert content.endswith("\n```")
        assert "<|" not in content


@pytest.mark.parametrize(("request_body", "recorded"), RECORDED)
def test_a_recorded_prompt_is_read_byte_for_byte(request_body: dict[str, Any], recorded: dict[str, Any]) -> None:
    prompt = request_body["messages"][0]["content"]
    read = parse_mercury(prompt)

    assert recorded
    assert read.cursor is not None
    marked = f"{read.region[: read.cursor]}<|cursor|>{read.region[read.cursor :]}"
    shown = f"{read.prefix}<|code_to_edit|>\n{marked}<|/code_to_edit|>\n{read.suffix}"
    assert f"<|current_file_content|>\ncurrent_file_path: {read.path}\n{shown}<|/current_file_content|>\n" in prompt
    assert sum(hunk.path == read.path for hunk in read.edits) == len(read.edits)
