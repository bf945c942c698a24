"""Foreign prompts through the door to the shipped weights: what an editor makes of the answers is text without words
of any format."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from calomel.server.app import create_app
from calomel.server.settings import ServerSettings
from calomel.suggest.in_process import open_filler
from calomel.weights import nano_path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (nano_path() / "model.safetensors").exists(), reason="no shipped weights"),
]

BEFORE = "def area(width, height):\n"
REGION = "    return w * height\n\n\ndef volume(width, height, depth):\n    return w * height * depth"
HISTORY = "--- a/shape.py\n+++ b/shape.py\n@@ -1,1 +1,1 @@\n-def area(w, height):\n+def area(width, height):\n\n"
FRONT = (
    f"<[fim-suffix]>\n\nprint(area(1, 2))\n<[fim-prefix]><filename>edit_history\n{HISTORY}<filename>shape.py\n{BEFORE}"
)
QWEN = "<|fim_prefix|>import os\n\nfor name in os.listdir('.'):\n    pri<|fim_suffix|>\n<|fim_middle|>"


@pytest.fixture(scope="module")
def nano() -> Iterator[TestClient]:
    app = create_app(ServerSettings(no_auth=True, outcome_log=False), lambda: open_filler(None))
    with TestClient(app, base_url="http://127.0.0.1:8017") as client:
        end = time.monotonic() + 60
        while app.state.door.loader.state != "ready":
            assert time.monotonic() < end
            time.sleep(0.05)
        yield client


def marked(region: str) -> str:
    return region.replace("return w *", "return w<|user_cursor|> *", 1)


def test_a_rename_is_carried_on_between_zeds_markers(nano: TestClient) -> None:
    first, second = REGION[: REGION.index("def volume")], REGION[REGION.index("def volume") :]
    prompt = f"{FRONT}<|marker_1|>{marked(first)}<|marker_2|>{second}<|marker_3|>\n<[fim-middle]>"
    body = {"model": "zeta2.1", "prompt": prompt, "max_tokens": 2048, "stop": ["<[end▁of▁sentence]>"]}

    text = nano.post("/v1/completions", json=body).json()["choices"][0]["text"]

    start, span, end = re.fullmatch(r"(<\|marker_[12]\|>)(.*)(<\|marker_[23]\|>)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    blocks = {"<|marker_1|>": 0, "<|marker_2|>": len(first), "<|marker_3|>": len(REGION)}
    changed = REGION[: blocks[start]] + span + REGION[blocks[end] :]
    assert "return width * height\n" in changed
    assert changed.startswith("    return width")


def test_a_rename_is_carried_on_in_zeta2(nano: TestClient) -> None:
    prompt = f"{FRONT}<<<<<<< CURRENT\n{marked(REGION)}\n=======\n<[fim-middle]>"

    text = nano.post("/v1/completions", json={"model": "zeta2", "prompt": prompt}).json()["choices"][0]["text"]

    assert text.endswith("\n>>>>>>> UPDATED\n")
    assert text.startswith("    return width * height\n")


def test_where_nothing_changed_lately_there_is_nothing_to_do_far_from_the_cursor(nano: TestClient) -> None:
    quiet = FRONT.replace(HISTORY, "")
    prompt = f"{quiet}<|marker_1|>{REGION.replace('w *', 'width *')}<|user_cursor|><|marker_2|>\n<[fim-middle]>"

    text = nano.post("/v1/completions", json={"prompt": prompt}).json()["choices"][0]["text"]

    assert re.fullmatch(r"(<\|marker_[12]\|>)(?:\1|.*<\|marker_2\|>)", text, re.DOTALL)


def test_every_door_fills_the_same_hole_alike(nano: TestClient) -> None:
    apart = {"prompt": "import os\n\nfor name in os.listdir('.'):\n    pri", "suffix": "\n"}
    options: dict[str, Any] = {"num_predict": 16}
    texts = {
        "tokens": nano.post("/v1/completions", json={"prompt": QWEN, "max_tokens": 16}).json()["choices"][0]["text"],
        "apart": nano.post("/v1/completions", json={**apart, "max_tokens": 16}).json()["choices"][0]["text"],
        "fim": nano.post("/v1/fim/completions", json={**apart, "model": "m", "max_tokens": 16, "stop": []}).json()[
            "choices"
        ][0]["text"],
        "ollama": nano.post("/api/generate", json={**apart, "stream": False, "options": options}).json()["response"],
        "llama.cpp": nano.post(
            "/infill",
            json={
                "input_prefix": "import os\n\n",
                "prompt": apart["prompt"][11:],
                "input_suffix": "\n",
                "n_predict": 16,
            },
        ).json()["content"],
    }

    assert len(set(texts.values())) == 1, texts
    assert texts["fim"]


@pytest.mark.parametrize("url", ["/v1/completions", "/api/generate", "/infill"])
def test_a_stream_is_the_answer_in_pieces(nano: TestClient, url: str) -> None:
    body = {"prompt": "x = [1, 2, 3]\nprint(", "max_tokens": 8, "n_predict": 8, "options": {"num_predict": 8}}
    reads: dict[str, Callable[[Any], str]] = {
        "/v1/completions": lambda each: "".join(choice["text"] for choice in each["choices"]),
        "/api/generate": lambda each: each["response"],
        "/infill": lambda each: each["content"],
    }
    read = reads[url]
    whole = read(nano.post(url, json={**body, "stream": False}).json())
    lines = [line.removeprefix("data: ") for line in nano.post(url, json={**body, "stream": True}).text.splitlines()]

    assert "".join(read(json.loads(line)) for line in lines if line not in ("", "[DONE]")) == whole
