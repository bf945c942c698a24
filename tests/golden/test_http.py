"""What the HTTP doors answer, from the request to the last byte."""

from __future__ import annotations

import json
from typing import Any

import httpx
from tests.golden.conftest import Begin

FIM = "/v1/fim/completions"
MODEL = {"model": "mercury-edit-2"}
ADD = {**MODEL, "prompt": "def add(a, b):\n    return ", "suffix": "\n\n\nprint(add(1, 2))\n"}
EDIT = """<|recently_viewed_code_snippets|>
<|/recently_viewed_code_snippets|>
<|current_file_content|>
current_file_path: cart.py
def total(prices):
    value = 0
    for price in prices:
<|code_to_edit|>
        value += price
    <|cursor|>return value
<|/code_to_edit|>
<|/current_file_content|>
<|edit_diff_history|>
--- cart.py
+++ cart.py
@@ -1,2 +1,2 @@
 def total(prices):
-    amount = 0
+    value = 0
<|/edit_diff_history|>
"""
APPLY = (
    "<|original_code|>\ndef add(a, b):\n    return a + b\n<|/original_code|>\n"
    "<|update_snippet|>\n# ... existing code ...\ndef add(a, b):\n    return b + a\n<|/update_snippet|>\n"
)


def said(content: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


CASES: dict[str, tuple[str, str, Any]] = {
    "the rest of a line": ("POST", FIM, ADD),
    "the same, streamed": ("POST", FIM, {**ADD, "stream": True}),
    "two tokens at most": ("POST", FIM, {**ADD, "max_tokens": 2}),
    "a stop string": ("POST", FIM, {**ADD, "stop": ["+"]}),
    "several lines": ("POST", FIM, {**MODEL, "prompt": "def mean(values):\n    ", "max_tokens": 64}),
    "nothing known": ("POST", FIM, {**MODEL, "prompt": "zebra ", "suffix": ""}),
    "the word before the cursor again": (
        "POST",
        FIM,
        {**MODEL, "prompt": "    if ok:\n        return ", "suffix": "\n"},
    ),
    "an end that hangs": ("POST", FIM, {**MODEL, "prompt": "import re\n\nnames = [", "suffix": "\n"}),
    "plain completions": ("POST", "/v1/completions", {"prompt": "for name in "}),
    "plain completions, streamed": ("POST", "/v1/completions", {"prompt": "for name in ", "stream": True}),
    "an edit": ("POST", "/v1/edit/completions", {**MODEL, **said(EDIT)}),
    "an update applied": ("POST", "/v1/apply/completions", {**MODEL, **said(APPLY)}),
    "a conversation, which this model cannot": (
        "POST",
        "/v1/chat/completions",
        {"model": "mercury-2", **said("Hello")},
    ),
    "llama.cpp's infill": (
        "POST",
        "/infill",
        {"input_prefix": ADD["prompt"], "input_suffix": ADD["suffix"], "n_predict": 16},
    ),
    "Ollama's generate": (
        "POST",
        "/api/generate",
        {"model": "calomel", "prompt": ADD["prompt"], "suffix": ADD["suffix"], "stream": False},
    ),
    "a field of the wrong type": ("POST", FIM, {**MODEL, "prompt": 5}),
    "a secret in the prompt": ("POST", FIM, {**MODEL, "prompt": "password = 'hunter2-9f8e7d6c'\nfor name in "}),
    "no JSON": ("POST", FIM, "{"),
    "a path that is not there": ("GET", "/v1/nothing", None),
    "the models": ("GET", "/v1/models", None),
    "health": ("GET", "/health", None),
}


def test_answers_over_http_are_what_they_were(server: httpx.Client, transcript: Begin) -> None:
    found = transcript("http")
    for name, (method, path, body) in CASES.items():
        found.heading(name)
        found.says(">", f"{method} {path}")
        if body is not None:
            found.says(">", body)
        content = body if isinstance(body, str) or body is None else json.dumps(body)
        answer = server.request(method, path, content=content, headers={"content-type": "application/json"})
        kind = answer.headers.get("content-type", "").partition(";")[0]
        found.says("<", f"{answer.status_code} {kind}")
        if kind == "text/event-stream":
            for line in answer.text.splitlines():
                data = line.removeprefix("data: ")
                found.says("<", line if data in {line, "[DONE]"} else json.loads(data))
        else:
            found.says("<", answer.json())
    without = httpx.post(f"{server.base_url}{FIM}", json=ADD)
    found.heading("without the token")
    found.says("<", str(without.status_code))
    found.says("<", without.json())
    found.check()
