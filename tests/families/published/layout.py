"""Writes folders as makers publish them: configuration, weights in shards with an index, tokenizer files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE
from torch import Tensor, nn

from calomel.engine import ModelConfig
from calomel.families.configuration import read_config
from calomel.families.table import find
from calomel.prompts.tokenizer import byte_alphabet

# Pairs of bytes (in their stand-ins) that become one token, so that text has tokens of several characters.
_MERGES = ("Ġ Ġ", "ĠĠ ĠĠ", "r e", "t u", "re tu", "r n", "retu rn", "d e", "de f", "i n", "s e", "se l", "sel f")
_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# The fields that most published configurations have, of a tiny decoder.
DECODER: dict[str, Any] = {
    "hidden_act": "silu",
    "hidden_size": 48,
    "intermediate_size": 80,
    "max_position_embeddings": 2048,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_sliding_window": False,
}
# The tokens of text that every tiny tokenizer has: the bytes and the merged pairs. Control tokens follow.
TEXT_TOKENS = 256 + len(_MERGES)


def prompt(size: int) -> tuple[int, ...]:
    """Text tokens."""
    return tuple(torch.randint(0, 256, (size,), generator=torch.Generator().manual_seed(size)).tolist())


def write_config(folder: Path, raw: Mapping[str, Any], name: str = "config.json") -> None:
    """`config.json`, or another JSON file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(raw, indent=2), encoding="utf-8")


def write_weights(folder: Path, tensors: Mapping[str, Tensor], *, shards: int = 2) -> None:
    """`tensors` under their published names in `shards` files with an index; in one file without for 1."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(tensors)
    if shards == 1:
        save_file({name: tensors[name].contiguous() for name in names}, folder / "model.safetensors", {"format": "pt"})
        return
    places: dict[str, str] = {}
    for number in range(shards):
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        mine = names[number * len(names) // shards : (number + 1) * len(names) // shards]
        save_file({name: tensors[name].contiguous() for name in mine}, folder / file, {"format": "pt"})
        places |= dict.fromkeys(mine, file)
    size = sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def random_state(module: nn.Module, seed: int = 0, scale: float = 0.25) -> dict[str, Tensor]:
    """Random tensors for every parameter of `module`, under their names: norms near 1, all others near 0."""
    generator = torch.Generator().manual_seed(seed)
    found: dict[str, Tensor] = {}
    for name, tensor in module.named_parameters():
        noise = torch.randn(tensor.shape, generator=generator) * scale
        found[name] = noise + 1 if "norm" in name and name.endswith("weight") else noise
    return found


def write_tokenizer(
    folder: Path,
    controls: Sequence[str],
    *,
    files: Literal["tokenizer.json", "vocab and merges"] = "tokenizer.json",
    tokenizer_class: str = "Qwen2Tokenizer",
    chat_template: str | None = None,
    text_tokens: Sequence[str] = (),
    more: Mapping[str, Any] | None = None,
) -> dict[str, int]:
    """A tiny byte-level BPE tokenizer in published files; `controls` get ids from `TEXT_TOKENS` on, which are returned.

    Args:
        folder: gets the files.
        controls: names of added tokens, in the order of their ids.
        files: which files there are; the second kind is what slow tokenizers publish.
        tokenizer_class: as tokenizer_config.json says it.
        chat_template: for tokenizer_config.json; None for none.
        text_tokens: those of `controls` that are published as not special, as Qwen does with its FIM tokens.
        more: further fields of tokenizer_config.json.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {character: number for number, character in enumerate(byte_alphabet().values())}
    for pair in _MERGES:
        vocabulary[pair.replace(" ", "")] = len(vocabulary)
    ids = {name: TEXT_TOKENS + number for number, name in enumerate(controls)}
    config: dict[str, Any] = {
        "tokenizer_class": tokenizer_class,
        "added_tokens_decoder": {
            str(number): {"content": name, "special": name not in text_tokens} for name, number in ids.items()
        },
        **(more or {}),
    }
    if chat_template is not None:
        config["chat_template"] = chat_template
    write_config(folder, config, "tokenizer_config.json")
    if files == "vocab and merges":
        write_config(folder, vocabulary, "vocab.json")
        write_config(folder, ids, "added_tokens.json")
        (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(_MERGES) + "\n", encoding="utf-8")
        return ids
    bytewise = {"add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    fast = Tokenizer(BPE(vocabulary, [(first, second) for first, second in map(str.split, _MERGES)]))
    fast.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(_QWEN), "isolated")
    fast.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(**bytewise)])
    fast.post_processor = processors.ByteLevel(**bytewise)
    fast.decoder = decoders.ByteLevel()
    fast.add_tokens([AddedToken(name, normalized=False, special=name not in text_tokens) for name in controls])
    fast.save(str(folder / "tokenizer.json"))
    return ids


# What most chat checkpoints publish, cut down to what counts.
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


# The families of which a tiny checkpoint can be written, and the shape of one.
Writer = Callable[[Path], object]


def writers() -> dict[str, Writer]:
    """Family name to what writes a tiny random checkpoint of it: `WRITERS` of every module in this folder."""
    found: dict[str, Writer] = {}
    for file in sorted(Path(__file__).parent.glob("*.py")):
        found |= getattr(import_module(f"tests.families.published.{file.stem}"), "WRITERS", {})
    return found


def shape_of(folder: Path) -> ModelConfig:
    """The shape of a checkpoint's decoder."""
    return find(folder).config(read_config(folder), folder)
