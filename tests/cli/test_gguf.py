"""A GGUF file opens as the checkpoint that it was made of; tiny random weights, written by llama.cpp's own library."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.cli.conftest import Runner
from tests.families.published.autoregressive import LLAMA, QWEN2, QWEN3
from tests.families.published.block_causal import Checkpoint

from calomel.families.family import OpenOptions
from calomel.families.plan import OutOfMemoryRefusedError, plan_of
from calomel.infer import llama_cpp
from calomel.weights import gguf as weights_gguf
from calomel.weights.folders import folder_of

gguf: Any = pytest.importorskip("gguf", reason="pip install gguf")

HOLE = "def total(self):\n    return self.re\n"
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.o_proj": "attn_output",
    **{f"self_attn.{part}_proj": f"attn_{part}" for part in "qkv"},
    **{f"self_attn.{part}_norm": f"attn_{part}_norm" for part in "qk"},
    **{f"mlp.{part}_proj": f"ffn_{part}" for part in ("gate", "up", "down")},
}


@pytest.fixture(autouse=True)
def no_llama_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Calomel's own engine makes of a file; tests/e2e/test_llama_inside.py has the other way."""
    monkeypatch.setattr(llama_cpp, "opens", lambda _: False)


def packed(folder: Path, file: Path, *, kind: str = "F32", **said: Any) -> Path:
    """The checkpoint in `folder` as llama.cpp's converter writes it, and the folder's weights as rounded as there."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    shape = config["model_type"]
    heads, key_heads = config["num_attention_heads"], config["num_key_value_heads"]
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    added = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    tokens = sorted((tokenizer["model"]["vocab"] | added).items(), key=lambda token: token[1])
    size = config["vocab_size"]
    names = [name for name, _ in tokens] + [f"[PAD{number}]" for number in range(len(tokens), size)]
    writer = gguf.GGUFWriter(file, said.pop("architecture", shape))
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    if "head_dim" in config:
        writer.add_key_length(config["head_dim"])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(said.pop("pre", "qwen2"))
    writer.add_token_list(names)
    writer.add_token_types([3 if name in added else 5 if name.startswith("[PAD") else 1 for name in names])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(config["eos_token_id"])
    if "bos_token_id" in config:
        writer.add_bos_token_id(config["bos_token_id"])
        writer.add_add_bos_token(True)
    for name, value in said.items():
        writer.add_string(f"{shape}.{name}", value)
    for place in sorted(folder.glob("*.safetensors")):
        tensors = load_file(place)
        for name, tensor in tensors.items():
            stem, _, ending = name.rpartition(".")
            layer, _, inner = stem.removeprefix("model.layers.").partition(".")
            numbers = tensor.float().numpy()
            stored = gguf.GGMLQuantizationType[kind if numbers.ndim > 1 else "F32"]
            rounded = gguf.dequantize(gguf.quantize(numbers, stored), stored)
            tensors[name] = torch.from_numpy(rounded.reshape(numbers.shape).copy())
            if shape == "llama" and inner in ("self_attn.q_proj", "self_attn.k_proj"):
                count = heads if inner == "self_attn.q_proj" else key_heads
                halves = numbers.reshape(count, 2, -1, *numbers.shape[1:])
                numbers = halves.swapaxes(1, 2).reshape(numbers.shape)
            theirs = NAMES[stem] if stem in NAMES else f"blk.{layer}.{NAMES[inner]}"
            writer.add_tensor(f"{theirs}.{ending}", gguf.quantize(numbers, stored), raw_dtype=stored)
        save_file(tensors, place)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.fixture
def place(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(home)
    (home / "a.py").write_text(HOLE, encoding="utf-8")
    return home


def filled(run: Runner, model: Path | str) -> tuple[str, float]:
    ran = run("fill", "a.py", "--at", "2:19", "--model", model, "--json")
    assert ran.status == 0, ran.err
    answer = json.loads(ran.out)
    return answer["text"], round(answer["confidence"], 4)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q5_1"])
@pytest.mark.parametrize("family", [LLAMA, QWEN2, QWEN3], ids=lambda each: each.config["model_type"])
def test_it_fills_a_hole_as_the_checkpoint_does(run: Runner, place: Path, family: Checkpoint, kind: str) -> None:
    folder = family.write(place / "published", hidden_size=64, intermediate_size=96, vocab_size=288)
    file = packed(folder, place / "tiny.gguf", kind=kind)

    assert filled(run, file) == filled(run, folder)


def test_ollama_and_lm_studio_keep_them_under_names(run: Runner, place: Path) -> None:
    folder = QWEN2.write(place / "published")
    store, studio = place / ".ollama" / "models", place / ".lmstudio" / "models" / "me" / "tiny-coder-GGUF"
    manifest = store / "manifests" / "registry.ollama.ai" / "library" / "tiny-coder" / "0.1b"
    for each in (store / "blobs", studio, manifest.parent):
        each.mkdir(parents=True)
    packed(folder, store / "blobs" / "sha256-0f3a")
    layers = [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:0f3a"}]
    manifest.write_text(json.dumps({"layers": layers}), encoding="utf-8")
    packed(folder, studio / "tiny-coder-Q8_0.gguf")

    wanted = filled(run, folder)

    assert filled(run, "tiny-coder:0.1b") == wanted
    assert filled(run, "me/tiny-coder-GGUF") == wanted
    assert filled(run, studio) == wanted
    assert "tiny-coder-0.1b" in run("models", "path", "tiny-coder:0.1b").out


def test_those_who_open_it_at_the_same_time_write_its_folder_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = packed(QWEN2.write(place / "it"), place / "it.gguf")
    write, written = weights_gguf._write, list[Path]()

    def slow(file: Path, folder: Path) -> None:
        written.append(folder)
        write(file, folder)

    monkeypatch.setattr(weights_gguf, "_write", slow)
    with ThreadPoolExecutor(4) as pool:
        folders = [*pool.map(weights_gguf.unfolded, [file] * 4)]

    assert len({*folders}) == len(written) == 1
    assert (folders[0] / "config.json").is_file()


def test_its_name_tells_the_format_it_was_trained_on(run: Runner, place: Path) -> None:
    file = packed(QWEN2.write(place / "published"), place / "sweep-next-edit-1.5b.q8_0.gguf")

    assert "family     sweep-next-edit" in run("models", "info", file).out


def test_it_is_refused_with_what_it_takes_unpacked(place: Path) -> None:
    folder = QWEN2.write(place / "published", hidden_size=64, intermediate_size=96, vocab_size=288)
    file = packed(folder, place / "tiny.gguf", kind="Q4_0")
    limits = OpenOptions(dtype="float32", memory_limit=1 << 20)

    with pytest.raises(OutOfMemoryRefusedError) as whole:
        plan_of(folder, limits)
    with pytest.raises(OutOfMemoryRefusedError) as refused:
        plan_of(folder_of(file) or file, limits)

    assert str(refused.value).partition(" needs ")[2] == str(whole.value).partition(" needs ")[2]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"architecture": "starcoder2"}, "its architecture is 'starcoder2'; Calomel reads llama, qwen2, qwen3. "),
        ({"pre": "unheard-of"}, "it splits text into words by rules transformers does not have ('unheard-of'). "),
        ({"rope.scaling.type": "yarn"}, "it scales its positions (rope.scaling). "),
    ],
)
def test_of_another_shape_it_is_left_to_llama_cpp(run: Runner, place: Path, said: dict[str, str], reason: str) -> None:
    file = packed(QWEN2.write(place / "published"), place / "tiny.gguf", **said)

    ran = run("fill", "a.py", "--at", "2:19", "--model", file)

    assert ran.status != 0
    assert f"{reason}Instead, run `llama-server -m {file} --port 8080`" in " ".join(ran.err.split())


def test_one_that_is_cut_short_is_called_damaged(run: Runner, place: Path) -> None:
    file = packed(QWEN2.write(place / "published"), place / "tiny.gguf")
    file.write_bytes(file.read_bytes()[:20_000])

    assert f"{file} is damaged, or cut short" in " ".join(run("models", "info", file).err.split())
