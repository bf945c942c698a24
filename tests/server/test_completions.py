from __future__ import annotations

import json
import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from calomel.prompts.parts import Excerpt

URL = "/v1/completions"
QWEN = "<|fim_prefix|>def f(n):\n    <|fim_suffix|>\nf(1)\n<|fim_middle|>"
ZETA = (
    "<[fim-suffix]>\nprint(area(1, 2))\n<[fim-prefix]><filename>edit_history\n--- a/shape.py\n+++ b/shape.py\n"
    "@@ -1,1 +1,1 @@\n-def area(w, height):\n+def area(width, height):\n\n<filename>shape.py\n"
)
ZETA21 = ZETA + (
    "<|marker_1|>def area(width, height):\n<|marker_2|>    return w<|user_cursor|> * height<|marker_3|>\n<[fim-middle]>"
)
ZETA2 = ZETA + (
    "<<<<<<< CURRENT\ndef area(width, height):\n    return w<|user_cursor|> * height\n=======\n<[fim-middle]>"
)
ZED_STOP = ["<[end▁of▁sentence]>"]


def ask(prompt: Any = "def f(n):\n    ", **fields: Any) -> dict[str, Any]:
    return {"model": "qwen", "prompt": prompt, **fields}


def each(field: str, *values: Any) -> list[tuple[str, Any]]:
    return [(field, value) for value in values]


def events(text: str) -> list[Any]:
    *data, last, end = text.split("\n\n")
    assert (last, end) == ("data: [DONE]", "")
    return [json.loads(line.removeprefix("data: ")) for line in data]


def test_an_answer_has_every_field_that_zed_wants(client: TestClient) -> None:
    body = client.post(URL, json=ask(QWEN)).json()

    assert re.fullmatch(r"cmpl-[0-9a-f]{32}", body.pop("id"))
    assert isinstance(body.pop("created"), int)
    usage = body.pop("usage")
    assert {name: usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")} == {
        "prompt_tokens": 24,
        "completion_tokens": 14,
        "total_tokens": 38,
    }
    assert body == {
        "object": "text_completion",
        "model": "qwen",
        "choices": [{"index": 0, "text": "return n", "logprobs": None, "finish_reason": "stop"}],
        "warning": None,
    }


def test_tokens_of_other_models_say_where_the_hole_is(client: TestClient, filler: Any) -> None:
    client.post(URL, json=ask(QWEN))

    assert (filler.requests[0].parts.prefix, filler.requests[0].parts.suffix) == ("def f(n):\n    ", "\nf(1)\n")


@pytest.mark.parametrize(("suffix", "expected"), [("\nx", "\nx"), ("", ""), ("<|endoftext|>", ""), (None, "")])
def test_the_text_behind_the_hole_may_come_apart(
    client: TestClient, filler: Any, suffix: str | None, expected: str
) -> None:
    client.post(URL, json=ask(suffix=suffix))

    assert (filler.requests[0].parts.prefix, filler.requests[0].parts.suffix) == ("def f(n):\n    ", expected)


def test_files_before_the_hole_reach_the_model(client: TestClient, filler: Any) -> None:
    prompt = (
        "<|repo_name|>r\n<|file_sep|>a.py\nx = 1\n<|file_sep|>b.py\n<|fim_prefix|>y = <|fim_suffix|>\n<|fim_middle|>"
    )

    client.post(URL, json=ask(prompt))

    parts = filler.requests[0].parts
    assert (parts.path, parts.prefix, parts.suffix) == ("b.py", "y = ", "\n")
    assert parts.related == (Excerpt("a.py", 0, "x = 1\n"),)


def test_secrets_do_not_reach_the_model(client: TestClient, filler: Any) -> None:
    secret = "ghp_" + "a1B2" * 9
    prompt = f"<|file_sep|>a.py\nt = '{secret}'\n<|file_sep|>b.py\n<|fim_prefix|>t = '{secret}'\n"

    client.post(URL, json=ask(prompt, suffix=f"u = '{secret}'\n"))

    assert secret not in repr(filler.requests[0])


def test_no_stop_is_assumed(client: TestClient, filler: Any) -> None:
    client.post(URL, json=ask())
    client.post(URL, json=ask(stop=["<|endoftext|>", "\n\n"]))

    assert [request.stop for request in filler.requests] == [(), ("<|endoftext|>", "\n\n")]


