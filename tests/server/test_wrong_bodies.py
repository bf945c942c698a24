"""Bodies that are wrong, on every route: the first wrong field is named, and nothing that was sent is repeated."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from calomel.infer.completer import CompleteRequest
from calomel.infer.wire import COMPLETE_PATH, encode
from calomel.prompts.parts import PromptParts

MANY_STOPS = ["x"] * 17
SECRET = "s3cret-text"
FIM = "/v1/fim/completions"
FILE = "<|code_to_edit|>\nx = 1\n<|/code_to_edit|>"
# Of each route a right body, and values that a field may not have; an ellipsis: the field is missing.
WRONG: dict[str, tuple[dict[str, Any], dict[str, list[Any]]]] = {
    FIM: (
        {"model": "m", "prompt": SECRET},
        {
            "max_tokens": [0, -1, 8193, 2**63, 1.5, 1e308, True, "5", [1], SECRET],
            "min_tokens": [-1, 2**63, 1e308],
            "max_steps": [-1, 2**63, 1e308],
            "temperature": [-0.1, 2.1, 1e308, True, "0.5"],
            "top_p": [-0.1, 1.1, 1e308, 2**63, False],
            "top_k": [0, -2, 1001, 2**63, 1e308, "40"],
            "frequency_penalty": [-2.1, 2.1],
            "presence_penalty": [-2.1, 2.1],
            "repetition_penalty": [0, -1],
            "seed": [-1, 2**63, 1.5, 1e308],
            "stop": [[""], "", MANY_STOPS, [SECRET * 24], [1], {"a": "b"}, 3],
            "stream": ["yes", 1, []],
            "stream_options": [True, "x", []],
            "stream_options.include_usage": [{"include_usage": "yes"}],
            "prompt": [..., None, 3, ["a"]],
            "suffix": [3, ["a"]],
            "model": [..., None, "", 3, "m" * 257],
        },
    ),
    "/v1/completions": (
        {"prompt": SECRET},
        {
            "prompt": [..., None, 3, [], ["a", "b"], [1, 2], [[1]], {}],
            "n": [0, 2, 8, "1"],
            "max_tokens": [0, -1, 2**31, 1.5, True],
            "top_k": [-2, 1001],
            "echo": [True, "no"],
            "temperature": [2.1],
            "stop": [MANY_STOPS],
            "stream": ["yes"],
            "suffix": [3],
            "model": [3],
        },
    ),
    "/infill": (
        {"input_prefix": SECRET},
        {
            "input_extra": ["x", {"text": "x"}, ["x"], [{"text": "x"}] * 1025],
            "input_extra.text": [[{"filename": "a"}], [{"text": 1}], [{"text": None}]],
            "input_extra.filename": [[{"text": "x", "filename": 1}]],
            "input_prefix": [1],
            "input_suffix": [[]],
            "prompt": [[1, 2]],
            "n_predict": [-2],
            "n_indent": [-1],
            "t_max_predict_ms": [1e12],
            "response_fields": ["content", [1]],
            "stream": [1],
        },
    ),
    "/api/generate": (
        {"prompt": SECRET},
        {
            "prompt": [3],
            "format": ["json", {"type": "object"}],
            "stream": ["no"],
            "options": [3],
            "options.num_predict": [{"num_predict": 2**40}],
            "options.temperature": [{"temperature": "warm"}],
            "options.stop": [{"stop": MANY_STOPS}],
        },
    ),
    **dict.fromkeys(
        ("/v1/edit/completions", "/v1/apply/completions"),
        (
            {"model": "m", "messages": [{"role": "user", "content": FILE}]},
            {
                "messages": [..., [], [{"role": "user", "content": "x"}] * 2, [{"role": "user", "content": SECRET}]],
                "messages.role": [[{"role": "system", "content": SECRET}]],
                "messages.content": [[{"role": "user", "content": 3}]],
                "model": [...],
                "temperature": [3],
                "max_tokens": [0],
                "top_p": [-1],
            },
        ),
    ),
    COMPLETE_PATH: (
        json.loads(encode(CompleteRequest("fill", PromptParts(path="a.py", prefix="x"), max_tokens=32))),
        {
            "protocol": [999],
            "kind": [SECRET],
            "max_tokens": [0, SECRET],
            "deadline": [-1],
            "parts.prefix": [{"prefix": 3}],
            "parts.related.0.start_line": [{"related": [{"path": "a"}]}],
            "stop.0": [[SECRET * 100]],
        },
    ),
    "/feedback": (
        {"request_id": SECRET, "user_action": "partial", "accepted_length": 1},
        {
            "request_id": [None, "x" * 257],
            "user_action": [None, "love"],
            "provider_name": [3],
            "accepted_length": [..., 0, 2**31, True],
        },
    ),
}


@pytest.mark.parametrize("url", WRONG)
def test_a_wrong_field_is_named_and_nothing_is_repeated_or_asked(client: TestClient, filler: Any, url: str) -> None:
    right, wrong = WRONG[url]
    for param, values in wrong.items():
        field = param.partition(".")[0]
        for value in values:
            body = {name: given for name, given in {**right, field: value}.items() if given is not ...}
            answer = client.post(url, json=body)
            error = answer.json()["error"]
            assert (answer.status_code, error["param"]) == (400, param), (field, value)
            assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_parameter")
            assert SECRET not in answer.text
            assert url != FIM or error["message"].startswith(f"{param}: ")
    assert filler.requests == []


def test_what_clients_send_besides_is_accepted(client: TestClient, filler: Any) -> None:
    names = ("suffix", "max_tokens", "temperature", "top_p", "top_k", "presence_penalty", "stop", "stream")
    body = {"prompt": "x", **dict.fromkeys(names), "n": 1, "user": "u", "extra_body": {"a": [1]}}
    answer = client.post(FIM, json={**body, "model": "inception/whatever-9"})
    assert (answer.status_code, answer.json()["model"]) == (200, "inception/whatever-9")
    assert filler.requests[0].max_tokens == 512
    for stop in ([], "END", ["a"]):
        assert client.post(FIM, json={**body, "model": "m", "stop": stop}).status_code == 200
    assert [request.stop for request in filler.requests[1:]] == [(), ("END",), ("a",)]
