"""The shipped weights behind the door, and the real program with them on a machine that it shares."""

from __future__ import annotations

import contextlib
import html
import random
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from tests.server.conftest import app_of, events, opened
from tests.server.program import needs_weights, program

from calomel.infer.completer import CompleteRequest
from calomel.infer.in_process import open_filler
from calomel.infer.wire import encode
from calomel.prompts.parts import PromptParts
from calomel.weights import nano_path

pytestmark = [pytest.mark.e2e, needs_weights]


ASK = {
    "model": "mercury-edit-2",
    "prompt": "def add(a: int, b: int) -> int:\n    return ",
    "suffix": "\n\n\nprint(add(1, 2))\n",
    "max_tokens": 16,
}


FIM = "/v1/fim/completions"


JSON = {"content-type": "application/json"}


SHORT = {**ASK, "max_tokens": 8}


WORDS = (Path(__file__).read_text() + (nano_path() / "config.json").read_text()).split()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("run")
    # Offline: whatever a library tried to reach, its request here would fail.
    with program(folder, "--fresh-token", "--offline") as (_, client):
        yield client
    assert not (folder / "server.json").exists()


def test_the_example_of_the_status_page_is_filled(client: httpx.Client) -> None:
    page = client.get("/").text
    prefix, suffix = (html.unescape(each) for each in re.findall(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL))
    body = {
        "model": "playground",
        "prompt": prefix,
        "suffix": suffix.removeprefix("\n"),
        "max_tokens": 48,
        "max_steps": 16,
    }
    (choice,) = client.post(FIM, json=body).json()["choices"]
    assert choice["text"] == "self.y = y"


class Two(NamedTuple):
    """A server, and two people who have a token each."""

    process: subprocess.Popen[str]
    ann: httpx.Client
    bob: httpx.Client


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ann {'a' * 24}\nbob {'b' * 24}\n")
    tokens.chmod(0o600)
    with program(tmp_path, "--token-file", str(tokens)) as (process, editors):
        headers = [{"authorization": f"Bearer {name * 24}"} for name in "ab"]
        ann, bob = (httpx.Client(base_url=editors.base_url, headers=each, timeout=600) for each in headers)
        with ann, bob:
            yield Two(process, ann, bob)


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


@pytest.mark.parametrize(
    ("prompt", "tokens"), [("a process th", 1), ("retur", 2), ("import nump", 5), ("print(hel", 1)]
)
def test_a_stream_behind_half_a_word_adds_up_too(client: httpx.Client, prompt: str, tokens: int) -> None:
    body = {"model": "mercury-edit-2", "prompt": prompt, "max_tokens": tokens, "stop": []}
    plain = client.post(FIM, json=body).json()
    *chunks, _ = events(client.post(FIM, json={**body, "stream": True}))
    text = "".join(chunk["choices"][0]["text"] for chunk in chunks)

    assert text == plain["choices"][0]["text"]
    assert text or tokens == 1  # one token of a line that stays open is none that a person would take
    assert plain["usage"]["completion_tokens"] <= tokens


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


def _text(seed: int, characters: int) -> str:
    chance = random.Random(seed)
    return " ".join(chance.choices(WORDS, k=characters // 4))[:characters]


@pytest.mark.slow
def test_memory_stays_below_a_gigabyte_whatever_the_contexts(two: Two) -> None:
    for seed in range(300):
        _ask(two.ann, _text(seed, 3500), 2)
    for seed in range(3):
        long = CompleteRequest("fill", PromptParts(prefix=_text(seed, 200_000)), max_tokens=2, max_context=32_000)
        answer = two.ann.post("/calomel/v1/complete", content=encode(long), headers=JSON)
        assert answer.json()["context_tokens"] > 30_000

    peak = next(
        line for line in Path(f"/proc/{two.process.pid}/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    assert int(peak.split()[1]) * 1024 < 1_000_000_000


@pytest.mark.slow
def test_who_asks_for_little_hardly_waits_for_who_asks_for_much(two: Two) -> None:
    def short(seed: int) -> float:
        began = time.monotonic()
        _ask(two.bob, f"# {seed}\ndef add(a, b):\n    ", 16)
        return time.monotonic() - began

    alone = min(short(seed) for seed in range(5))
    crowd = [threading.Thread(target=_crowd, args=(str(two.bob.base_url), _text(seed, 800))) for seed in range(32)]
    try:
        for thread in crowd:
            thread.start()
        while two.ann.get("/calomel/v1/status").json()["queue"]["engine_running"] < 8:
            time.sleep(0.1)
        waits = [short(100 + seed) for seed in range(5)]
    finally:
        two.process.kill()
        for thread in crowd:
            thread.join()

    # A second where a short answer alone takes a tenth.
    assert sorted(waits)[2] <= 10 * max(alone, 0.1)


def _crowd(url: str, prompt: str) -> None:
    """Ask for a long answer; the server ends before it is there."""
    headers = {"authorization": f"Bearer {'a' * 24}"}
    body = {"model": "m", "prompt": prompt, "max_tokens": 2048, "stop": []}
    with contextlib.suppress(httpx.HTTPError):
        httpx.post(f"{url.rstrip('/')}{FIM}", json=body, headers=headers, timeout=600)


def _ask(client: httpx.Client, prompt: str, tokens: int) -> None:
    answer = client.post(FIM, json={"model": "m", "prompt": prompt, "max_tokens": tokens})
    assert answer.status_code == 200, answer.text


@pytest.mark.slow
def test_an_engine_that_dies_tells_nobody_what_it_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    filler = open_filler()

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("def add(a, b)")

    with opened(app_of(lambda: filler)) as client:
        engine: Any = filler.engine
        # What fails in a step beside all requests ends the engine; what one of them has caused ends that one alone.
        monkeypatch.setattr(type(engine.decoder), "step", fail)
        died = client.post(FIM, json={**SHORT, "prompt": "class Other:\n    "})

    assert (died.status_code, died.json()["error"]["code"]) == (503, "engine_stopped")
    assert "add(a, b)" not in died.text
