"""POST /v1/apply/completions, with a model that decides by a script."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.server.conftest import FakeFiller

from calomel.suggest.completer import Candidate, CompleteAnswer, ModelInfo

APPLY = "/v1/apply/completions"
ORIGINAL = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
UPDATE = "# ... existing code ...\ndef two():\n    return 22\n"
MERGED = "def one():\n    return 1\n\n\ndef two():\n    return 22\n"
TWICE = "def one():\n    prepare()\n    finish()\n\n\ndef two():\n    prepare()\n    finish()\n"
TWO_PLACES = "# ... existing code ...\n    prepare()\n    check()\n    finish()\n# ... existing code ...\n"


def ask(original: str = ORIGINAL, update: str = UPDATE, **fields: Any) -> dict[str, Any]:
    text = f"<|original_code|>\n{original}\n<|/original_code|>\n\n<|update_snippet|>\n{update}\n<|/update_snippet|>"
    return {"model": "mercury-edit-2", "messages": [{"role": "user", "content": text}], **fields}


def test_the_merged_file_is_the_whole_answer(client: TestClient) -> None:
    answer = client.post(APPLY, json=ask()).json()
    [choice] = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": MERGED, "tool_calls": []}
    assert choice["finish_reason"] == "stop"
    assert (answer["object"], answer["model"], answer["warning"]) == ("chat.completion", "mercury-edit-2", None)
    assert answer["id"].startswith("cmpl-")
    assert answer["usage"]["total_tokens"] == 0


def test_a_stream_adds_up_to_the_merged_file(client: TestClient) -> None:
    body = ask(stream=True, stream_options={"include_usage": True}, diffusing=False)
    events = client.post(APPLY, json=body).text.strip().split("\n\n")
    assert events[-1] == "data: [DONE]"
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-1]]
    assert "".join(choice["delta"]["content"] for chunk in chunks for choice in chunk["choices"]) == MERGED
    assert [chunk["object"] for chunk in chunks] == ["chat.completion.chunk"] * 3
    assert chunks[-1]["usage"]["prompt_tokens"] == 0


def test_what_cannot_be_merged_comes_back_as_it_was_with_a_warning(client: TestClient) -> None:
    answer = client.post(APPLY, json=ask(update="make it faster")).json()
    assert answer["choices"][0]["message"]["content"] == ORIGINAL
    assert "could not be placed" in answer["warning"]

    events = client.post(APPLY, json=ask(update="make it faster", stream=True)).text.strip().split("\n\n")
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-1]]
    assert chunks[0]["choices"][0]["delta"]["content"] == ORIGINAL
    assert "could not be placed" in chunks[-1]["warning"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"model": "m", "messages": [{"role": "user", "content": "hunter22"}]}, "<|original_code|>"),
        ({"model": "m", "messages": []}, "messages"),
        ({"model": "m", "messages": [{"role": "system", "content": "x"}]}, "user"),
        (ask(temperature=9), "temperature"),
        (ask(max_tokens=0), "max_tokens"),
        (ask(diffusing="yes"), "diffusing"),
    ],
)
def test_a_wrong_request_is_refused_without_being_quoted(client: TestClient, body: Any, says: str) -> None:
    answer = client.post(APPLY, json=body)
    assert answer.status_code == 400
    assert says in answer.json()["error"]["message"]
    assert "hunter22" not in answer.text


def test_where_several_places_fit_the_model_decides(
    open_client: Callable[..., TestClient], filler: FakeFiller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def rewrite(request: Any) -> CompleteAnswer:
        scores = [-9.0, -2.0]
        found = [
            Candidate(draft.text, maker=draft.maker, log_prob=score, keep_log_prob=-12.0)
            for draft, score in zip(request.drafts, scores, strict=True)
        ]
        return CompleteAnswer(tuple(found), context_tokens=40, cached_tokens=8)

    monkeypatch.setattr(filler, "arewrite", rewrite, raising=False)
    client = open_client()
    app = client.app
    assert isinstance(app, FastAPI)
    info = ModelInfo("scripted", "w", ("fill", "edit"), 8192, 2048, None, "0")
    monkeypatch.setattr(type(app.state.door.loader), "info", lambda self: info)
    answer = client.post(APPLY, json=ask(TWICE, TWO_PLACES)).json()
    assert answer["choices"][0]["message"]["content"].endswith("    prepare()\n    check()\n    finish()\n")
    assert answer["warning"] is None
    assert (answer["usage"]["prompt_tokens"], answer["usage"]["cached_input_tokens"]) == (40, 8)
