"""POST /v1/apply/completions, with a model that decides by a script."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.server.conftest import FakeFiller
from tests.suggest.apply.made_snippets import by_definitions, by_hunks

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

    monkeypatch.setattr(filler, "complete", rewrite, raising=False)
    client = open_client()
    app = client.app
    assert isinstance(app, FastAPI)
    info = ModelInfo("scripted", "w", ("fill", "edit"), 8192, 2048, None, "0")
    monkeypatch.setattr(type(app.state.door.loader), "info", lambda self: info)
    answer = client.post(APPLY, json=ask(TWICE, TWO_PLACES)).json()
    assert answer["choices"][0]["message"]["content"].endswith("    prepare()\n    check()\n    finish()\n")
    assert answer["warning"] is None
    assert (answer["usage"]["prompt_tokens"], answer["usage"]["cached_input_tokens"]) == (40, 8)


def streamed(client: TestClient, body: dict[str, Any]) -> tuple[str, str | None]:
    """What a stream adds up to, and its warning."""
    events = client.post(APPLY, json={**body, "stream": True}).text.strip().split("\n\n")
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-1]]
    text = "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])
    return text, chunks[-1]["warning"]


@pytest.mark.parametrize(
    ("original", "update"),
    [
        pytest.param(ORIGINAL, "def one():\n    return (1\n\n\ndef two():\n    return 2\n", id="the whole file"),
        pytest.param(ORIGINAL, "def one():\n    return 1\n\n\ndef two():\n", id="the whole file, cut"),
        pytest.param(ORIGINAL, UPDATE.replace("    return", "        pass\n    return"), id="indentation"),
        pytest.param(ORIGINAL, UPDATE.replace("22", "'22"), id="an open string"),
        pytest.param("try:\n    a()\nexcept E:\n    b()\n", "try:\n    a()\n    b()\n", id="try alone"),
        pytest.param(
            "".join(f"def f{n}(a, b):\n    if a:\n        return b\n    return {n}\n\n\n" for n in range(600))
            + ORIGINAL,
            "# ...\ndef f7(a, b):\n    if a:\n        return (b\n    return 7\n# ...\n",
            id="a long file",
        ),
        pytest.param(
            "export function one() {\n  return 1;\n}\n", "export function one() {\n  return 1;\n", id="TypeScript"
        ),
    ],
)
def test_no_file_gets_syntax_errors(client: TestClient, original: str, update: str) -> None:
    answer = client.post(APPLY, json=ask(original, update)).json()
    assert answer["choices"][0]["message"]["content"] == original
    assert "syntax errors" in answer["warning"]
    assert streamed(client, ask(original, update)) == (original, answer["warning"])


def test_a_file_may_turn_out_to_be_another_dialect(client: TestClient) -> None:
    original = "export function Title(props: Props) {\n  return props.text;\n}\n"
    update = "export function Title(props: Props) {\n  return <h1>{props.text}</h1>;\n}\n"
    assert client.post(APPLY, json=ask(original, update)).json()["choices"][0]["message"]["content"] == update


def test_an_empty_file_becomes_anything(client: TestClient) -> None:
    for update in ("# TODO\ncat a | wc -l\n", "# TODO\ndef one(:\n", "# TODO\n- a: {b\n"):
        assert client.post(APPLY, json=ask("# TODO\n", update)).json()["choices"][0]["message"]["content"] == update


def test_a_file_with_an_error_can_be_mended_and_edited_elsewhere(client: TestClient) -> None:
    broken = ORIGINAL.replace("return 1", "return (1")
    mended = client.post(APPLY, json=ask(broken, "def one():\n    return 1\n# ... existing code ...\n")).json()
    assert (mended["choices"][0]["message"]["content"], mended["warning"]) == (ORIGINAL, None)
    edited = client.post(APPLY, json=ask(broken, UPDATE)).json()
    assert edited["choices"][0]["message"]["content"] == MERGED.replace("return 1", "return (1")


def generated(rng: random.Random) -> str:
    """A Python file of functions and a class."""
    body = [
        "x = {n}",
        "if a:\n        b({n})\n    else:\n        c()",
        "for i in a:\n        b(i)",
        "return [\n        {n},\n    ]",
    ]

    def function(n: int) -> str:
        inner = "\n".join("    " + line.format(n=n) for line in rng.choices(body, k=rng.randint(1, 4)))
        return f"def f{n}(a, b):\n{inner}\n"

    parts = [function(n) for n in range(rng.randint(1, 5))]
    methods = "\n".join("    " + line if line else "" for line in function(9).split("\n"))
    return "\n\n".join(["import os\n", *parts, f"class C:\n{methods.rstrip()}\n"])


def mangled(text: str, rng: random.Random) -> str:
    """The text as somebody might send it who made a mistake or two."""
    lines = text.splitlines(keepends=True)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        line = lines[at]
        changed: list[list[str]] = [
            [],
            [line, line],
            ["    " + line],
            [line.removeprefix("    ")],
            [line.rstrip("\n") + rng.choice(["(", "[", '"', '"""']) + "\n"],
            ["# ... existing code ...\n"],
            [line[: len(line) // 2].rstrip() + "\n"],
        ]
        lines[at : at + 1] = rng.choice(changed)
        if not lines:
            return "pass\n"
    return "".join(lines)


def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def test_a_file_that_parses_still_parses_whatever_the_update_is(client: TestClient) -> None:
    rng = random.Random(4)
    merged = 0
    for _ in range(150):
        original = generated(rng)
        after = mangled(original, rng)
        update = rng.choice(
            [
                after,
                by_hunks(original, after, "a.py", rng.randint(0, 3)),
                by_definitions(original, after, "a.py"),
                mangled(by_hunks(original, after, "a.py", 2) or "pass\n", rng),
            ]
        )
        answer = client.post(APPLY, json=ask(original, update)).json()
        text = answer["choices"][0]["message"]["content"]
        assert parses(text), update
        assert streamed(client, ask(original, update)) == (text, answer["warning"])
        merged += text != original
    assert merged > 10
