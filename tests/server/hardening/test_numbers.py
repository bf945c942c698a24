"""Numbers at their edges, on every route (CVE-2026-21869, CVE-2026-34756), and bodies at the edge of JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import operations

EXTREMES = (
    *("-1", "0", "9223372036854775808", "-9223372036854775809", "1e308", "1e999", "-0.0", "NaN", "Infinity"),
    *("true", '"1"', "[]", "{}", "null", "1.5", "9" * 5000),
)
EDGES = {
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "deep prompt": b'{"model": "m", "prompt": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "long number": b'{"model": "m", "prompt": "x", "zzz": ' + b"9" * 10_000 + b"}",
    "utf-16": b"\xff\xfe{}",
    "lone surrogate": b'{"model": "m", "prompt": "\\ud800"}',
    "gzip": b"\x1f\x8b\x08" + b"\0" * 1000,
    "empty": b"",
    "null": b"null",
    "text": b'"x"',
    "wide": b"{" + b",".join(b'"k%d": 1' % n for n in range(100_000)) + b"}",
}
# Millions of values: parsing them held up everybody for up to a second.
MANY = {
    "fields": b"{" + b",".join(b'"k%d": 1' % n for n in range(300_000)) + b"}",
    "lists": b'{"model": "m", "messages": [' + b"[]," * 1_200_000 + b"1]}",
    "numbers": b'{"model": "m", "prompt": [' + b"1," * 1_900_000 + b"1]}",
    "behind quotes": b'{"model": "\\\\\\"m\\\\", "x": [' + b"{}," * 1_200_000 + b"1]}",
    "utf-16": ('{"model": "m", "x": ["\\"", ' + "[]," * 600_000 + "1]}").encode("utf-16"),
}
# As much of a valid body as any route needs; unknown fields are ignored.
VALID = {
    "model": "m",
    "prompt": "x = ",
    "suffix": "\n",
    "max_tokens": 4,
    "messages": [{"role": "user", "content": "<|code_to_edit|>\nx = 1\n<|/code_to_edit|>"}],
    "input_prefix": "x",
    "input_suffix": "\n",
}
# What a client may be told. 404: a model of this kind is not loaded.
FINE = {200, 400, 404, 413, 415, 429, 503}


def numeric_fields(client: TestClient) -> Iterator[tuple[str, tuple[str, ...]]]:
    app: Any = client.app
    document = app.openapi()
    for method, path, description in operations(client):
        content = description.get("requestBody", {}).get("content", {}).get("application/json")
        if method == "POST" and content is not None:
            for names in _numbers(content["schema"], document, ()):
                yield path, names


def _numbers(schema: dict[str, Any], document: dict[str, Any], names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if len(names) > 4:
        return
    if schema.get("type") in {"integer", "number"}:
        yield names
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _numbers(each, document, names)
    for name, each in schema.get("properties", {}).items():
        yield from _numbers(each, document, (*names, name))


@pytest.mark.slow
def test_every_number_of_every_route_has_bounds(client: TestClient) -> None:
    fields = sorted(set(numeric_fields(client)))
    assert ("/v1/fim/completions", ("max_tokens",)) in fields
    for path, names in fields:
        for extreme in EXTREMES:
            body: Any = dict(VALID)
            inner = body
            for name in names[:-1]:
                inner[name] = {}
                inner = inner[name]
            inner[names[-1]] = "@"
            text = json.dumps(body).replace('"@"', extreme)
            began = time.monotonic()
            answer = client.post(path, content=text, headers={"content-type": "application/json"})
            assert answer.status_code in FINE, (path, names, extreme[:20], answer.text)
            assert time.monotonic() - began < 5
            if len(extreme) > 20 and answer.status_code == 400:
                assert extreme[:50] not in answer.text
    assert client.post("/v1/fim/completions", json=VALID).status_code == 200


def test_nothing_on_the_way_to_the_engine_is_out_of_its_range(client: TestClient, filler: Any) -> None:
    for extreme in ("9223372036854775808", "1e308", "-1"):
        for name in ("max_tokens", "top_k", "seed", "temperature", "top_p", "min_tokens", "max_steps"):
            text = json.dumps({"model": "m", "prompt": "x", name: "@"}).replace('"@"', extreme)
            client.post("/v1/fim/completions", content=text, headers={"content-type": "application/json"})
    for request in filler.requests:
        assert 1 <= request.max_tokens <= 65_536
        assert 0 <= request.sampling.temperature <= 2
        assert 0 < request.sampling.top_p <= 1


@pytest.mark.parametrize("text", EDGES.values(), ids=EDGES)
def test_a_body_at_the_edge_of_json_is_answered(client: TestClient, text: bytes) -> None:
    for method, path, _ in operations(client):
        if method == "POST":
            began = time.monotonic()
            answer = client.post(path, content=text, headers={"content-type": "application/json"})
            assert answer.status_code in FINE, (path, answer.text[:300])
            assert time.monotonic() - began < 5


def test_a_packed_body_is_not_unpacked(client: TestClient, filler: Any) -> None:
    """GO-2025-3548: a few kilobytes may become gigabytes."""
    import gzip

    packed = gzip.compress(json.dumps({**VALID, "prompt": "x" * 3_000_000}).encode())
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    assert client.post("/v1/fim/completions", content=packed, headers=headers).status_code in {400, 415}
    assert filler.requests == []


@pytest.mark.parametrize("fields", [{"prompt": ""}, {"prompt": "", "suffix": ""}])
def test_an_empty_prompt_is_a_prompt(client: TestClient, fields: dict[str, str]) -> None:
    assert client.post("/v1/fim/completions", json={"model": "m", **fields}).status_code == 200


@pytest.mark.parametrize("stop", [["x"] * 17, ["x" * 257], [""] * 3, [None], "x" * 10_000])
def test_what_stops_an_answer_is_bounded(open_client: Callable[..., TestClient], stop: Any) -> None:
    answer = open_client().post("/v1/fim/completions", json={"model": "m", "prompt": "x", "stop": stop})
    assert answer.status_code in {200, 400}
    if stop != [""] * 3:
        assert answer.status_code == 400


@pytest.mark.parametrize("body", MANY.values(), ids=list(MANY))
def test_a_body_of_too_many_values_is_refused_before_it_is_read(client: TestClient, body: bytes) -> None:
    expected = dict.fromkeys(
        ("/v1/fim/completions", "/v1/apply/completions", "/calomel/v1/complete", "/api/generate"), "too_many_values"
    )
    # Of what comes without a token, much less is read.
    for path, code in {**expected, "/feedback": "request_too_large"}.items():
        answer = client.post(path, content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, code), path


def test_a_text_of_megabytes_is_one_value(client: TestClient) -> None:
    text = "call(\"a\", [1, 2], {'b': '\\\\'})\n" * 80_000
    answer = client.post("/v1/fim/completions", json={"model": "m", "prompt": text, "max_tokens": 4})
    assert answer.status_code == 200
