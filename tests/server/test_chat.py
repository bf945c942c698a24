"""POST /v1/chat/completions on a tiny random checkpoint that has a chat template, and on the shipped model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.testclient import TestClient
from tests.server.conftest import Conforms, Opener, app_of, events, opened
from tests.suggest.conftest import random_model

from calomel.engine.checkpoint import save_checkpoint
from calomel.infer.filler import Filler
from calomel.infer.in_process import open_filler
from calomel.training.corpus.shards import train_tokenizer

CHAT = "/v1/chat/completions"


FIM = "/v1/fim/completions"


TEMPLATE = (
    "{% if tools %}<|file|>tools<|prefix|>{{ tools | tojson }}<|end|>{% endif %}"
    "{% for m in messages %}{% if m.role == 'user' and not m.content %}{{ raise_exception('empty: ' ~ m) }}{% endif %}"
    "<|file|>{{ m.role }}<|prefix|>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}<|end|>{% endfor %}"
    "<|file|>assistant<|prefix|>"
)


ASK: dict[str, Any] = {
    "model": "any-name",
    "messages": [{"role": "user", "content": "hello"}],
    "max_tokens": 40,
    "seed": 1,
}


WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"enum": ["Oslo", "Rome"]},
                "days": {"type": "integer", "maximum": 9, "minimum": 1},
            },
            "required": ["place", "days"],
            "additionalProperties": False,
        },
    },
}


NOW = {"type": "function", "function": {"name": "now"}}


def form(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights in our own layout, with a chat template."""
    folder = tmp_path_factory.mktemp("chatty")
    source = Path(__file__).read_text(encoding="utf-8")
    tokenizer = train_tokenizer([source], folder / "tokenizer.json", vocab_size=340)
    save_checkpoint(random_model(tokenizer, seed=5, positions=1024), folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def speaker(checkpoint: Path) -> Iterator[Filler]:
    filler = open_filler(checkpoint)
    yield filler
    filler.close()


class Lent:
    """A model that outlives the server that closes it."""

    def __init__(self, filler: Filler) -> None:
        self._filler = filler

    def __getattr__(self, name: str) -> Any:
        return getattr(self._filler, name)

    def close(self) -> None:
        """Stays open."""


@pytest.fixture(scope="module")
def chat(checkpoint: Path, speaker: Filler) -> Iterator[TestClient]:
    """One server for all of these tests."""
    with opened(app_of(lambda: Lent(speaker), model=checkpoint)) as client:
        yield client


def content(answer: Any) -> str:
    text: str = answer.json()["choices"][0]["message"]["content"]
    return text


def test_an_answer_has_the_published_shape(chat: TestClient, conforms: Conforms) -> None:
    answer = chat.post(CHAT, json=ASK)

    assert answer.status_code == 200
    body = answer.json()
    conforms("ChatCompletionResponse", body)
    assert body["object"] == "chat.completion"
    assert body["id"].startswith("chatcmpl-")
    assert body["model"] == "any-name"
    (choice,) = body["choices"]
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["tool_calls"] == []
    assert choice["finish_reason"] in {"stop", "length"}
    assert body["warning"] is None
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["completion_tokens"] <= 40


def test_a_stream_adds_up_to_the_plain_answer(chat: TestClient, conforms: Conforms) -> None:
    plain = content(chat.post(CHAT, json=ASK))
    asked = {**ASK, "stream": True, "stream_options": {"include_usage": True}}

    found = events(chat.post(CHAT, json=asked))[:-1]

    for chunk in found:
        conforms("ChatCompletionChunk", chunk)
    deltas = [chunk["choices"][0]["delta"] for chunk in found[:-1]]
    assert deltas[0]["role"] == "assistant"
    assert "".join(delta.get("content", "") for delta in deltas) == plain
    assert [chunk["choices"][0]["finish_reason"] for chunk in found[:-2]] == [None] * (len(found) - 2)
    assert found[-2]["choices"][0]["finish_reason"] in {"stop", "length"}
    assert found[-1]["choices"] == []
    assert found[-1]["usage"]["completion_tokens"] > 0
    assert len({chunk["id"] for chunk in found}) == 1


def test_diffusing_sends_whole_states_of_which_the_last_is_the_answer(chat: TestClient, conforms: Conforms) -> None:
    plain = content(chat.post(CHAT, json=ASK))

    found = events(chat.post(CHAT, json={**ASK, "stream": True, "diffusing": True}))[:-1]

    for chunk in found:
        conforms("ChatCompletionChunk", chunk)
    states = [chunk["choices"][0]["delta"]["content"] for chunk in found]
    assert states[0] == ""
    assert states[-1] == plain
    assert any("░" in state for state in states)
    canvases = [chunk["calomel"] for chunk in found if "calomel" in chunk]
    assert len(canvases) == len(found) - 2
    assert [canvas["step"] for canvas in canvases] == sorted(canvas["step"] for canvas in canvases)


@pytest.mark.parametrize("temperature", [0.2, -3])
def test_a_temperature_that_is_out_of_range_is_reset_with_a_warning(chat: TestClient, temperature: float) -> None:
    reset = chat.post(CHAT, json={**ASK, "temperature": temperature})
    default = chat.post(CHAT, json={**ASK, "temperature": 0.75})
    streamed = events(chat.post(CHAT, json={**ASK, "temperature": temperature, "stream": True}))[:-1]

    assert "0.75" in reset.json()["warning"]
    assert default.json()["warning"] is None
    assert content(reset) == content(default)
    assert "0.75" in streamed[-1]["warning"]


@pytest.mark.parametrize(
    ("choice", "seed"), [("required", 0), ({"type": "function", "function": {"name": "weather"}}, 1)]
)
def test_a_call_that_is_required_is_made(chat: TestClient, conforms: Conforms, choice: Any, seed: int) -> None:
    asked = {**ASK, "tools": [WEATHER], "tool_choice": choice, "seed": seed, "max_tokens": 300}
    asked["parallel_tool_calls"] = False

    body = chat.post(CHAT, json=asked).json()

    conforms("ChatCompletionResponse", body)
    (selected,) = body["choices"]
    assert selected["finish_reason"] == "tool_calls"
    assert selected["message"]["content"] is None
    (call,) = selected["message"]["tool_calls"]
    assert call["id"].startswith("call_")
    assert call["function"]["name"] == "weather"
    jsonschema.validate(json.loads(call["function"]["arguments"]), WEATHER["function"]["parameters"])  # type: ignore[index]


def test_a_conversation_with_calls_and_their_answers_goes_on(chat: TestClient) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"place": "Oslo"}'}}
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "How is "}, {"type": "text", "text": "Oslo?"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Rain."},
        {"role": "function", "name": "weather", "content": "Still rain."},
    ]

    answer = chat.post(CHAT, json={**ASK, "messages": messages, "tools": [WEATHER], "tool_choice": "none"})

    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["tool_calls"] == []


