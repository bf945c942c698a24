"""Holes and regions as other servers are asked for them: OpenAI's older route, llama.cpp and Ollama; and plugins."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import events
from tests.server.test_edit import LLAMA_VIM, QWEN

from calomel.engine import DeadlineExceededError
from calomel.infer.completer import CompleteRequest, version
from calomel.infer.upstream.exchange import UpstreamError
from calomel.infer.wire import COMPLETE_PATH, encode
from calomel.prompts.parts import EditRegion, Hunk, PromptParts
from calomel.prompts.zeta import write_zeta
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
    assert client.app.state.app_state.deliveries.find(body["id"]) is None  # type: ignore[attr-defined]


def test_what_was_answered_can_be_given_feedback_on(client: TestClient) -> None:
    deliveries = client.app.state.app_state.deliveries  # type: ignore[attr-defined]
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


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("error", [DeadlineExceededError("too late"), UpstreamError("timeout", "too late")])
def test_an_answer_that_was_not_begun_in_time_is_empty(
    client: TestClient, filler: Any, error: Exception, *, stream: bool
) -> None:
    filler.error = error

    answer = client.post(LLAMA_URL, json={**LLAMA_VIM, "stream": stream})

    (body,) = events(answer) if stream else [answer.json()]
    assert (answer.status_code, body["content"], body["stop_type"]) == (200, "", "limit")


def test_an_upstream_that_hangs_is_an_error_for_a_client_that_set_no_bound(client: TestClient, filler: Any) -> None:
    filler.error = UpstreamError("timeout", "too late")

    assert client.post(LLAMA_URL, json={**LLAMA_VIM, "t_max_predict_ms": 0}).status_code == 503


def test_a_file_of_secrets_that_a_client_shows_beside_its_own_is_left_out(client: TestClient, filler: Any) -> None:
    extra = [{"filename": "deploy/.env", "text": "COLOUR=abracadabra\n"}, {"filename": "a.py", "text": "other = 1\n"}]
    client.post("/infill", json={"input_prefix": "x = ", "input_suffix": "\n", "input_extra": extra})
    assert "other = 1" in repr(filler.requests)
    assert "abracadabra" not in repr(filler.requests)


def test_of_long_excerpts_only_what_a_model_can_read_is_kept(client: TestClient, filler: Any) -> None:
    extra = [{"filename": f"{number}.py", "text": "x = 1\n" * 10_000} for number in range(20)]
    client.post(LLAMA_URL, json={**LLAMA_VIM, "input_extra": extra})

    related = filler.requests[-1].parts.related
    assert sum(len(each.text) for each in related) < 100_000
    assert related[-1].path == "19.py"


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