def test_what_is_sent_reaches_the_model(client: TestClient, filler: Any) -> None:
    fields = {"temperature": 0.7, "top_p": 0.5, "top_k": 40, "presence_penalty": 1.5, "seed": 7}
    client.post(URL, json=ask(max_tokens=33, min_tokens=2, **fields))
    client.post(URL, json=ask(max_tokens=16_384, top_k=0))

    first, second = filler.requests
    assert (first.max_tokens, first.min_tokens) == (33, 2)
    assert {name: getattr(first.sampling, name) for name in fields} == fields
    assert (second.max_tokens, second.sampling.top_k) == (8192, -1)


def test_a_list_with_one_text_is_a_prompt(client: TestClient, filler: Any) -> None:
    assert client.post(URL, json=ask(["x = "], n=1, echo=False, logprobs=1, user="u")).status_code == 200
    assert filler.requests[0].parts.prefix == "x = "


def test_the_model_may_be_left_out(client: TestClient) -> None:
    assert client.post(URL, json={"prompt": "x"}).json()["model"] == "calomel-nano"
    assert client.post(URL, json={"prompt": "x", "model": ""}).status_code == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *each("prompt", None, 3, [], ["a", "b"], [1, 2], [[1]], {}),
        *each("n", 0, 2, 8, "1"),
        *each("max_tokens", 0, -1, 2**31, 1.5, True),
        *each("top_k", -2, 1001),
        ("echo", True),
        ("echo", "no"),
        ("temperature", 2.1),
        ("stop", ["x"] * 17),
        ("stream", "yes"),
        ("suffix", 3),
        ("model", 3),
    ],
)
def test_wrong_values_are_refused_by_name(client: TestClient, filler: Any, field: str, value: Any) -> None:
    answer = client.post(URL, json=ask(**{field: value}) if field != "prompt" else ask(value))

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == field
    assert filler.requests == []


def test_a_stream_has_deltas_and_ends(client: TestClient) -> None:
    answer = client.post(URL, json=ask(QWEN, stream=True, stream_options={"include_usage": True}))

    assert answer.headers["content-type"].startswith("text/event-stream")
    *chunks, end, usage = events(answer.text)
    assert [chunk["choices"][0]["text"] for chunk in chunks] == ["return ", "n"]
    assert [chunk["choices"][0]["finish_reason"] for chunk in (*chunks, end)] == [None, None, "stop"]
    assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 38)
    assert {chunk["object"] for chunk in (*chunks, end, usage)} == {"text_completion"}


def test_a_prompt_of_zeta21_is_answered_between_markers(client: TestClient) -> None:
    # As Zed sends it: no temperature, no stream.
    body = client.post(URL, json={"model": "zeta2.1", "prompt": ZETA21, "max_tokens": 2048, "stop": ZED_STOP}).json()

    assert body["choices"][0]["text"] == "<|marker_2|>    return width * height<|marker_3|>"
    assert body["choices"][0]["finish_reason"] == "stop"
    assert (body["object"], body["usage"]["prompt_tokens"] > 0) == ("text_completion", True)


def test_a_prompt_of_zeta2_is_answered_by_its_region(client: TestClient) -> None:
    body = client.post(URL, json=ask(ZETA2)).json()
    stopped = client.post(URL, json=ask(ZETA2, stop=[">>>>>>> UPDATED\n", ">>>>>>> UPDATED"])).json()

    region = "def area(width, height):\n    return width * height\n"
    assert body["choices"][0]["text"] == region + ">>>>>>> UPDATED\n"
    assert stopped["choices"][0]["text"] == region


@pytest.mark.parametrize(("prompt", "silence"), [(ZETA21, "<|marker_3|><|marker_3|>"), (ZETA2, "")])
def test_silence_is_said_as_zed_understands_it(client: TestClient, filler: Any, prompt: str, silence: str) -> None:
    filler.deltas = []
    prompt = prompt.replace("-def area(w, height):\n", "-def area(width):\n")

    body = client.post(URL, json=ask(prompt, stop=ZED_STOP)).json()

    assert body["choices"][0] == {"index": 0, "text": silence, "logprobs": None, "finish_reason": "stop"}


