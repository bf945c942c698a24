from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from calomel.suggest.completer import CanvasText

SECRET = "sk-live-THE-USERS-OWN-TEXT"
URL = "/v1/fim/completions"


def ask(**fields: Any) -> dict[str, Any]:
    return {"model": "mercury-edit-2", "prompt": "def f(n):\n    ", **fields}


def _each(field: str, *values: Any) -> list[tuple[str, Any]]:
    return [(field, value) for value in values]


def test_an_answer_has_the_published_shape(client: TestClient) -> None:
    answer = client.post(URL, json=ask(suffix="\n\nf(1)\n"))

    assert answer.status_code == 200
    body = answer.json()
    assert re.fullmatch(r"cmpl-[0-9a-f]{32}", body.pop("id"))
    assert isinstance(body.pop("created"), int)
    assert body == {
        "object": "text_completion",
        "model": "mercury-edit-2",
        "choices": [
            {
                "index": 0,
                "text": "return n",
                "message": {"role": "assistant", "content": "return n"},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 24,
            "completion_tokens": 14,
            "total_tokens": 38,
            "reasoning_tokens": 0,
            "cached_input_tokens": 16,
            "prompt_tokens_details": {"cached_tokens": 16},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        "warning": None,
    }


def test_two_answers_have_different_ids(client: TestClient) -> None:
    assert client.post(URL, json=ask()).json()["id"] != client.post(URL, json=ask()).json()["id"]


def test_text_before_and_after_the_hole_reaches_the_model_unchanged(client: TestClient, filler: Any) -> None:
    client.post(URL, json=ask(prompt="\té\r\n", suffix="  \u2028🙂"))

    assert (filler.requests[0].parts.prefix, filler.requests[0].parts.suffix) == ("\té\r\n", "  \u2028🙂")


def test_an_empty_prompt_is_a_hole_at_the_start_of_a_file(client: TestClient, filler: Any) -> None:
    assert client.post(URL, json=ask(prompt="")).status_code == 200
    assert filler.requests[0].parts.prefix == ""


def test_what_is_not_sent_has_the_published_default_except_penalties_which_are_off(
    client: TestClient, filler: Any
) -> None:
    client.post(URL, json=ask())

    request = filler.requests[0]
    assert (request.parts.suffix, request.max_tokens, request.stop) == ("", 512, ("\n\n", "\n \n"))
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.seed) == (0.0, 1.0, -1, None)
    assert (sampling.frequency_penalty, sampling.presence_penalty, sampling.repetition_penalty) == (0.0, 0.0, 1.0)


def test_what_is_sent_reaches_the_model(client: TestClient, filler: Any) -> None:
    fields = {
        "temperature": 0.7,
        "top_p": 0.5,
        "top_k": 40,
        "frequency_penalty": -1.5,
        "presence_penalty": 1.5,
        "repetition_penalty": 1.1,
        "seed": 7,
    }
    client.post(URL, json=ask(max_tokens=33, stop=["END", "\n"], **fields))

    request = filler.requests[0]
    assert (request.max_tokens, request.stop) == (33, ("END", "\n"))
    assert {name: getattr(request.sampling, name) for name in fields} == fields


def test_a_top_p_of_zero_takes_the_most_probable_token(client: TestClient, filler: Any) -> None:
    client.post(URL, json=ask(top_p=0, temperature=1))

    assert (filler.requests[0].sampling.top_p, filler.requests[0].sampling.temperature) == (1.0, 0.0)


def test_null_means_not_sent(client: TestClient, filler: Any) -> None:
    names = ("suffix", "max_tokens", "temperature", "top_p", "top_k", "presence_penalty", "stop", "stream")
    assert client.post(URL, json=ask(**dict.fromkeys(names))).status_code == 200
    assert filler.requests[0].max_tokens == 512


@pytest.mark.parametrize(("stop", "expected"), [([], ()), ("END", ("END",)), (["a"], ("a",))])
def test_stop_may_be_empty_one_text_or_a_list(
    client: TestClient, filler: Any, stop: Any, expected: tuple[str, ...]
) -> None:
    client.post(URL, json=ask(stop=stop))
    assert filler.requests[0].stop == expected


def test_any_model_id_and_unknown_fields_are_accepted(client: TestClient) -> None:
    answer = client.post(URL, json=ask(model="inception/whatever-9", n=1, user="u", extra_body={"a": [1]}))

    assert answer.status_code == 200
    assert answer.json()["model"] == "inception/whatever-9"


def test_an_answer_that_time_cut_short_ends_with_length(client: TestClient, filler: Any) -> None:
    filler.finish_reason = "deadline"
    assert client.post(URL, json=ask()).json()["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *_each("max_tokens", 0, -1, 8193, 2**63, 1.5, True, "5", [1]),
        *_each("temperature", -0.1, 2.1, 1e308, True, "0.5"),
        *_each("top_p", -0.1, 1.1, False),
        *_each("top_k", 0, -2, 1001, "40"),
        *_each("frequency_penalty", -2.1, 2.1),
        *_each("presence_penalty", -2.1, 2.1),
        *_each("repetition_penalty", 0, -1),
        *_each("seed", -1, 2**63, 1.5),
        *_each("stop", [""], "", ["x"] * 17, ["x" * 257], [1], {"a": "b"}, 3),
        *_each("stream", "yes", 1, []),
        *_each("stream_options", True, "x", []),
        *_each("prompt", None, 3, ["a"]),
        *_each("suffix", 3, ["a"]),
        *_each("model", None, "", 3, "m" * 257),
    ],
)
def test_a_field_out_of_its_range_is_named(client: TestClient, filler: Any, field: str, value: Any) -> None:
    answer = client.post(URL, json=ask(**{field: value}))

    error = answer.json()["error"]
    assert answer.status_code == 400
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", field, "invalid_parameter")
    assert error["message"].startswith(f"{field}: ")
    assert filler.requests == []


