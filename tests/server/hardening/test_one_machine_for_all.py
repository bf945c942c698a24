"""The real program with its defaults, on a machine that it shares: its memory, and who waits for whom."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from calomel.prompts.parts import PromptParts
from calomel.suggest.completer import CompleteRequest
from calomel.suggest.wire import encode_request
from calomel.weights import nano_path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.skipif(not (nano_path() / "model.safetensors").exists(), reason="no shipped weights"),
]
FIM = "/v1/fim/completions"
JSON = {"content-type": "application/json"}
WORDS = (Path(__file__).read_text() + (nano_path() / "config.json").read_text()).split()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A server with two people's tokens."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ann {'a' * 24}\nbob {'b' * 24}\n")
    tokens.chmod(0o600)
    left = tmp_path / "server.json"
    command = [sys.executable, "-m", "calomel.cli", "serve", "--no-config", "--port", "0"]
    command += ["--token-file", str(tokens), "--runtime-file", str(left)]
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        try:
            assert process.stdout is not None
            process.stdout.readline()
            url = json.loads(left.read_text())["url"]
            headers = [{"authorization": f"Bearer {name * 24}"} for name in "ab"]
            ann, bob = (stack.enter_context(httpx.Client(base_url=url, headers=each, timeout=600)) for each in headers)
            end = time.monotonic() + 120
            while ann.get("/health").status_code != 200:
                assert time.monotonic() < end
                time.sleep(0.1)
            yield SimpleNamespace(process=process, url=url, ann=ann, bob=bob)
        finally:
            process.terminate()
            process.wait(30)


def _text(seed: int, characters: int) -> str:
    chance = random.Random(seed)
    return " ".join(chance.choices(WORDS, k=characters // 4))[:characters]


def _ask(client: httpx.Client, prompt: str, tokens: int) -> None:
    answer = client.post(FIM, json={"model": "m", "prompt": prompt, "max_tokens": tokens})
    assert answer.status_code == 200, answer.text


def test_memory_stays_below_a_gigabyte_whatever_the_contexts(server: SimpleNamespace) -> None:
    for seed in range(300):
        _ask(server.ann, _text(seed, 3500), 2)
    for seed in range(3):
        long = CompleteRequest("fill", PromptParts(prefix=_text(seed, 200_000)), max_tokens=2, max_context=32_000)
        answer = server.ann.post("/calomel/v1/complete", content=encode_request(long), headers=JSON)
        assert answer.json()["context_tokens"] > 30_000

    peak = next(
        line for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    assert int(peak.split()[1]) * 1024 < 1_000_000_000


def test_who_asks_for_little_hardly_waits_for_who_asks_for_much(server: SimpleNamespace) -> None:
    def short(seed: int) -> float:
        began = time.monotonic()
        _ask(server.bob, f"# {seed}\ndef add(a, b):\n    ", 16)
        return time.monotonic() - began

    alone = min(short(seed) for seed in range(5))
    crowd = [threading.Thread(target=_crowd, args=(server.url, _text(seed, 800))) for seed in range(32)]
    try:
        for thread in crowd:
            thread.start()
        while server.ann.get("/calomel/v1/status").json()["queue"]["engine_running"] < 8:
            time.sleep(0.1)
        waits = [short(100 + seed) for seed in range(5)]
    finally:
        server.process.kill()
        for thread in crowd:
            thread.join()

    # A second where a short answer alone takes a tenth.
    assert sorted(waits)[2] <= 10 * max(alone, 0.1)


def _crowd(url: str, prompt: str) -> None:
    """Ask for a long answer; the server ends before it is there."""
    headers = {"authorization": f"Bearer {'a' * 24}"}
    body = {"model": "m", "prompt": prompt, "max_tokens": 2048, "stop": []}
    with contextlib.suppress(httpx.HTTPError):
        httpx.post(f"{url}{FIM}", json=body, headers=headers, timeout=600)
