from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from calomel.prompts.parts import Excerpt
from calomel.server.routes.llama import indented

URL = "/infill"
# As llama.vim and llama.vscode ask.
ASK = {
    "id_slot": 0,
    "input_prefix": "def f(n):\n",
    "input_suffix": "\nf(1)\n",
    "input_extra": [{"text": "x = 1\n", "time": [1, 2], "filename": "a.py"}],
    "prompt": "    ",
    "n_predict": 128,
    "stop": [],
    "n_indent": 4,
    "top_k": 40,
    "top_p": 0.99,
    "stream": False,
    "samplers": ["top_k", "top_p", "infill"],
    "cache_prompt": True,
    "t_max_prompt_ms": 500,
    "t_max_predict_ms": 1000,
}
FIELDS = [
    "content",
    "timings/prompt_n",
    "timings/prompt_ms",
    "timings/prompt_per_second",
    "timings/predicted_n",
    "timings/predicted_ms",
    "timings/predicted_per_second",
    "truncated",
    "tokens_cached",
]


def test_the_hole_is_behind_the_prompt(client: TestClient, filler: Any) -> None:
    client.post(URL, json=ASK)

    request = filler.requests[0]
    assert (request.parts.prefix, request.parts.suffix) == ("def f(n):\n    ", "\nf(1)\n")
    assert request.parts.related == (Excerpt("a.py", 0, "x = 1\n"),)
    assert (request.max_tokens, request.stop, request.deadline) == (128, (), 3.0)
    assert (request.sampling.top_k, request.sampling.temperature) == (40, 0.0)


def test_an_answer_has_llamacpps_shape(client: TestClient) -> None:
    body = client.post(URL, json=ASK).json()

    assert (body["content"], body["stop"], body["stop_type"]) == ("return n", True, "eos")
    assert (body["tokens_predicted"], body["tokens_evaluated"], body["tokens_cached"]) == (14, 24, 16)
    assert (body["truncated"], body["prompt"], body["model"]) == (False, "", "calomel-nano")
    assert body["timings"] == {
        "cache_n": 16,
        "prompt_n": 8,
        "prompt_ms": 10.0,
        "prompt_per_token_ms": 1.25,
        "prompt_per_second": 800.0,
        "predicted_n": 14,
        "predicted_ms": 10.0,
        "predicted_per_token_ms": pytest.approx(10 / 14),
        "predicted_per_second": pytest.approx(1400.0),
    }


def test_a_plugin_gets_the_fields_that_it_names_under_the_names_that_it_gives(client: TestClient) -> None:
    body = client.post(URL, json={**ASK, "response_fields": [*FIELDS, "no/such", "content/x", "/"]}).json()

    assert list(body) == FIELDS
    assert (body["content"], body["timings/prompt_n"], body["timings/predicted_per_second"]) == ("return n", 8, 1400.0)


def test_a_stream_has_deltas_and_an_end(client: TestClient) -> None:
    answer = client.post(URL, json={**ASK, "stream": True})

    *chunks, end = [json.loads(each.removeprefix("data: ")) for each in answer.text.split("\n\n")[:-1]]
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [(chunk["content"], chunk["stop"]) for chunk in chunks] == [("return ", False), ("n", False)]
    assert (end["content"], end["stop"], end["timings"]["predicted_n"]) == ("", True, 14)


def test_a_request_that_warms_a_cache_is_answered_at_once(client: TestClient, filler: Any) -> None:
    ask = {"input_prefix": "", "input_suffix": "", "prompt": "", "n_predict": 0, "samplers": [], "t_max_predict_ms": 1}
    body = client.post(URL, json={**ask, "input_extra": ASK["input_extra"]}).json()

    assert (body["content"], body["stop"]) == ("", True)
    assert filler.requests == []


def test_an_answer_that_was_not_begun_in_time_is_empty(client: TestClient, filler: Any) -> None:
    filler.error = RuntimeError("too late")
    filler.error.code = "deadline_exceeded"

    answer = client.post(URL, json=ASK)

    assert (answer.status_code, answer.json()["content"], answer.json()["stop_type"]) == (200, "", "limit")


def test_the_least_that_may_be_sent(client: TestClient, filler: Any) -> None:
    assert client.post(URL, json={}).json()["content"] == "return n"
    assert client.post(URL, json=dict.fromkeys((*ASK, "response_fields"))).status_code == 200
    assert (filler.requests[0].max_tokens, filler.requests[0].deadline) == (128, None)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input_extra": "x"}, "input_extra"),
        ({"input_extra": {"text": "x"}}, "input_extra"),
        ({"input_extra": ["x"]}, "input_extra"),
        ({"input_extra": [{"filename": "a"}]}, "input_extra.text"),
        ({"input_extra": [{"text": 1}]}, "input_extra.text"),
        ({"input_extra": [{"text": None}]}, "input_extra.text"),
        ({"input_extra": [{"text": "x", "filename": 1}]}, "input_extra.filename"),
        ({"input_extra": [{"text": "x"}] * 1025}, "input_extra"),
        ({"input_prefix": 1}, "input_prefix"),
        ({"input_suffix": []}, "input_suffix"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"n_predict": -2}, "n_predict"),
        ({"n_indent": -1}, "n_indent"),
        ({"t_max_predict_ms": 1e12}, "t_max_predict_ms"),
        ({"response_fields": "content"}, "response_fields"),
        ({"response_fields": [1]}, "response_fields"),
        ({"stream": 1}, "stream"),
    ],
)
def test_malformed_bodies_are_refused_by_name(
    client: TestClient, filler: Any, fields: dict[str, Any], param: str
) -> None:
    answer = client.post(URL, json={**ASK, **fields})

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert filler.requests == []


@pytest.mark.parametrize(
    ("text", "least", "expected"),
    [
        ("a\n    b\nc\n", 4, "a\n    b"),
        ("a\n\n    b\n", 4, "a\n\n    b\n"),
        ("a\n\tb\n  c", 4, "a\n\tb"),
        ("a\nb", 0, "a\nb"),
        ("", 4, ""),
    ],
)
def test_an_answer_ends_before_a_line_that_is_indented_less(text: str, least: int, expected: str) -> None:
    assert indented(text, least) == expected
