"""A real llama.cpp behind the door, with a tiny random Llama: `tests/tools/get-llama-server` builds it."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from safetensors.torch import load_file
from tests.families.published.autoregressive import QWEN2
from tests.server.conftest import TOKEN, listening, until

from calomel.engine import Request
from calomel.families.family import OpenOptions
from calomel.prompts.parts import Excerpt, PromptParts
from calomel.server.app import create_app
from calomel.server.errors import StartError
from calomel.server.run import open_upstream, upstream_of
from calomel.server.settings import ServerSettings
from calomel.suggest import edit
from calomel.suggest.completer import CompleteRequest
from calomel.suggest.in_process import open_folder
from calomel.suggest.wire import COMPLETE_PATH, decode_answer, encode_request

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
FOLDER = Path(os.environ.get("CALOMEL_LLAMA_SERVER") or CACHE / "calomel" / "llama-server")
SPECIAL = ("<|endoftext|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>")
WIDTH, HEADS, HIDDEN = 64, 4, 128
HEADERS = {"authorization": f"Bearer {TOKEN}"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (FOLDER / "llama-server").is_file(), reason="tests/tools/get-llama-server builds one"),
]


def bytes_as_letters() -> list[str]:
    """GPT-2's letters for all bytes, in the order of the bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = iter(range(256, 512))
    return [chr(byte if byte in shown else next(hidden)) for byte in range(256)]


def the_library() -> Any:
    """The gguf library that came with the program."""
    sys.path.insert(0, str(FOLDER / "gguf-py"))
    try:
        return import_module("gguf")
    finally:
        sys.path.pop(0)


def write_model(path: Path, special: Sequence[str]) -> None:
    """A Llama of one layer whose tokens are bytes, and these."""
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

    def tensor(name: str, *shape: int) -> None:
        made = np.ones(shape) if len(shape) == 1 else random.normal(0, 1 / math.sqrt(shape[-1]), shape)
        if name == "output":
            made[256:] = 0.0  # no answer ends by itself: some byte is always likelier
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


