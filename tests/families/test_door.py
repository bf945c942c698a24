"""Every family behind the HTTP server, on a tiny random checkpoint in its published layout."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.families.published.layout import writers
from tests.server.conftest import TOKEN, until

from calomel.families.table import FAMILIES, find
from calomel.infer.completer import CANVAS, CompleteAnswer, CompleteRequest, Draft
from calomel.infer.in_process import open_filler
from calomel.infer.wire import decode, encode
from calomel.prompts.parts import EditRegion, Hunk, PromptParts
from calomel.server.app import create_app
from calomel.server.settings import ServeSettings

NEXT_EDIT = {"zeta2", "zeta2.1", "sweep-next-edit", "sweep-next-edit-v2"}
LEFT_TO_RIGHT = {"qwen2", "qwen3", "llama", *NEXT_EDIT}
JSON = {"content-type": "application/json"}
WRITERS = writers()
# What random weights say would be cut off as a whole.
FILL = {"prompt": "def add(a, b):\n    return ", "suffix": "\n\nadd(1, 2)\n", "max_tokens": 12, "min_tokens": 2}
REGION = "    return width * height\n"
EDIT = (
    "<|recently_viewed_code_snippets|>\n\n<|/recently_viewed_code_snippets|>\n\n"
    "<|current_file_content|>\ncurrent_file_path: shape.py\ndef area(width, height):\n"
    "<|code_to_edit|>\n    return w<|cursor|> * height\n<|/code_to_edit|>\n<|/current_file_content|>\n\n"
    "<|edit_diff_history|>\n--- shape.py\n+++ shape.py\n@@ -1,1 +1,1 @@\n-def area(w, height):\n"
    "+def area(width, height):\n<|/edit_diff_history|>\n"
)


@pytest.fixture(scope="module", params=sorted(WRITERS))
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("published") / request.param
    WRITERS[request.param](folder)
    assert find(folder).name == request.param
    settings = ServeSettings(token=TOKEN, model=folder, outcome_log=False)
    app = create_app(settings, lambda: open_filler(folder, dtype="float32", cache_tokens=4096))
    headers = {"authorization": f"Bearer {TOKEN}"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        until(lambda: app.state.app_state.loader.state in {"ready", "failed"}, 60)
        yield client


def post(client: TestClient, route: str, **body: Any) -> Any:
    return client.post(f"/v1/{route}/completions", json={"model": "m", **body})


def test_every_family_but_our_own_has_a_published_layout_to_be_tried_with() -> None:
    assert sorted({family.name for family in FAMILIES} - set(WRITERS)) == ["calomel"]


def test_a_hole_is_filled(client: TestClient) -> None:
    first, again = (post(client, "fim", temperature=0.0, **FILL) for _ in range(2))

    assert first.status_code == 200, first.text
    answer = first.json()
    assert answer["choices"] == again.json()["choices"]
    assert answer["choices"][0]["finish_reason"] in {"stop", "length"}
    assert 2 <= answer["usage"]["completion_tokens"] <= 12
    assert answer["usage"]["prompt_tokens"] > 8


def test_a_canvas_is_shown_while_it_is_denoised(client: TestClient) -> None:
    answer = post(client, "fim", stream=True, diffusing=True, **FILL)

    assert answer.status_code == 200, answer.text
    *states, done = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    assert done == "[DONE]"
    assert len(states) >= 2
    assert all("error" not in json.loads(state) for state in states)


def test_a_region_is_rewritten_and_a_draft_is_judged_where_the_model_can(
    client: TestClient, request: pytest.FixtureRequest
) -> None:
    parts = PromptParts(
        edits=(Hunk("shape.py", 0, "def area(w, height):\n", "def area(width, height):\n"),),
        path="shape.py",
        prefix="def area(width, height):\n",
        suffix="\nprint(area(1, 2))\n",
        region=EditRegion("    return w * height\n", 12),
    )
    asked = CompleteRequest("edit", parts, max_tokens=24, drafts=(Draft(REGION, "rename"),))

    answer = client.post("/calomel/v1/complete", content=encode(asked), headers=JSON)

    assert answer.status_code == 200, answer.text
    told = decode(answer.content, CompleteAnswer)
    by_maker = {each.maker: each for each in told.candidates}
    draft = by_maker.pop("rename")
    assert (draft.text, draft.log_prob is not None) == (REGION, told.judged)
    assert told.judged == (request.node.callspec.params["client"] in LEFT_TO_RIGHT)
    # In the format it was trained on a model sees the region, and random weights doubt it.
    assert CANVAS in by_maker or request.node.callspec.params["client"] not in NEXT_EDIT
    if not told.judged:
        assert told.candidates[-1] == draft
        assert by_maker[CANVAS].steps > 0


@pytest.mark.slow
def test_a_next_edit_is_asked_for_in_the_published_form(client: TestClient) -> None:
    answer = post(client, "edit", messages=[{"role": "user", "content": EDIT}])

    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"]["prompt_tokens"] > 8
    # Of random weights nothing is offered: the region comes back as it was, or as something that passed every filter.
    assert answer.json()["choices"][0]["message"]["content"].startswith("```\n")


def test_a_conversation_goes_on_where_the_checkpoint_brings_a_template(client: TestClient) -> None:
    messages = [{"role": "user", "content": "Name a colour."}]

    answer = post(client, "chat", messages=messages, max_tokens=8, temperature=0.0)

    if answer.status_code == 200:
        assert answer.json()["usage"]["prompt_tokens"] > 0
        assert answer.json()["usage"]["completion_tokens"] <= 8
    else:
        assert answer.status_code == 404, answer.text
        assert "chat template" in answer.json()["error"]["message"]
