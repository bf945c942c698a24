"""The real program with the shipped weights, or with those in the folder that CALOMEL_TEST_MODEL names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from calomel.weights import nano_path

MODEL = Path(os.environ.get("CALOMEL_TEST_MODEL", nano_path()))
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not (MODEL / "model.safetensors").exists(), reason=f"no weights in {MODEL}"),
]

ASK = {
    "model": "mercury-edit-2",
    "prompt": "def add(a: int, b: int) -> int:\n    return ",
    "suffix": "\n\n\nprint(add(1, 2))\n",
    "max_tokens": 16,
}
FIM = "/v1/fim/completions"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    runtime_file = tmp_path_factory.mktemp("run") / "server.json"
    # Offline: whatever a library tried to reach, its request here would fail.
    command = [sys.executable, "-m", "calomel.cli", "serve", "--no-config", "--fresh-token", "--offline", "--port", "0"]
    command += ["--model", str(MODEL), "--runtime-file", str(runtime_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Calomel listens on http://127.0.0.1:")
            left = json.loads(runtime_file.read_text())
            headers = {"authorization": f"Bearer {left['token']}"}
            with httpx.Client(base_url=left["url"], headers=headers, timeout=60) as client:
                # The socket answers at once, the model a little later.
                assert client.get("/health").status_code in {200, 503}
                end = time.monotonic() + 60
                while client.get("/health").status_code != 200:
                    assert time.monotonic() < end
                    time.sleep(0.05)
                yield client
        finally:
            process.terminate()
            process.wait(30)
    assert not runtime_file.exists()


def test_a_hole_is_filled(client: httpx.Client) -> None:
    answer = client.post(FIM, json=ASK).json()

    assert answer["choices"][0]["finish_reason"] in {"stop", "length"}
    assert 0 < answer["usage"]["prompt_tokens"] < 100
    assert answer["usage"]["completion_tokens"] <= 16


def test_the_same_request_again_reads_its_context_from_the_cache(client: httpx.Client) -> None:
    body = {**ASK, "prompt": "# a line of its own\n" * 20 + ASK["prompt"]}  # type: ignore[operator]
    first, second = (client.post(FIM, json=body).json() for _ in range(2))

    assert second["usage"]["cached_input_tokens"] > first["usage"]["cached_input_tokens"]
    assert second["choices"] == first["choices"]


@pytest.mark.parametrize("prompt", ["a process th", "retur", "import nump", "print(hel"])
@pytest.mark.parametrize("tokens", [1, 2, 5])
def test_a_stream_behind_half_a_word_adds_up_too(client: httpx.Client, prompt: str, tokens: int) -> None:
    body = {"model": "mercury-edit-2", "prompt": prompt, "max_tokens": tokens, "stop": []}
    plain = client.post(FIM, json=body).json()
    lines = client.post(FIM, json={**body, "stream": True}).text.strip().split("\n\n")
    text = "".join(json.loads(line.removeprefix("data: "))["choices"][0]["text"] for line in lines[:-1])

    assert text == plain["choices"][0]["text"] != ""
    assert plain["usage"]["completion_tokens"] <= tokens


@pytest.mark.parametrize("stop", [[], None, ["("]])
def test_a_stream_adds_up_to_the_plain_answer(client: httpx.Client, stop: Any) -> None:
    body = {**ASK, "max_tokens": 48, "stop": stop}
    plain = client.post(FIM, json=body).json()["choices"][0]
    lines = client.post(FIM, json={**body, "stream": True}).text.strip().split("\n\n")
    choices = [json.loads(line.removeprefix("data: "))["choices"][0] for line in lines[:-1]]

    assert "".join(choice["text"] for choice in choices) == plain["text"]
    assert choices[-1]["finish_reason"] == plain["finish_reason"]


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "", "suffix": ""},
        {"prompt": "x = 1\n" * 20_000},
        {"suffix": "y = 2\n" * 20_000},
        {"prompt": "\0\x1b<|end|><|mask|>🙂"},
        {"temperature": 1.0, "top_p": 0.9, "top_k": 5, "seed": 3},
        {"temperature": 2.0, "top_p": 1e-9, "repetition_penalty": 1e-300},
        {"presence_penalty": 2, "frequency_penalty": -2, "repetition_penalty": 1e300, "temperature": 1},
        {"top_p": 0},
        {"max_tokens": 1},
    ],
    ids=str,
)
def test_the_edges_of_what_is_allowed_are_answered(client: httpx.Client, fields: dict[str, Any]) -> None:
    assert client.post(FIM, json={**ASK, **fields}).status_code == 200


def test_more_tokens_than_the_model_has_positions_are_refused_or_answered(client: httpx.Client) -> None:
    [model] = client.get("/v1/models").json()["data"]
    answer = client.post(FIM, json={**ASK, "max_tokens": 8192, "stop": ["\n"]})

    if model["context_length"] > 8192 + 100:
        assert answer.status_code == 200
    else:
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")