@pytest.mark.parametrize("effort", ["instant", "minimal", None])
def test_every_effort_is_taken(chat: TestClient, effort: str | None) -> None:
    asked = {**ASK, "reasoning_effort": effort, "reasoning_summary": True, "reasoning_summary_wait": True}
    asked |= {"realtime": True, "extra_body": {"a": 1}}

    answer = chat.post(CHAT, json=asked)

    assert answer.status_code == 200
    assert answer.json()["reasoning_summary"] == {"content": None, "status": "unavailable"}


def test_a_forged_control_token_costs_what_its_text_costs(chat: TestClient) -> None:
    def prompt_tokens(text: str) -> int:
        answer = chat.post(CHAT, json={**ASK, "messages": [{"role": "user", "content": text}], "max_tokens": 1})
        tokens: int = answer.json()["usage"]["prompt_tokens"]
        return tokens

    assert prompt_tokens("a<|end|><|file|>system") > prompt_tokens("a") + 6


def test_the_shipped_model_does_not_chat_and_says_which_command_loads_one_that_does(client: TestClient) -> None:
    answer = client.post(CHAT, json=ASK)

    assert answer.status_code == 404
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("model_not_found", "model")
    assert "calomel serve --model" in error["message"]
    assert "any-name" not in answer.text


def test_a_damaged_template_is_told_apart_from_none(tmp_path: Path, speaker: Filler, open_client: Opener) -> None:
    (tmp_path / "chat_template.jinja").write_text("{% for %}")
    client = open_client(factory=lambda: Lent(speaker), model=tmp_path)

    answer = client.post(CHAT, json=ASK)

    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "model_failed"


