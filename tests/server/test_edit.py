"""POST /v1/edit/completions, with a model that decides by a script."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import Opener, events

from calomel.prompts.parts import Excerpt

URL = "/v1/edit/completions"


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


def test_a_stream_has_the_whole_answer_as_chat_chunks(client: TestClient) -> None:
    first, last, usage, done = events(client.post(URL, json=ask(stream=True, stream_options={"include_usage": True})))
    assert done == "[DONE]"
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


def test_a_quiet_server_keeps_more_to_itself(open_client: Opener, filler: Any) -> None:
    filler.deltas = []
    body = open_client(aggressiveness=1.0).post(URL, json=ask()).json()

    assert body["choices"][0]["message"]["content"] == "```\n    return w * height\n```"


def test_a_rename_goes_on_in_the_region_whether_it_comes_in_one_text_or_in_parts(client: TestClient) -> None:
    whole = prompt()
    parts = [{"type": "text", "text": whole[:200]}, {"type": "text", "text": whole[200:]}]
    for content in (whole, parts):
        body = client.post(URL, json=ask(content)).json()
        (choice,) = body["choices"]
        assert choice["message"] == {
            "role": "assistant",
            "content": "```\n    return width * height\n```",
            "tool_calls": [],
        }
        assert (body["object"], choice["finish_reason"], body["id"][:5]) == ("edit.completion", "stop", "cmpl-")
        assert body["usage"]["prompt_tokens"] == 24


def test_what_is_offered_is_remembered_and_counted_and_silence_is_counted_by_its_reason(
    client: TestClient, filler: Any
) -> None:
    find = client.app.state.app_state.deliveries.find  # type: ignore[attr-defined]
    offered = client.post(URL, json=ask()).json()["id"]
    filler.deltas = []
    silent = client.post(URL, json=ask(prompt(history=""))).json()

    delivered = find(offered)
    assert (delivered.kind, delivered.maker, delivered.language_id) == ("edit", "rename", "python")
    assert silent["choices"][0]["message"]["content"] == "```\n    return w * height\n```"
    assert find(silent["id"]) is None
    counted = client.get("/calomel/v1/status").json()["suggestions"]
    assert counted == {"shown": 1, "suppressed": {"empty": 1}}


@pytest.mark.parametrize("unit", ["\n", "-\n", "--- a\n+++ a\n", "\r\n"])
def test_a_history_of_a_million_lines_keeps_nobody_else_waiting(client: TestClient, unit: str) -> None:
    """No turn of the event loop takes long: every test of this folder watches it."""
    history = unit * (1_000_000 // len(unit))
    body = client.post(URL, json=ask(prompt(history=f"{history}-def area(w, height):\n+def area(width, height):\n")))
    assert body.is_success


FIM, COMPLETIONS, INFILL, OLLAMA = "/v1/fim/completions", "/v1/completions", "/infill", "/api/generate"
QWEN = "<|fim_prefix|>def f(n):\n    <|fim_suffix|>\nf(1)\n<|fim_middle|>"
QWEN_FILES = (
    "<|repo_name|>r\n<|file_sep|>a.py\nx = 1\n<|file_sep|>b.py\n<|fim_prefix|>y = <|fim_suffix|>\n<|fim_middle|>"
)
PREFIX = "def f(n):\n    "
HOLE = {"prefix": PREFIX, "suffix": "\nf(1)\n"}
OTHER_FILE = (Excerpt("a.py", 0, "x = 1\n"),)
DRAWING = {"temperature": 0.7, "top_p": 0.5, "top_k": 40, "presence_penalty": 1.5, "seed": 7}
PENALTIES = {"frequency_penalty": -1.5, "repetition_penalty": 1.1}
GREEDY = {"temperature": 0.0, "top_p": 1.0, "top_k": -1, "seed": None}
NO_PENALTIES = {"frequency_penalty": 0.0, "presence_penalty": 0.0, "repetition_penalty": 1.0}
# As llama.vim and llama.vscode ask.
LLAMA_VIM = {
    "id_slot": 0,
    "input_prefix": "def f(n):\n",
    "input_suffix": "\nf(1)\n",
    "input_extra": [{"text": "x = 1\n", "time": [1, 2], "filename": "a.py"}],
    "prompt": "    ",
    "n_predict": 128,
    "stop": [],
    "n_indent": 4,
    "top_k": 40,
    "top_p": 0.99,
    "samplers": ["top_k", "top_p", "infill"],
    "cache_prompt": True,
    "t_max_prompt_ms": 500,
    "t_max_predict_ms": 1000,
}


def asked(url: str, body: dict[str, Any], expected: dict[str, Any], name: str) -> Any:
    return pytest.param(url, {"model": "m", **body}, expected, id=f"{url}: {name}")


def ollama(name: str, expected: dict[str, Any], **options: Any) -> Any:
    return asked(OLLAMA, {"prompt": QWEN, "stream": False, "options": options}, expected, name)


CASES = [
    asked(
        FIM, {"prompt": "\té\r\n", "suffix": " \u2028🙂"}, {"prefix": "\té\r\n", "suffix": " \u2028🙂"}, "every byte"
    ),
    asked(FIM, {"prompt": "x"}, {"suffix": "", "max_tokens": 512, "stop": ("\n\n", "\n \n")}, "published defaults"),
    asked(FIM, {"prompt": "x"}, GREEDY | NO_PENALTIES, "no penalties, and no chance, unasked"),
    asked(FIM, {"prompt": "x", **DRAWING, **PENALTIES}, DRAWING | PENALTIES, "how tokens are drawn"),
    asked(FIM, {"prompt": "x", "stop": ["END", "\n"]}, {"stop": ("END", "\n")}, "where to stop"),
    asked(FIM, {"prompt": "x", "max_tokens": 33, "max_steps": 3}, {"max_tokens": 33, "max_steps": 3}, "bounds"),
    asked(FIM, {"prompt": "x", "min_tokens": 32}, {"min_tokens": 32}, "a least length"),
    asked(FIM, {"prompt": "x", "top_p": 0, "temperature": 1}, GREEDY, "a top_p of zero is the most probable token"),
    asked(COMPLETIONS, {"prompt": QWEN}, HOLE, "tokens of other models say where the hole is"),
    asked(COMPLETIONS, {"prompt": PREFIX, "suffix": "\nf(1)\n"}, HOLE, "a suffix of its own"),
    *(
        asked(COMPLETIONS, {"prompt": PREFIX, "suffix": nothing}, {"prefix": PREFIX, "suffix": ""}, f"{nothing!r}")
        for nothing in ("", "<|endoftext|>", None)
    ),
    asked(COMPLETIONS, {"prompt": QWEN_FILES}, {"path": "b.py", "related": OTHER_FILE}, "files before the hole"),
    asked(COMPLETIONS, {"prompt": ["x = "], "n": 1, "echo": False, "logprobs": 1}, {"prefix": "x = "}, "a list"),
    asked(COMPLETIONS, {"prompt": "x", **DRAWING}, DRAWING, "how tokens are drawn"),
    asked(
        COMPLETIONS, {"prompt": "x", "max_tokens": 33, "min_tokens": 2}, {"max_tokens": 33, "min_tokens": 2}, "bounds"
    ),
    asked(COMPLETIONS, {"prompt": "x", "max_tokens": 16_384, "top_k": 0}, {"max_tokens": 8192, "top_k": -1}, "no end"),
    asked("/completion", {"prompt": QWEN, "n_predict": 16}, {**HOLE, "max_tokens": 16}, "as to a llama server's root"),
    asked(INFILL, LLAMA_VIM, {**HOLE, "related": OTHER_FILE}, "the hole is behind the prompt"),
    asked(
        INFILL, LLAMA_VIM, {"max_tokens": 128, "stop": (), "deadline": 3.0, "top_k": 40, "temperature": 0.0}, "bounds"
    ),
    asked(INFILL, {"n_predict": -1}, {"max_tokens": 512}, "no end"),
    asked(INFILL, {}, {"prefix": "", "max_tokens": 128, "deadline": None}, "the least that may be sent"),
    asked(INFILL, dict.fromkeys(LLAMA_VIM), {"prefix": "", "max_tokens": 128}, "as little, in nulls"),
    asked(OLLAMA, {"prompt": QWEN, "format": ""}, HOLE, "tokens of other models say where the hole is"),
    asked(OLLAMA, {"prompt": PREFIX, "suffix": "\nf(1)\n"}, HOLE, "a suffix of its own"),
    ollama("how tokens are drawn", DRAWING, **DRAWING, num_ctx=4096, mirostat=0),
    ollama("another word for a penalty", {"repetition_penalty": 1.1}, repeat_penalty=1.1),
    ollama("where to stop", {"stop": ("END",)}, stop=["END"]),
    ollama("no seed and no choice", {"seed": None, "top_k": -1}, seed=-1, top_k=0),
    *(
        ollama(f"{most} tokens", {"max_tokens": expected}, num_predict=most)
        for most, expected in ((33, 33), (None, 128), (-1, 512), (-2, 512), (0, 512), (60_000, 8192))
    ),
]


@pytest.mark.parametrize(("url", "body", "expected"), CASES)
def test_what_is_sent_reaches_the_model(
    client: TestClient, filler: Any, url: str, body: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert client.post(url, json=body).status_code == 200

    (request,) = filler.requests
    parts, sampling = request.parts, request.sampling
    found = {name: getattr(request, name) for name in ("max_tokens", "min_tokens", "max_steps", "stop", "deadline")}
    found |= {name: getattr(parts, name) for name in ("path", "prefix", "suffix", "related")} | asdict(sampling)
    assert {name: found[name] for name in expected} == expected