def test_an_edit_that_zed_would_misread_is_not_sent_and_not_counted_as_shown(client: TestClient) -> None:
    body = client.post(URL, json=ask(ZETA21, stop=[" * height"])).json()

    assert body["choices"][0]["text"] == "<|marker_3|><|marker_3|>"
    assert client.app.state.door.deliveries.find(body["id"]) is None  # type: ignore[attr-defined]


def test_an_edit_can_be_streamed(client: TestClient) -> None:
    first, end = events(client.post(URL, json=ask(ZETA21, stream=True)).text)

    assert first["choices"][0]["text"] == "<|marker_2|>    return width * height<|marker_3|>"
    assert (end["choices"][0]["text"], end["choices"][0]["finish_reason"]) == ("", "stop")


def test_what_was_answered_can_be_given_feedback_on(client: TestClient) -> None:
    deliveries = client.app.state.door.deliveries  # type: ignore[attr-defined]
    filled, edited = (client.post(URL, json=ask(prompt)).json()["id"] for prompt in (QWEN, ZETA21))

    assert (deliveries.find(filled).kind, deliveries.find(edited).kind) == ("fill", "edit")


def test_a_region_that_is_not_certain_is_refused_without_quoting_it(client: TestClient, filler: Any) -> None:
    answer = client.post(URL, json=ask(ZETA21.replace("def area", "SECRET<|marker_2|>")))

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "prompt")
    assert "SECRET" not in answer.text
    assert filler.requests == []


@pytest.mark.parametrize("url", [URL, "/api/generate", "/infill", "/api/fim/completions", "/api/edit/completions"])
def test_routes_want_a_token_and_json(client: TestClient, url: str) -> None:
    assert client.post(url, json=ask(), headers={"authorization": ""}).status_code == 401
    assert client.post(url, content="{}", headers={"content-type": "text/plain"}).status_code == 415


def test_a_gateways_names_lead_to_the_same_routes(client: TestClient) -> None:
    fill = client.post("/api/fim/completions", json={"model": "inception/mercury-edit-2", "prompt": "x = "}).json()
    content = "<|code_to_edit|>\na<|cursor|>\n<|/code_to_edit|>\n\n<|!@#IS_NEXT_EDIT!@#|>"
    messages = [{"role": "user", "content": content}]
    edit = client.post("/api/edit/completions", json={"model": "m", "messages": messages}).json()

    assert fill["choices"][0]["text"] == "return n"
    assert edit["choices"][0]["message"]["content"].startswith("```\na")


@pytest.mark.parametrize(
    "url",
    [
        "/completions",
        "/v1completions",
        "/fim/completions",
        "/v1fim/completions",
        "/beta/completions",
        "/v1/beta/completions",
    ],
)
def test_a_base_may_lack_its_slash_or_have_another_makers_path(client: TestClient, url: str) -> None:
    answer = client.post(url, json={"model": "m", "prompt": "def f(n):\n    ", "suffix": "\n"})
    assert (answer.status_code, answer.json()["choices"][0]["text"]) == (200, "return n")


def test_a_llama_server_is_asked_at_its_root_with_tokens_in_its_prompt(client: TestClient, filler: Any) -> None:
    prompt = "<|fim_prefix|>def f(n):\n    <|fim_suffix|>\n\nf(1)\n<|fim_middle|>"
    answer = client.post("/completion", json={"prompt": prompt, "n_predict": 16, "stream": False})
    assert (answer.status_code, answer.json()["content"], answer.json()["stop"]) == (200, "return n", True)
    assert (filler.requests[0].parts.prefix, filler.requests[0].parts.suffix) == ("def f(n):\n    ", "\n\nf(1)\n")


@pytest.mark.parametrize(
    "url",
    ["/edit/completions", "/v1edit/completions", "/apply/completions", "/chat/completions", "/v1chat/completions"],
)
def test_a_base_without_its_slash_reaches_every_route_for_answers(client: TestClient, url: str) -> None:
    right = client.post("/v1/" + url.removeprefix("/").removeprefix("v1"), json={})
    assert (client.post(url, json={}).json(), right.status_code) == (right.json(), 400)