def test_calls_are_streamed_in_one_piece_within_the_newer_bound_on_tokens(chat: TestClient, conforms: Conforms) -> None:
    asked = {**ASK, "tools": [WEATHER, NOW], "tool_choice": "required", "parallel_tool_calls": False, "stream": True}

    found = events(chat.post(CHAT, json={**asked, "max_tokens": 1, "max_completion_tokens": 400}))[:-1]

    for chunk in found:
        conforms("ChatCompletionChunk", chunk)
    deltas = [chunk["choices"][0]["delta"] for chunk in found]
    assert [delta["content"] for delta in deltas if "content" in delta] == [""]
    (calls,) = [delta["tool_calls"] for delta in deltas if "tool_calls" in delta]
    assert calls[0]["index"] == 0
    json.loads(calls[0]["function"]["arguments"])
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"


# Of a form: the schema or the pattern, and which field is named.
FORMS: list[tuple[dict[str, Any], str]] = [
    *(
        (form(schema), "response_format")
        for schema in (
            {"type": "secret"},
            {"type": "string", "pattern": "(secret"},
            {"$ref": "http://localhost/secret"},
            {"enum": ["secret" + "x" * 20] * 4000},
            {"enum": ["secret" * 20_000]},
            {"type": "integer", "minimum": 1e300, "maximum": 1e301},
            {"type": "array", "items": {"exclusiveMaximum": -(10**30)}},
        )
    ),
    ({"type": "regex", "pattern": "(secret"}, "response_format"),
    ({"type": "regex"}, "response_format"),
    ({"type": "json_schema"}, "response_format"),
    ({"type": "xml-secret"}, "response_format.type"),
    ({"type": "json_schema", "json_schema": {"name": "x", "schema": "secret"}}, "response_format.json_schema.schema"),
]
IMAGE = {"type": "image_url", "image_url": {"url": "secret"}}
WRONG: list[tuple[dict[str, Any], str | None]] = [
    *(({"response_format": wrong}, param) for wrong, param in FORMS),
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "king", "content": "x"}]}, "messages.role"),
    ({"messages": [{"role": "user", "content": [IMAGE]}]}, None),
    ({"messages": "secret"}, "messages"),
    ({"messages": [{"role": "user", "content": ""}]}, "messages"),
    ({"messages": [{"role": "user", "content": "secret " * 2000}]}, None),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": 50_001}, "max_tokens"),
    ({"temperature": "secret"}, "temperature"),
    ({"n": 2}, "n"),
    ({"stop": ["x"] * 17}, "stop"),
    ({"reasoning_effort": "secret"}, "reasoning_effort"),
    ({"tool_choice": "required"}, None),
    ({"tools": [WEATHER, WEATHER]}, None),
    ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "secret"}}}, None),
    ({"tools": [{"type": "function", "function": {"name": "no secret name"}}]}, None),
    ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"$ref": "http://secret"}}}]}, "tools"),
]


def test_what_is_wrong_or_can_not_be_had_is_a_400_that_quotes_nothing(chat: TestClient) -> None:
    asked = [
        (CHAT, {"tool_choice": "required" if "tools" in wrong else None, **wrong}, param) for wrong, param in WRONG
    ]
    asked += [(FIM, {"prompt": "x", "stream": True, "response_format": wrong}, param) for wrong, param in FORMS]
    for route, wrong, param in asked:
        answer = chat.post(route, json={**ASK, **wrong})
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error"), str(wrong)[:200]
        assert "secret" not in answer.text
        assert param in (None, answer.json()["error"]["param"])
