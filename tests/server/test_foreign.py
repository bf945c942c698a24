"""Holes and regions as other servers are asked for them: OpenAI's older route, llama.cpp and Ollama; and plugins."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import events
from tests.server.test_asked import LLAMA_VIM, QWEN

from calomel.engine import DeadlineExceededError
from calomel.infer.launch import version
from calomel.prompts.parts import EditRegion, Hunk, PromptParts
from calomel.prompts.zeta import write_zeta
from calomel.server.routes.llama import indented
from calomel.suggest.outcome_log import outcome_log_path

HOLE = {"prompt": "def f(n):\n    ", "suffix": "\n"}


EDIT = (
    "<|current_file_content|>\ncurrent_file_path: a.py\n<|code_to_edit|>\nx = <|cursor|>1\n<|/code_to_edit|>\n"
    "<|/current_file_content|>\n\n<|edit_diff_history|>\n\n<|/edit_diff_history|>\n"
)


URL = "/v1/completions"


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


@pytest.mark.parametrize(
    ("path", "old", "line"),
    [
        ("shape.py", "width", "def area({}, height):"),
        ("shape.lua", "width", "local function area({}, height)"),
        ("shape.ts", "width", "function area({}: number, height: number): number {{"),
        ("shape.css", "--accent", "  {}: #fa0;"),
        ("shape.go", "width", "func area({} int, height int) int {{"),
    ],
)
def test_a_rename_goes_on_in_every_language(client: TestClient, path: str, old: str, line: str) -> None:
    before, after = line.format(old), line.format(f"{old}_new")
    hunk = Hunk(path, 1, f"{before}\n", f"{after}\n")
    later = f"\n  ({old}, {old} * 2)\n"
    parts = PromptParts(path=path, region=EditRegion(f"{after}{later}", len(after) + 2), edits=(hunk,))
    prompt, reply = write_zeta(parts, blocks=True)

    answer = client.post(URL, json=ask(prompt, max_tokens=2048, stop=ZED_STOP)).json()

    assert reply.read(answer["choices"][0]["text"]) == f"{after}{later.replace(old, f'{old}_new')}"


def test_a_prediction_that_the_user_did_not_take_stays_unknown(client: TestClient) -> None:
    # Zed never says what became of it; its next prompt shows it.
    client.post(URL, json=ask(ZETA21, stop=ZED_STOP))
    client.post(URL, json=ask(ZETA21.replace("return w", "return 2"), stop=ZED_STOP))

    assert not outcome_log_path().exists()


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


def test_what_was_answered_can_be_given_feedback_on(client: TestClient) -> None:
    deliveries = client.app.state.door.deliveries  # type: ignore[attr-defined]
    filled, edited = (client.post(URL, json=ask(prompt)).json()["id"] for prompt in (QWEN, ZETA21))

    assert (deliveries.find(filled).kind, deliveries.find(edited).kind) == ("fill", "edit")


def test_a_region_that_is_not_certain_is_refused_without_quoting_it(client: TestClient, filler: Any) -> None:
    answer = client.post(URL, json=ask(ZETA21.replace("def area", "SECRET<|marker_2|>")))

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "prompt")
    assert "SECRET" not in answer.text
    assert filler.requests == []


def test_a_llama_server_is_asked_at_its_root(client: TestClient) -> None:
    answer = client.post("/completion", json={"prompt": QWEN}).json()
    assert (answer["content"], answer["stop"]) == ("return n", True)


def test_the_model_may_be_left_out(client: TestClient) -> None:
    assert client.post(URL, json={"prompt": "x"}).json()["model"] == "calomel-nano"
    assert client.post(URL, json={"prompt": "x", "model": ""}).status_code == 200


# Right for every route: a hole, and a region to edit.
ANYTHING = {"model": "m", **HOLE, "messages": [{"role": "user", "content": EDIT}]}


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("/api/fim/completions", "fim/completions"),
        ("/api/edit/completions", "edit/completions"),
        ("/beta/completions", "completions"),
        ("/v1/beta/completions", "completions"),
        *(
            (base + path, path)
            for path in (
                *("completions", "fim/completions", "edit/completions"),
                *("apply/completions", "chat/completions"),
            )
            for base in ("/", "/v1")
        ),
    ],
)
def test_a_base_may_lack_its_slash_or_have_another_makers_path(client: TestClient, url: str, meant: str) -> None:
    found, right = (client.post(each, json=ANYTHING) for each in (url, f"/v1/{meant}"))
    assert (found.status_code, found.headers["content-type"]) == (right.status_code, right.headers["content-type"])
    for name in ("object", "choices", "error"):
        assert found.json().get(name) == right.json().get(name)


LLAMA_URL = "/infill"


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


def test_an_answer_has_llamacpps_shape(client: TestClient) -> None:
    body = client.post(LLAMA_URL, json=LLAMA_VIM).json()

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
    body = client.post(LLAMA_URL, json={**LLAMA_VIM, "response_fields": [*FIELDS, "no/such", "content/x", "/"]}).json()

    assert list(body) == FIELDS
    assert (body["content"], body["timings/prompt_n"], body["timings/predicted_per_second"]) == ("return n", 8, 1400.0)


def test_a_stream_has_deltas_and_an_end(client: TestClient) -> None:
    answer = client.post(LLAMA_URL, json={**LLAMA_VIM, "stream": True})

    *chunks, end = events(answer)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [(chunk["content"], chunk["stop"]) for chunk in chunks] == [("return ", False), ("n", False)]
    assert (end["content"], end["stop"], end["timings"]["predicted_n"]) == ("", True, 14)


def test_a_request_that_warms_a_cache_is_answered_at_once(client: TestClient, filler: Any) -> None:
    ask = {"input_prefix": "", "input_suffix": "", "prompt": "", "n_predict": 0, "samplers": [], "t_max_predict_ms": 1}
    body = client.post(LLAMA_URL, json={**ask, "input_extra": LLAMA_VIM["input_extra"]}).json()

    assert (body["content"], body["stop"]) == ("", True)
    assert filler.requests == []


@pytest.mark.parametrize("name", ["", ".", "/", "..", "a\x00b"])
def test_an_excerpt_of_a_file_with_any_name_is_taken(client: TestClient, name: str) -> None:
    extra = [{"filename": name, "text": "x = 1\n"}]

    assert client.post(LLAMA_URL, json={**LLAMA_VIM, "input_extra": extra}).status_code == 200


def test_an_answer_that_was_not_begun_in_time_is_empty(client: TestClient, filler: Any) -> None:
    filler.error = DeadlineExceededError("too late")

    answer = client.post(LLAMA_URL, json=LLAMA_VIM)

    assert (answer.status_code, answer.json()["content"], answer.json()["stop_type"]) == (200, "", "limit")


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


OLLAMA_URL = "/api/generate"


def ollama_ask(prompt: Any = QWEN, **fields: Any) -> dict[str, Any]:
    return {"model": "zeta2.1", "prompt": prompt, **fields}


@pytest.mark.parametrize("stream", [{}, {"stream": True}, {"stream": None}])
def test_without_a_word_on_it_the_answer_comes_in_lines(client: TestClient, stream: dict[str, Any]) -> None:
    answer = client.post(OLLAMA_URL, json=ollama_ask(**stream))

    assert answer.headers["content-type"] == "application/x-ndjson"
    *chunks, done = events(answer)
    assert [(chunk["response"], chunk["done"]) for chunk in chunks] == [("return ", False), ("n", False)]
    assert (done["response"], done["done"], done["done_reason"], done["eval_count"]) == ("", True, "stop", 14)


def test_an_error_in_a_stream_is_its_last_line(client: TestClient, filler: Any) -> None:
    filler.error, filler.error_after = RuntimeError("boom"), 1

    first, error = events(client.post(OLLAMA_URL, json=ollama_ask()))

    assert first["response"] == "return "
    assert error["error"]["code"] == "server_error"


def test_a_prompt_of_zeds_is_answered_between_markers(client: TestClient) -> None:
    options = {"num_predict": 512, "temperature": 0.2, "stop": ["<[end▁of▁sentence]>"]}
    plain = client.post(OLLAMA_URL, json=ollama_ask(ZETA21, raw=True, stream=False, options=options)).json()
    first, done = events(client.post(OLLAMA_URL, json=ollama_ask(ZETA21, raw=True, options=options)))

    assert plain["response"] == first["response"] == "<|marker_2|>    return width * height<|marker_3|>"
    assert (plain["done"], first["done"], done["done"], done["response"]) == (True, False, True, "")


@pytest.mark.parametrize("body", [{"model": "m"}, {"model": "m", "prompt": "", "keep_alive": 0}, {}])
def test_an_empty_prompt_asks_for_the_model_alone(client: TestClient, filler: Any, body: dict[str, Any]) -> None:
    answer = client.post(OLLAMA_URL, json={**body, "stream": False}).json()

    assert (answer["response"], answer["done"], answer["done_reason"]) == ("", True, "load")
    assert filler.requests == []


def test_the_model_is_listed(client: TestClient) -> None:
    (tag,) = client.get("/api/tags").json()["models"]

    assert tag["name"] == tag["model"] == "calomel-nano"
    assert datetime.fromisoformat(tag["modified_at"])
    assert client.get("/api/version").json() == {"version": version()}


def test_every_address_on_the_page_about_plugins_is_a_route(client: TestClient) -> None:
    page = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")
    found = set(re.findall(r"http://127\.0\.0\.1:8017(/[\w/]*)", page))
    assert "/infill" in found
    for address in found:
        # A base with its slash, to which its client adds a path.
        url = address + "completions" if address.endswith("/") else address
        assert client.post(url, json=ANYTHING).status_code in {200, 400}, url
