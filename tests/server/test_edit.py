from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

URL = "/v1/edit/completions"
FILE = "def area(width, height):\n    return w * height\n\nprint(area(1, 2))\n"
REGION = "    return w<|cursor|> * height\n"


def prompt(region: str = REGION, history: str = "-def area(w, height):\n+def area(width, height):\n") -> str:
    return (
        "<|recently_viewed_code_snippets|>\n\n<|/recently_viewed_code_snippets|>\n\n"
        "<|current_file_content|>\ncurrent_file_path: shape.py\ndef area(width, height):\n"
        f"<|code_to_edit|>\n{region}<|/code_to_edit|>\n\nprint(area(1, 2))\n<|/current_file_content|>\n\n"
        f"<|edit_diff_history|>\n--- shape.py\n+++ shape.py\n@@ -1,1 +1,1 @@\n{history}<|/edit_diff_history|>\n"
    )


def ask(content: Any = None, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt() if content is None else content}]
    return {"model": "mercury-edit", "messages": messages, **fields}


def test_a_rename_goes_on_in_the_region(client: TestClient) -> None:
    answer = client.post(URL, json=ask())

    assert answer.status_code == 200
    body = answer.json()
    assert body["object"] == "edit.completion"
    (choice,) = body["choices"]
    assert choice["message"] == {
        "role": "assistant",
        "content": "```\n    return width * height\n```",
        "tool_calls": [],
    }
    assert choice["finish_reason"] == "stop"
    assert body["id"].startswith("cmpl-")
    assert body["usage"]["prompt_tokens"] == 24


def test_without_anything_to_do_the_region_comes_back_as_it_was(client: TestClient, filler: Any) -> None:
    filler.deltas = []
    content = prompt(history="")

    body = client.post(URL, json=ask(content)).json()

    assert body["choices"][0]["message"]["content"] == "```\n    return w * height\n```"


def test_what_is_offered_is_remembered_for_feedback_and_what_is_not_is_not(client: TestClient, filler: Any) -> None:
    door = client.app.state.door  # type: ignore[attr-defined]
    offered = client.post(URL, json=ask()).json()["id"]
    filler.deltas = []
    silent = client.post(URL, json=ask(prompt(history=""))).json()["id"]

    delivered = door.deliveries.find(offered)
    assert (delivered.kind, delivered.maker, delivered.language_id) == ("edit", "rename", "python")
    assert door.deliveries.find(silent) is None


def test_shown_and_suppressed_are_counted_by_reason(client: TestClient, filler: Any) -> None:
    metrics = client.app.state.door.metrics  # type: ignore[attr-defined]
    client.post(URL, json=ask())
    filler.deltas = []
    client.post(URL, json=ask(prompt(history="")))

    def count(verdict: str) -> float | None:
        value: float | None = metrics.registry.get_sample_value("calomel_suggestions_total", {"verdict": verdict})
        return value

    assert count("shown") == 1
    assert count("empty") == 1


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "m"}, "messages"),
        ({"model": "m", "messages": []}, "messages"),
        ({"model": "m", "messages": [{"role": "system", "content": "x"}]}, "messages.role"),
        ({"model": "m", "messages": [{"role": "user", "content": "x"}] * 2}, "messages"),
        ({"model": "m", "messages": [{"role": "user", "content": 3}]}, "messages.content"),
        ({"model": "m", "messages": [{"role": "user", "content": "no region"}]}, "messages"),
        ({"messages": [{"role": "user", "content": "x"}]}, "model"),
        (ask(temperature=3), "temperature"),
        (ask(max_tokens=0), "max_tokens"),
        (ask(top_p=-1), "top_p"),
    ],
)
def test_a_wrong_request_is_refused_by_the_name_of_its_field(client: TestClient, body: Any, param: str) -> None:
    answer = client.post(URL, json=body)

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param


def test_content_in_parts_is_read_as_one_text(client: TestClient) -> None:
    whole = prompt()
    parts = [{"type": "text", "text": whole[:200]}, {"type": "text", "text": whole[200:]}]

    body = client.post(URL, json=ask(parts)).json()

    assert "width * height" in body["choices"][0]["message"]["content"]


def test_a_stream_has_the_whole_answer_as_chat_chunks(client: TestClient) -> None:
    text = client.post(URL, json=ask(stream=True, stream_options={"include_usage": True})).text

    *lines, done = [line.removeprefix("data: ") for line in text.strip().split("\n\n")]
    assert done == "[DONE]"
    first, last, usage = map(json.loads, lines)
    assert first["object"] == "chat.completion.chunk"
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": "```\n    return width * height\n```"}
    assert last["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == []
    assert usage["usage"]["total_tokens"] > 0


def test_a_secret_reaches_neither_model_nor_log_and_comes_back_untouched(
    client: TestClient, filler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="calomel")
    key = "AKIAIOSFODNN7EXAMPLQ"
    filler.deltas = []

    body = client.post(URL, json=ask(prompt(region=f'key = "{key}"\n', history=""))).json()

    assert body["choices"][0]["message"]["content"] == f'```\nkey = "{key}"\n```'
    assert key not in caplog.text
    assert key not in str(filler.requests)


def test_a_quiet_server_keeps_more_to_itself(open_client: Callable[..., TestClient], filler: Any) -> None:
    filler.deltas = []
    body = open_client(aggressiveness=1.0).post(URL, json=ask()).json()

    assert body["choices"][0]["message"]["content"] == "```\n    return w * height\n```"
