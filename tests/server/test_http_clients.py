"""What the page about other people's plugins says: each asks as its source does, at the address that stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

PAGE = (Path(__file__).parents[2] / "docs" / "http-clients.md").read_text(encoding="utf-8")
HOLE = {"prompt": "def f(n):\n    ", "suffix": "\n"}
EDIT = (
    "<|current_file_content|>\ncurrent_file_path: a.py\n<|code_to_edit|>\nx = <|cursor|>1\n<|/code_to_edit|>\n"
    "<|/current_file_content|>\n\n<|edit_diff_history|>\n\n<|/edit_diff_history|>\n"
)
# The plugin, what it adds to the address on the page, and what it sends there.
ASKED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "minuet-ai.nvim": ("minuet-ai.nvim", "", {"model": "mercury-coder", "stream": True, **HOLE}),
    "cursortab.nvim": (
        "cursortab.nvim",
        "",
        {"model": "mercury-edit", "stream": False, "messages": [{"role": "user", "content": EDIT}]},
    ),
    "Continue": (
        "Continue",
        "completions",
        {"model": "mercury-coder", "stream": True, "max_tokens": 150, "stop": ["<|endoftext|>", "\n\n"], **HOLE},
    ),
    "llama.vim": (
        "llama.vim",
        "",
        {
            "input_prefix": "def f(n):\n",
            "prompt": "    ",
            "input_suffix": "\n",
            "n_predict": 128,
            "n_indent": 4,
            "stream": False,
            "cache_prompt": True,
            "t_max_prompt_ms": 500,
            "t_max_predict_ms": 1000,
            "samplers": ["top_k", "top_p", "infill"],
            "input_extra": [],
            "response_fields": ["content", "timings/prompt_n"],
        },
    ),
}


@pytest.mark.parametrize(("section", "more", "body"), ASKED.values(), ids=ASKED)
def test_a_plugin_set_up_by_the_page_is_answered(client: TestClient, section: str, more: str, body: Any) -> None:
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    address = re.findall(r"http://127\.0\.0\.1:8017(/[\w/]*)", text)[0]
    answer = client.post(address + more, json=body)
    assert answer.status_code == 200, answer.text
    if section != "cursortab.nvim":
        assert "return " in answer.text


def test_a_provider_with_its_makers_path_is_answered_at_the_root_that_the_page_names(client: TestClient) -> None:
    assert "`deepseek` and `llama.cpp` work with `apiBase: http://127.0.0.1:8017/`" in PAGE
    assert client.post("/beta/completions", json={"model": "m", **HOLE}).status_code == 200
    assert (
        client.post("/completion", json={"prompt": "def f(n):\n    ", "n_predict": 8}).json()["content"] == "return n"
    )