def test_a_nested_field_is_named_with_its_parent(client: TestClient) -> None:
    answer = client.post(URL, json=ask(stream=True, stream_options={"include_usage": "yes"}))
    assert answer.json()["error"]["param"] == "stream_options.include_usage"


@pytest.mark.parametrize("field", ["prompt", "model"])
def test_a_missing_field_is_named(client: TestClient, field: str) -> None:
    body = ask()
    del body[field]
    answer = client.post(URL, json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, field)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"model":"m","prompt":"\\ud800"}',
        b'{"model":"m","prompt":"x","temperature":NaN}',
        b'{"model":"m","prompt":"x","top_p":Infinity}',
        b'{"model":"m","prompt":"x","max_tokens":' + b"9" * 6000 + b"}",
    ],
    ids=lambda content: repr(content[:40]),
)
def test_a_body_that_is_no_request_is_refused_and_the_server_goes_on(client: TestClient, content: bytes) -> None:
    answer = client.post(URL, content=content, headers={"content-type": "application/json"})

    assert answer.status_code == (413 if content.count(b"[") > 20_000 else 400)
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert client.post(URL, json=ask()).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None])
def test_a_body_that_a_web_page_could_send_unasked_is_refused(
    client: TestClient, filler: Any, kind: str | None
) -> None:
    headers = {} if kind is None else {"content-type": kind}
    answer = client.post(URL, content=json.dumps(ask()).encode(), headers=headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")
    assert filler.requests == []


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_json_may_be_declared_in_any_of_its_usual_ways(client: TestClient, kind: str) -> None:
    answer = client.post(URL, content=json.dumps(ask()).encode(), headers={"content-type": kind})
    assert answer.status_code == 200


class EngineFaultError(Exception):
    def __init__(self, code: str, message: str = "top_p must be above 0") -> None:
        super().__init__(message)
        self.code = code


@pytest.mark.parametrize(
    ("code", "status", "published"),
    [
        ("context_length_exceeded", 400, ("invalid_request_error", "context_length_exceeded", None)),
        ("invalid_request", 400, ("invalid_request_error", "invalid_parameter", None)),
        ("invalid_sampling", 400, ("invalid_request_error", "invalid_parameter", None)),
        ("empty_context", 400, ("invalid_request_error", "invalid_parameter", None)),
        ("cache_full", 503, ("server_error", "engine_overloaded", "1")),
        ("deadline_exceeded", 503, ("server_error", "engine_overloaded", "1")),
        ("engine_stopped", 503, ("server_error", "engine_stopped", "2")),
        ("anything_else", 500, ("server_error", "server_error", None)),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_of_the_engine_has_a_published_shape(
    client: TestClient, filler: Any, code: str, status: int, published: tuple[str, str, str | None], *, stream: bool
) -> None:
    filler.error = EngineFaultError(code)
    answer = client.post(URL, json=ask(stream=stream))

    error = answer.json()["error"]
    assert answer.status_code == status
    assert (error["type"], error["code"], answer.headers.get("retry-after")) == published


def test_the_users_text_appears_in_no_error_and_no_log(
    open_client: Callable[..., TestClient], filler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = open_client()
    client.headers["authorization"] = "Bearer test-token-0123456789"
    answers = [client.post(URL, json=ask(prompt=SECRET, suffix=SECRET))]
    answers.append(client.post(URL, json=ask(prompt=SECRET, max_tokens=SECRET, stop=[SECRET * 20])))
    answers.append(client.post(URL, content=SECRET, headers={"content-type": "application/json"}))
    answers.append(client.post(f"/{SECRET}", json=ask()))
    for stream in (False, True):
        filler.error = ValueError(SECRET)
        answers.append(client.post(URL, json=ask(prompt=SECRET, stream=stream)))
    answers.append(client.get("/v1/models", headers={"authorization": f"Bearer {SECRET}"}))

    assert [a.status_code for a in answers] == [200, 400, 400, 404, 500, 500, 401]
    assert all(SECRET not in a.text for a in answers)
    own = [r.getMessage() for r in caplog.records if not r.name.startswith(("httpx", "httpcore"))]
    assert any("unexpected ValueError" in line for line in own)
    assert all(SECRET not in line and "test-token" not in line for line in own)


@pytest.mark.parametrize(("method", "path", "status"), [("GET", URL, 405), ("PUT", "/health", 405), ("GET", "/x", 404)])
def test_an_unknown_route_or_method_has_the_published_error_shape(
    client: TestClient, method: str, path: str, status: int
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert (answer.headers.get("allow") is not None) == (status == 405)


def test_a_client_that_needs_an_answer_may_ask_for_a_least_number_of_tokens(client: TestClient, filler: Any) -> None:
    client.post(URL, json=ask(min_tokens=32, max_tokens=32))
    client.post(URL, json=ask())

    assert [request.min_tokens for request in filler.requests] == [32, 0]


def test_a_client_may_bound_the_denoising_steps(client: TestClient, filler: Any) -> None:
    client.post(URL, json=ask(max_steps=3))

    assert filler.requests[0].max_steps == 3


def test_a_prompt_that_is_too_long_is_cut_with_a_warning(client: TestClient, filler: Any) -> None:
    filler.trimmed = True

    answer = client.post(URL, json=ask())

    assert answer.status_code == 200
    assert "left out" in answer.json()["warning"]


def test_the_model_reads_no_more_than_the_administrator_lets_it(
    open_client: Callable[..., TestClient], filler: Any
) -> None:
    open_client(context_tokens=777).post(URL, json=ask())

    assert filler.requests[0].max_context == 777


def test_a_secret_of_the_client_is_hidden_from_the_model(client: TestClient, filler: Any) -> None:
    key = "AKIAIOSFODNN7EXAMPLQ"
    client.post(URL, json=ask(prompt=f'key = "{key}"\n', suffix=f'\nother = "{key}"\n'))

    (request,) = filler.requests
    assert key not in request.parts.prefix + request.parts.suffix
    assert len(request.parts.prefix) == len(f'key = "{key}"\n')


def test_a_recording_is_kept_only_where_it_was_asked_for(open_client: Callable[..., TestClient], filler: Any) -> None:
    filler.canvas_states = [CanvasText(1, "return n")]

    def recorded(client: TestClient) -> int:
        answer = client.post(URL, json=ask()).json()
        assert answer["choices"][0]["text"] == "return n"
        return client.get(f"/calomel/v1/recordings/{answer['id']}").status_code

    assert recorded(open_client()) == 404
    assert recorded(open_client(record_denoising=True)) == 200
