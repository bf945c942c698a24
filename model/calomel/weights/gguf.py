"""GGUF files, as llama.cpp, Ollama and LM Studio keep them, and the checkpoint folder that stands for each.

Such a folder has a `config.json` and a tokenizer that were written from the file's own fields, the places of its
tensors, and a link to the file: weights are never copied.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from calomel import storage
from calomel.storage.failures import cause
from calomel.weights import gguf_in, weights_id
from calomel.weights.gguf_header import check_header

_MANIFESTS: Final = "manifests/registry.ollama.ai"
_LIBRARY: Final = "library"
LINK: Final = "model.gguf"
PLACES: Final = "gguf-tensors.json"
_CLASSES: Final = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
_NAMES: Final = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
# Ways to cut a text into words that transformers does not know by these names: GPT-2's, with every digit by itself.
_DIGITS: Final = frozenset({"smollm", "starcoder", "refact", "command-r"})
_GPT2: Final = frozenset({"gpt-2", "default", "mpt", "olmo", "jais"})
# Kinds of tokens in `tokenizer.ggml.token_type`.
_CONTROL: Final = 3
_USER_DEFINED: Final = 4

# Of SmolLM2-135M on one core: 39.5 tokens a second in four bits, 13.2 of this engine in bfloat16.
FASTER_ON_A_CPU: Final = (
    "On a CPU, llama.cpp may be faster: with SmolLM2-135M on one core, it wrote three times as many tokens a second in "
    "four bits as Calomel in bfloat16. To use it, install the extra `llama` and set backend.model to a GGUF file, or "
    'run `llama-server -m FILE.gguf --port 8080` and set backend.upstream = "http://127.0.0.1:8080".'
)


# Writing a folder takes seconds; a start that waited longer writes one of its own.
_WRITE_SECONDS: Final = 60.0


class GgufError(ValueError):
    """The file cannot be opened here; the message says why, and what can."""


def by_llama_cpp(file: Path) -> str:
    """How to use any GGUF file."""
    return (
        f"run `llama-server -m {file} --port 8080` and set backend.upstream = "
        '"http://127.0.0.1:8080" (on the command line: --upstream)'
    )


def check_gguf(file: Path) -> None:
    """Raise GgufError for a file whose header cannot be true, before any library believes it."""
    try:
        check_header(file)
    except (ValueError, OSError) as error:
        raise GgufError(f"{file} is damaged, or cut short: {cause(error)}") from error


def gguf_of(name: str) -> Path | None:
    """The file of a model that Ollama fetched (`qwen2.5-coder:1.5b`), or LM Studio (`owner/name`); None without one."""
    model, _, tag = name.partition(":")
    home, owned = _ollama(), model if "/" in model else f"{_LIBRARY}/{model}"
    manifest = home / _MANIFESTS / owned / (tag or "latest")
    if ".." not in manifest.parts and manifest.is_file():
        for layer in storage.read_object(manifest, GgufError).get("layers") or ():
            if str(layer.get("mediaType", "")).endswith(".image.model"):
                return gguf_in(home / "blobs" / str(layer.get("digest", "")).replace(":", "-"))
    found = (gguf_in(place / name) for place in _lm_studio() if "/" in name and ".." not in Path(name).parts)
    return next((each for each in found if each is not None), None)


def gguf_of_others() -> Iterator[tuple[Literal["Ollama", "LM Studio"], str, Path]]:
    """Program, name and file of every model that `gguf_of` finds."""
    manifests = _ollama() / _MANIFESTS
    for manifest in sorted(manifests.glob("*/*/*")):
        owner, model, tag = manifest.relative_to(manifests).parts
        name = f"{model}:{tag}" if owner == _LIBRARY else f"{owner}/{model}:{tag}"
        with contextlib.suppress(GgufError, OSError, AttributeError, TypeError):
            if (file := gguf_of(name)) is not None:
                yield "Ollama", name, file
    for place in _lm_studio():
        for folder in sorted(place.glob("*/*/")):
            if (file := gguf_in(folder)) is not None:
                yield "LM Studio", folder.relative_to(place).as_posix(), file


def _ollama() -> Path:
    return Path(os.environ.get("OLLAMA_MODELS") or Path.home() / ".ollama" / "models").expanduser()


def _lm_studio() -> tuple[Path, ...]:
    return Path.home() / ".lmstudio" / "models", Path.home() / ".cache" / "lm-studio" / "models"


def unfolded(file: Path, name: str | None = None) -> Path:
    """The checkpoint folder of a GGUF file, in the user's cache; written when the file is opened first.

    Args:
        file: of one of the shapes that Calomel computes.
        name: of the model, where the file's own says nothing (Ollama's blobs).

    Raises:
        GgufError: packages are not installed, or the file is damaged, of another shape, or one of several parts.
    """
    import platformdirs

    title = (name or file.stem).replace("/", "-").replace(":", "-")
    try:
        folder = platformdirs.user_cache_path("calomel", appauthor=False) / "gguf" / f"{title}-{weights_id(file)}"
        if _stands_for(folder, file):
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Whoever waits finds it written.
        with (
            storage.only_one(folder.with_name(f"{folder.name}.lock"), _WRITE_SECONDS),
            tempfile.TemporaryDirectory(dir=folder.parent) as drafts,
        ):
            if not _stands_for(folder, file):
                draft = Path(drafts) / "new"
                draft.mkdir(mode=0o700)
                _write(file, draft)
                if folder.exists():
                    folder.rename(Path(drafts) / "old")
                draft.rename(folder)
    except OSError as error:
        raise GgufError(f"cannot open {file}: {error}") from error
    return folder


def _stands_for(folder: Path, file: Path) -> bool:
    return (folder / LINK).resolve() == file.resolve() and (folder / PLACES).is_file()


def _write(file: Path, folder: Path) -> None:
    try:
        from gguf import GGUFReader
        from transformers import PreTrainedTokenizerFast
    except ImportError as error:
        raise GgufError(
            f"{file} is a GGUF file. Install Calomel's extra `llama`, or `gguf` to open it in Calomel's own engine "
            f"(see docs/install.md#extras), or {by_llama_cpp(file)}"
        ) from error
    try:
        check_header(file)
        reader = GGUFReader(file)
        said = {name: field.contents() for name, field in reader.fields.items() if len(field.data) == 1}
        tensors = {tensor.name: tensor for tensor in reader.tensors}
        config = _config(said, tensors)
        places = dict(_places(config, tensors))
        tokenizer: Any = PreTrainedTokenizerFast.from_pretrained(file.parent, gguf_file=file.name)
        tokenizer.save_pretrained(folder)
        if said.get("tokenizer.ggml.model") == "gpt2":
            _mend(folder / "tokenizer.json", str(said.get("tokenizer.ggml.pre", "default")), reader)
    except GgufError as error:
        raise GgufError(f"Calomel's own engine cannot open {file}: {error}. Instead, {by_llama_cpp(file)}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, OSError) as error:
        raise GgufError(f"{file} is damaged, or cut short: {cause(error)}") from error
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    (folder / PLACES).write_text(json.dumps(places), encoding="utf-8")
    (folder / LINK).symlink_to(file.resolve())


def _config(said: Mapping[str, Any], tensors: Mapping[str, Any]) -> dict[str, Any]:
    """What a `config.json` says of such a model. Raises GgufError for one that our decoder would compute otherwise."""
    kind = str(said["general.architecture"])
    if kind not in _CLASSES:
        raise GgufError(f"its architecture is {kind!r}; Calomel reads {', '.join(_CLASSES)}")
    if int(said.get("split.count") or 1) > 1:
        raise GgufError("it is one of several parts")
    if said.get(f"{kind}.rope.scaling.type", "none") != "none" or "rope_freqs.weight" in tensors:
        raise GgufError("it scales its positions (rope.scaling)")
    if said.get(f"{kind}.attention.sliding_window"):
        raise GgufError("its layers have sliding windows")
    heads, width = int(said[f"{kind}.attention.head_count"]), int(said[f"{kind}.embedding_length"])
    return {
        "model_type": kind,
        "architectures": [_CLASSES[kind]],
        "_name_or_path": str(said.get("general.name", "")),
        "hidden_size": width,
        "num_hidden_layers": int(said[f"{kind}.block_count"]),
        "intermediate_size": int(said[f"{kind}.feed_forward_length"]),
        "num_attention_heads": heads,
        "num_key_value_heads": int(said.get(f"{kind}.attention.head_count_kv", heads)),
        "head_dim": int(said.get(f"{kind}.attention.key_length", width // heads)),
        "rms_norm_eps": float(said[f"{kind}.attention.layer_norm_rms_epsilon"]),
        "rope_theta": float(said.get(f"{kind}.rope.freq_base", 10_000.0)),
        "max_position_embeddings": int(said[f"{kind}.context_length"]),
        "vocab_size": int(tensors["token_embd.weight"].shape[1]),
        "tie_word_embeddings": "output.weight" not in tensors,
        "attention_bias": "blk.0.attn_output.bias" in tensors,
        "mlp_bias": "blk.0.ffn_down.bias" in tensors,
        "eos_token_id": said.get("tokenizer.ggml.eos_token_id"),
    }


def _places(config: Mapping[str, Any], tensors: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tensor by the name that it has in safetensors files, and where it is in the file."""
    # llama.cpp interleaves the two halves of each head of Llama's queries and keys.
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for name, tensor in tensors.items():
        *block, part, kind = name.split(".")
        if part not in _NAMES:
            raise GgufError(f"it has a tensor {name}")
        place = f"model.layers.{block[1]}." if block else ""
        yield (
            f"{place}{_NAMES[part]}.{kind}",
            {
                "shape": [int(size) for size in reversed(tensor.shape)],
                "type": int(tensor.tensor_type),
                "offset": int(tensor.data_offset),
                "bytes": int(tensor.n_bytes),
                "interleaved": heads.get(part, 0) if config["model_type"] == "llama" else 0,
            },
        )


def _mend(file: Path, kind: str, reader: Any) -> None:
    """Put right what transformers makes of a byte-level tokenizer: names of control tokens, and some ways to cut texts.

    Raises GgufError for a way that is not known: cut otherwise, texts are tokens that the model never saw.
    """
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    described = json.loads(file.read_text(encoding="utf-8"))
    if kind in _DIGITS:
        digits = {"type": "Digits", "individual_digits": True}
        described["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [digits, described["pre_tokenizer"]]}
    elif kind not in _GPT2 and kind not in GGUF_PRE_TOKENIZER_SPLITS:
        raise GgufError(f"it splits text into words by rules transformers does not have ({kind!r})")
    names, kinds = (reader.fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "token_type"))
    described["model"]["vocab"] = {name: number for number, name in enumerate(names)}
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    described["added_tokens"] = [
        {"id": number, "content": name, "special": kinds[number] == _CONTROL, **plain}
        for number, name in enumerate(names)
        if kinds[number] in (_CONTROL, _USER_DEFINED)
    ]
    file.write_text(json.dumps(described), encoding="utf-8")
