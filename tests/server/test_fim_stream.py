from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from calomel.suggest.completer import CanvasText

URL = "/v1/fim/completions"


def ask(**fields: Any) -> dict[str, Any]:
    return {"model": "mercury-edit-2", "prompt": "def f(n):\n    ", "stream": True, **fields}


def events(text: str) -> list[Any]:
    assert text.endswith("\n\n")
    lines = text[:-2].split("\n\n")
    assert all(line.startswith("data: ") and "\n" not in line for line in lines)
    return [line if line == "data: [DONE]" else json.loads(line[6:]) for line in lines]


def test_a_stream_is_deltas_a_finish_reason_and_done(client: TestClient) -> None:
    answer = client.post(URL, json=ask())

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    *chunks, done = events(answer.text)
    assert done == "data: [DONE]"
    assert [chunk["choices"] for chunk in chunks] == [
        [{"index": 0, "text": "return ", "finish_reason": None}],
        [{"index": 0, "text": "n", "finish_reason": None}],
        [{"index": 0, "text": "", "finish_reason": "stop"}],
    ]
    assert {key for chunk in chunks for key in chunk} == {"id", "object", "created", "model", "choices"}
    assert {(chunk["object"], chunk["model"]) for chunk in chunks} == {("text_completion", "mercury-edit-2")}
    assert len({(chunk["id"], chunk["created"]) for chunk in chunks}) == 1
    assert chunks[0]["id"].startswith("cmpl-")


def test_usage_comes_in_a_chunk_without_choices_when_asked_for(client: TestClient) -> None:
    *_, last, done = events(client.post(URL, json=ask(stream_options={"include_usage": True})).text)

    assert done == "data: [DONE]"
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == 38
    assert last["usage"]["cached_input_tokens"] == last["usage"]["prompt_tokens_details"]["cached_tokens"] == 16


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"include_usage": None}])
def test_no_usage_chunk_comes_unasked(client: TestClient, options: Any) -> None:
    assert '"usage"' not in client.post(URL, json=ask(stream_options=options)).text


def test_an_empty_answer_is_a_finish_reason_alone(client: TestClient, filler: Any) -> None:
    filler.deltas = []
    chunk, done = events(client.post(URL, json=ask()).text)

    assert chunk["choices"] == [{"index": 0, "text": "", "finish_reason": "stop"}]
    assert done == "data: [DONE]"


def test_line_ends_in_the_text_do_not_break_the_framing(client: TestClient, filler: Any) -> None:
    filler.deltas = ["a\n\ndata: [DONE]\n\n", "\r\u2028é🙂"]
    *chunks, _, _ = events(client.post(URL, json=ask()).text)

    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == "a\n\ndata: [DONE]\n\n\r\u2028é🙂"


def test_an_error_amid_a_stream_is_its_last_event_and_done_does_not_follow(client: TestClient, filler: Any) -> None:
    filler.error, filler.error_after = ValueError("inner words"), 1
    text = client.post(URL, json=ask()).text
    first, last = events(text)

    assert first["choices"][0]["text"] == "return "
    assert last["error"]["type"] == "server_error"
    assert "inner words" not in text


def test_a_diffusing_stream_is_whole_canvases_that_take_each_others_place(client: TestClient, filler: Any) -> None:
    filler.canvas_states = [
        CanvasText(1, "ret\u2591", ("ret", "\u2591"), (True, False)),
        CanvasText(2, "return n", ("return", " n"), (True, True)),
    ]

    *chunks, done = events(client.post(URL, json=ask(diffusing=True)).text)

    assert done == "data: [DONE]"
    assert [chunk["choices"][0]["text"] for chunk in chunks] == ["ret\u2591", "return n", "return n"]
    assert [chunk.get("calomel") for chunk in chunks] == [
        {"step": 1, "pieces": ["ret", "\u2591"], "revealed": [True, False]},
        {"step": 2, "pieces": ["return", " n"], "revealed": [True, True]},
        None,
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "stop"]


def test_diffusing_without_a_stream_is_a_plain_answer(client: TestClient) -> None:
    answer = client.post(URL, json=ask(stream=False, diffusing=True))

    assert answer.json()["choices"][0]["text"] == "return n"
