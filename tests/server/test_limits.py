"""Whatever text comes, others are answered meanwhile: each turn of the event loop is short.

The fixture of this folder measures the turns.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.shapes import SHAPES

SIZE = 60_000


def edit(text: str) -> dict[str, Any]:
    at = text.find("\n", len(text) // 2) + 1
    before, region, after = text[:at], text[at : at + 300], text[at + 300 :]
    content = (
        "<|recently_viewed_code_snippets|>\n\n<|/recently_viewed_code_snippets|>\n\n<|current_file_content|>\n"
        f"current_file_path: a.c\n{before}\n<|code_to_edit|>\n<|cursor|>{region}\n<|/code_to_edit|>\n{after}\n"
        "<|/current_file_content|>\n\n<|edit_diff_history|>\n--- a.c\n+++ a.c\n@@ -1,1 +1,1 @@\n"
        f"-{region[:40].splitlines()[0] if region.strip() else 'foo(a)'}\n+renamed(b)\n<|/edit_diff_history|>"
    )
    return {"model": "m", "messages": [{"role": "user", "content": content}]}


def apply(text: str) -> dict[str, Any]:
    update = f"{text[: SIZE // 3]}\n// ... existing code ...\n{text[-200:]}"
    content = f"<|original_code|>\n{text}\n<|/original_code|>\n<|update_snippet|>\n{update}\n<|/update_snippet|>"
    return {"model": "m", "messages": [{"role": "user", "content": content}]}


def hole(text: str) -> dict[str, Any]:
    return {"model": "m", "prompt": text[: SIZE // 2], "suffix": text[SIZE // 2 :], "max_tokens": 8}


def marked(text: str) -> dict[str, Any]:
    return {"prompt": f"<fim_prefix>{text[: SIZE // 2]}<fim_suffix>{text[SIZE // 2 :]}<fim_middle>"}


def infill(text: str) -> dict[str, Any]:
    extra = [{"filename": "b.c", "text": text}]
    return {"input_prefix": text[: SIZE // 2], "input_suffix": text[SIZE // 2 :], "n_predict": 8, "input_extra": extra}


def generate(text: str) -> dict[str, Any]:
    return {"prompt": text, "suffix": "x", "stream": False}


ROUTES = {
    "/v1/apply/completions": apply,
    "/v1/fim/completions": hole,
    "/v1/completions": marked,
    "/infill": infill,
    "/api/generate": generate,
}


@pytest.mark.parametrize(("name", "route"), [*zip(sorted(SHAPES), cycle(ROUTES), strict=False)])
def test_any_text_is_answered_and_others_meanwhile(client: TestClient, name: str, route: str) -> None:
    text = SHAPES[name](SIZE)
    for path, body in (("/v1/edit/completions", edit(text)), (route, ROUTES[route](text))):
        assert client.post(path, json=body).status_code == 200, path
    assert client.get("/health").status_code == 200