def write_twin(folder: Path, path: Path) -> None:
    """The tiny Qwen2 in `folder` as llama.cpp reads it: the same tokens, the same numbers."""
    gguf = the_library()
    shape = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokens = {number: token for token, number in tokenizer["model"]["vocab"].items()}
    added = {each["id"]: each["content"] for each in tokenizer["added_tokens"]}
    size = shape["vocab_size"]
    writer: Any = gguf.GGUFWriter(path, "qwen2")
    writer.add_name("tiny-coder")
    writer.add_context_length(shape["max_position_embeddings"])
    writer.add_embedding_length(shape["hidden_size"])
    writer.add_block_count(shape["num_hidden_layers"])
    writer.add_feed_forward_length(shape["intermediate_size"])
    writer.add_head_count(shape["num_attention_heads"])
    writer.add_head_count_kv(shape["num_key_value_heads"])
    writer.add_rope_freq_base(shape["rope_theta"])
    writer.add_layer_norm_rms_eps(shape["rms_norm_eps"])
    writer.add_vocab_size(size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([(tokens | added).get(number, f"[unused {number}]") for number in range(size)])
    writer.add_token_types([3 if number in added else 1 if number in tokens else 5 for number in range(size)])
    writer.add_token_merges(
        [each if isinstance(each, str) else " ".join(each) for each in tokenizer["model"]["merges"]]
    )
    writer.add_eos_token_id(shape["eos_token_id"])
    writer.add_add_bos_token(False)
    names = {
        "model.embed_tokens": "token_embd", "model.norm": "output_norm", "model.layers": "blk", "self_attn.": "attn_",
        "attn_o_proj": "attn_output", "mlp.": "ffn_", "_proj": "", "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }  # fmt: skip
    for file in sorted(folder.glob("*.safetensors")):
        for name, tensor in load_file(file).items():
            for part, other in names.items():
                name = name.replace(part, other)  # noqa: PLW2901
            writer.add_tensor(name, tensor.float().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def ready(url: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None
    try:
        return httpx.get(f"{url}/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


class Llama:
    """Starts the program, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(
        self, *, special: Sequence[str] = SPECIAL, key: str | None = None, port: int = 0, twin: Path | None = None
    ) -> str:
        model = self.folder / "tiny-coder.gguf"
        if twin is None:
            write_model(model, special)
        else:
            write_twin(twin, model)
        with socket.create_server(("127.0.0.1", port)) as free:
            port = free.getsockname()[1]
        command = [str(FOLDER / "llama-server"), "--model", str(model), "--port", str(port), "--offline", "--no-warmup"]
        command += ["--threads", "1", "--parallel", "1", "--ctx-size", "4096"]
        # Keys and values as exact as ours are: random weights decide by little.
        command += [] if twin is None else ["--cache-type-k", "f32", "--cache-type-v", "f32", "--flash-attn", "off"]
        command += [] if key is None else ["--api-key", key]
        with (self.folder / "log").open("ab") as log:
            self.process = process = subprocess.Popen(command, stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        until(lambda: ready(url, process), 120)
        return url

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture
def llama(tmp_path: Path) -> Iterator[Llama]:
    started = Llama(tmp_path)
    yield started
    started.end()


def door(url: str, **more: Any) -> FastAPI:
    settings = ServerSettings.model_validate({"token": TOKEN, "upstream": url, **more})
    upstream = upstream_of(settings)
    assert upstream is not None
    opened = open_upstream(upstream)
    return create_app(settings, lambda: opened, describing=lambda: upstream.model)


@pytest.fixture
def asked() -> Iterator[Any]:
    """A client of a server that asks the one at an address."""
    with ExitStack() as stack:

        def open_(url: str, **more: Any) -> httpx.Client:
            host, port = stack.enter_context(listening(door(url, **more)))
            return stack.enter_context(
                httpx.Client(base_url=f"http://{host}:{port}", headers=HEADERS, trust_env=False, timeout=60)
            )

        yield open_


def test_a_real_llama_cpp_fills_holes_and_says_how_sure_it_is(llama: Any, asked: Any) -> None:
    client = asked(llama(key="k-1"), upstream_key="k-1")
    parts = PromptParts(
        (Excerpt("lib.py", 0, "LIMIT = 3\n"),), path="a.py", prefix="def f(n):\n    return ", suffix="\n"
    )
    request = CompleteRequest("fill", parts, max_tokens=12)
    said = client.post(COMPLETE_PATH, content=encode_request(request), headers={"content-type": "application/json"})

    answer = decode_answer(said.content)
    (own,) = answer.candidates
    assert own.text
    assert 0 < len(own.log_probs) <= 12
    assert max(own.log_probs) <= 0
    assert own.finish_reason == "length"
    # The extra file is among the tokens, a byte each: repository and path are, too.
    assert answer.context_tokens > len("LIMIT = 3\ndef f(n):\n    return \n")
    note = client.get("/calomel/v1/status").json()["model"]["note"]
    assert "with tiny-coder; it gives log-probabilities" in note

    with client.stream(
        "POST", "/v1/completions", json={"prompt": "x = 1\n", "stream": True, "max_tokens": 8}
    ) as stream:
        assert stream.status_code == 200
        assert [line for line in stream.iter_lines() if line][-1] == "data: [DONE]"


def test_a_question_that_is_cancelled_frees_the_slot(llama: Any, asked: Any) -> None:
    url = llama()
    client = asked(url)
    busy = {"model": "m", "prompt": "x = ", "suffix": "\n", "max_tokens": 3500, "stop": ["<none>"]}

    with pytest.raises(httpx.ReadTimeout):
        client.post("/v1/fim/completions", json=busy, timeout=1)

    def free() -> bool:
        return not any(slot["is_processing"] for slot in httpx.get(f"{url}/slots", trust_env=False).json())

    until(free, 3)


def test_a_real_llama_cpp_that_ends_and_returns_is_asked_again(llama: Any, asked: Any) -> None:
    url = llama()
    client = asked(url)
    hole = {"model": "m", "prompt": "x = ", "suffix": "\n", "max_tokens": 8}
    assert client.post("/v1/fim/completions", json=hole).status_code == 200
    llama.end()
    assert client.post("/v1/fim/completions", json=hole).json()["error"]["code"] == "upstream_failed"
    llama(port=int(url.rpartition(":")[2]))
    assert client.post("/v1/fim/completions", json=hole).status_code == 200


def test_tokens_that_a_real_llama_cpp_does_not_know_are_found(llama: Any, asked: Any) -> None:
    client = asked(llama(special=("<[end▁of▁sentence]>", "<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>")))
    hole = {"model": "m", "prompt": "x = ", "suffix": "\n", "max_tokens": 8}

    assert client.post("/v1/fim/completions", json=hole).json()["usage"]["completion_tokens"] > 0


def test_a_real_llama_cpp_without_tokens_of_a_hole_is_told(llama: Any) -> None:
    url = llama(special=SPECIAL[:1])
    with pytest.raises(StartError, match="tiny-coder has no fill-in-the-middle tokens that are known"):
        door(url, token=None, no_auth=True)


def holes(count: int) -> list[PromptParts]:
    """Lines of a module, behind their indentation."""
    lines = Path(edit.__file__).read_text(encoding="utf-8").splitlines(keepends=True)
    rows = [row for row, line in enumerate(lines) if row > 8 and line.startswith("    ")][:count]
    blanks = [len(lines[row]) - len(lines[row].lstrip()) for row in rows]
    return [
        PromptParts(prefix="".join(lines[row - 6 : row]) + " " * blank, suffix="".join(lines[row + 1 : row + 3]))
        for row, blank in zip(rows, blanks, strict=True)
    ]


def test_the_twin_of_a_checkpoint_of_ours_answers_as_it_does_here(llama: Any, asked: Any, tmp_path: Path) -> None:
    folder = QWEN2.write(tmp_path / "tiny-coder")
    url = llama(twin=folder)
    client = asked(url)
    here = open_folder(folder, OpenOptions(dtype="float32", cache_tokens=4096))
    same = []
    for parts in holes(100):
        request = CompleteRequest("fill", parts, max_tokens=12)
        said = client.post(COMPLETE_PATH, content=encode_request(request), headers={"content-type": "application/json"})
        (own,) = decode_answer(said.content).candidates
        # llama.cpp puts a repository's name before a hole: the same tokens are put to the engine here.
        hole = {"input_prefix": parts.prefix, "input_suffix": parts.suffix, "n_predict": 1}
        written = httpx.post(f"{url}/infill", json=hole, trust_env=False, timeout=60).json()["prompt"]
        marks = {"content": written, "parse_special": True}
        tokens = httpx.post(f"{url}/tokenize", json=marks, trust_env=False).json()["tokens"]
        mine = here.engine.submit(Request(tuple(tokens), 12, (12,), policy="left_to_right")).result()
        # Random tokens make random bytes; llama.cpp leaves a broken character at the end out.
        theirs, ours = (text.rstrip("\ufffd") for text in (own.text, here.tokenizer.decode(mine.ids)))
        # It also ends at tokens that no `eos_token_id` names, such as the padding of holes.
        same.append(ours.startswith(theirs) if own.finish_reason == "stop" else ours == theirs)
    here.close()

    assert sum(same) >= 95
