from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from starlette.testclient import TestClient

from calomel.suggest.launch import version

URL = "/api/generate"
QWEN = "<|fim_prefix|>def f(n):\n    <|fim_suffix|>\nf(1)\n<|fim_middle|>"
ZETA21 = (
    "<[fim-suffix]>\n<[fim-prefix]><filename>edit_history\n--- a/shape.py\n+++ b/shape.py\n"
    "@@ -1,1 +1,1 @@\n-def area(w, height):\n+def area(width, height):\n\n<filename>shape.py\n"
    "def area(width, height):\n<|marker_1|>    return w<|user_cursor|> * height<|marker_2|>\n<[fim-middle]>"
)


def ask(prompt: Any = QWEN, **fields: Any) -> dict[str, Any]:
    return {"model": "zeta2.1", "prompt": prompt, **fields}


def lines(text: str) -> list[Any]:
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_an_answer_has_ollamas_shape(client: TestClient) -> None:
    body = client.post(URL, json=ask(raw=True, stream=False, options={"num_predict": 64, "temperature": 0.2})).json()

    assert datetime.fromisoformat(body.pop("created_at")).tzinfo is not None
    assert body == {
        "model": "zeta2.1",
        "response": "return n",
        "done": True,
        "done_reason": "stop",
        "total_duration": 20_000_000,
        "load_duration": 0,
        "prompt_eval_count": 24,
        "prompt_eval_duration": 10_000_000,
        "eval_count": 14,
        "eval_duration": 10_000_000,
    }


@pytest.mark.parametrize("stream", [{}, {"stream": True}, {"stream": None}])
def test_without_a_word_on_it_the_answer_comes_in_lines(client: TestClient, stream: dict[str, Any]) -> None:
    answer = client.post(URL, json=ask(**stream))

    assert answer.headers["content-type"] == "application/x-ndjson"
    *chunks, done = lines(answer.text)
    assert [(chunk["response"], chunk["done"]) for chunk in chunks] == [("return ", False), ("n", False)]
    assert (done["response"], done["done"], done["done_reason"], done["eval_count"]) == ("", True, "stop", 14)


def test_an_error_in_a_stream_is_its_last_line(client: TestClient, filler: Any) -> None:
    filler.error, filler.error_after = RuntimeError("boom"), 1

    first, error = lines(client.post(URL, json=ask()).text)

    assert first["response"] == "return "
    assert error["error"]["code"] == "server_error"


def test_tokens_or_a_suffix_say_where_the_hole_is(client: TestClient, filler: Any) -> None:
    client.post(URL, json=ask(stream=False))
    client.post(URL, json=ask("def f(n):\n    ", suffix="\nf(1)\n", stream=False))

    assert [(each.parts.prefix, each.parts.suffix) for each in filler.requests] == [("def f(n):\n    ", "\nf(1)\n")] * 2


def test_options_reach_the_model(client: TestClient, filler: Any) -> None:
    options = {"num_predict": 33, "temperature": 0.7, "top_p": 0.5, "top_k": 40, "repeat_penalty": 1.1, "seed": 7}
    client.post(URL, json=ask(stream=False, options={**options, "stop": ["END"], "num_ctx": 4096, "mirostat": 0}))

    request = filler.requests[0]
    sampling = request.sampling
    assert (request.max_tokens, request.stop) == (33, ("END",))
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.repetition_penalty, sampling.seed) == (
        0.7,
        0.5,
        40,
        1.1,
        7,
    )


@pytest.mark.parametrize(("num_predict", "expected"), [(None, 128), (-1, 512), (-2, 512), (0, 512), (60_000, 8192)])
def test_an_answer_has_a_bound(client: TestClient, filler: Any, num_predict: int | None, expected: int) -> None:
    client.post(URL, json=ask(stream=False, options={"num_predict": num_predict, "seed": -1, "top_k": 0}))

    assert (filler.requests[0].max_tokens, filler.requests[0].sampling.seed) == (expected, None)


def test_a_prompt_of_zeds_is_answered_between_markers(client: TestClient) -> None:
    options = {"num_predict": 512, "temperature": 0.2, "stop": ["<[end▁of▁sentence]>"]}
    plain = client.post(URL, json=ask(ZETA21, raw=True, stream=False, options=options)).json()
    first, done = lines(client.post(URL, json=ask(ZETA21, raw=True, options=options)).text)

    assert plain["response"] == first["response"] == "<|marker_1|>    return width * height<|marker_2|>"
    assert (plain["done"], first["done"], done["done"], done["response"]) == (True, False, True, "")


def test_an_uncertain_region_is_refused(client: TestClient) -> None:
    answer = client.post(URL, json=ask(ZETA21.replace("def area", "<|marker_1|>")))

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "prompt")


@pytest.mark.parametrize("body", [{"model": "m"}, {"model": "m", "prompt": "", "keep_alive": 0}, {}])
def test_an_empty_prompt_asks_for_the_model_alone(client: TestClient, filler: Any, body: dict[str, Any]) -> None:
    answer = client.post(URL, json={**body, "stream": False}).json()

    assert (answer["response"], answer["done"], answer["done_reason"]) == ("", True, "load")
    assert filler.requests == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": 3}, "prompt"),
        ({"format": "json"}, "format"),
        ({"format": {"type": "object"}}, "format"),
        ({"stream": "no"}, "stream"),
        ({"options": 3}, "options"),
        ({"options": {"num_predict": 2**40}}, "options.num_predict"),
        ({"options": {"temperature": "warm"}}, "options.temperature"),
        ({"options": {"stop": ["x"] * 17}}, "options.stop"),
    ],
)
def test_wrong_values_are_refused_by_name(client: TestClient, fields: dict[str, Any], param: str) -> None:
    answer = client.post(URL, json={**ask(), **fields})

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_an_empty_format_is_none(client: TestClient) -> None:
    assert client.post(URL, json=ask(format="", stream=False)).status_code == 200


def test_the_model_is_listed(client: TestClient) -> None:
    (tag,) = client.get("/api/tags").json()["models"]

    assert tag["name"] == tag["model"] == "calomel-nano"
    assert datetime.fromisoformat(tag["modified_at"])
    assert client.get("/api/version").json() == {"version": version()}


@pytest.mark.parametrize("url", ["/api/tags", "/api/version"])
def test_lists_want_a_token(client: TestClient, url: str) -> None:
    assert client.get(url, headers={"authorization": ""}).status_code == 401
