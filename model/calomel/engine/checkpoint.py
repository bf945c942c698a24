"""Checkpoint folders: `config.json` and `model.safetensors`, in the names of the Hugging Face Qwen3 implementation.

Every tensor is mapped by an explicit table, which `calomel.families.loading` uses to read folders.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from calomel.engine.config import ModelConfig, MoeConfig
from calomel.engine.transformer import Transformer
from calomel.storage import write_whole

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
# What follows a matrix's name in the name of its scales, if it is stored in eight bits.
SCALE = ".scale"


@cache
def native_bfloat16() -> bool:
    """True if the CPU multiplies bfloat16 in hardware; without that, bfloat16 is several times slower."""
    capabilities = torch.cpu.get_capabilities()
    return any(bool(capabilities.get(name)) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def native_dtype(device: str) -> torch.dtype:
    """The type that `device` computes fastest in: bfloat16 if it is native, else float32."""
    kind = torch.device(device).type
    if kind == "mps" and not torch.backends.mps.is_macos_or_newer(14, 0):
        return torch.float32
    return torch.bfloat16 if kind in {"cuda", "mps"} or native_bfloat16() else torch.float32


def tensor_table(config: ModelConfig) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Pairs (name in `Transformer`, names in the file, concatenated along dimension 0 in that order)."""
    yield "embed_tokens.weight", ("model.embed_tokens.weight",)
    for layer in range(config.num_hidden_layers):
        ours, theirs = f"layers.{layer}", f"model.layers.{layer}"
        for kind in ("weight", "bias") if config.attention_bias else ("weight",):
            yield (
                f"{ours}.self_attn.qkv_proj.{kind}",
                tuple(f"{theirs}.self_attn.{part}_proj.{kind}" for part in "qkv"),
            )
        names = ["self_attn.o_proj", "input_layernorm", "post_attention_layernorm"]
        if config.qk_norm:
            names += ["self_attn.q_norm", "self_attn.k_norm"]
        for name in names:
            yield f"{ours}.{name}.weight", (f"{theirs}.{name}.weight",)
        if config.output_bias:
            yield f"{ours}.self_attn.o_proj.bias", (f"{theirs}.self_attn.o_proj.bias",)
        if config.moe is None or layer in config.moe.dense:
            yield from mlp_table(f"{ours}.mlp", f"{theirs}.mlp", bias=config.mlp_bias)
        else:
            yield from mixture_table(config.moe, f"{ours}.mlp", f"{theirs}.mlp")
    yield "norm.weight", ("model.norm.weight",)
    if not config.tie_word_embeddings:
        yield "lm_head.weight", ("lm_head.weight",)


def mlp_table(ours: str, theirs: str, *, bias: bool = False) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The pairs of one MLP, or of the shared experts."""
    for kind in ("weight", "bias") if bias else ("weight",):
        yield f"{ours}.gate_up_proj.{kind}", (f"{theirs}.gate_proj.{kind}", f"{theirs}.up_proj.{kind}")
        yield f"{ours}.down_proj.{kind}", (f"{theirs}.down_proj.{kind}",)


def mixture_table(moe: MoeConfig, ours: str, theirs: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The pairs of one mixture of experts, in the names shared by Qwen3-MoE and LLaDA2."""
    yield f"{ours}.gate.weight", (f"{theirs}.gate.weight",)
    if moe.bias:
        yield f"{ours}.gate.expert_bias", (f"{theirs}.gate.expert_bias",)
    experts = [f"{theirs}.experts.{number}" for number in range(moe.experts)]
    halves = tuple(f"{expert}.{part}_proj.weight" for expert in experts for part in ("gate", "up"))
    yield f"{ours}.experts.gate_up_proj.weight", halves
    yield f"{ours}.experts.down_proj.weight", tuple(f"{expert}.down_proj.weight" for expert in experts)
    if moe.shared:
        yield from mlp_table(f"{ours}.shared_experts", f"{theirs}.shared_experts")


def save_checkpoint(
    model: Transformer,
    folder: Path,
    *,
    dtype: torch.dtype = torch.bfloat16,
    abilities: Mapping[str, Any] | None = None,
) -> None:
    """Write `config.json` and `model.safetensors` into `folder`, each replaced in one step.

    `abilities` are further fields of `config.json`, which say what the weights were trained for; the engine does not
    read them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    state = model.state_dict()
    tensors: dict[str, Tensor] = {}
    for ours, theirs in tensor_table(model.config):
        parts = state[ours].split(_row_counts(model.config, theirs, state[ours].shape[0]), dim=0)
        for name, part in zip(theirs, parts, strict=True):
            tensors[name] = part.detach().to(device="cpu", dtype=dtype).contiguous()
    write_whole(folder / WEIGHTS_FILE, save(tensors, metadata={"format": "pt"}))
    write_whole(folder / CONFIG_FILE, json.dumps({**model.config.to_dict(), **(abilities or {})}, indent=2) + "\n")


def round_checkpoint(folder: Path, into: Path) -> None:
    """Write the weights of `folder` into `into` with the layers' matrices in eight bits, a float32 scale for each row.

    Reading makes numbers of them again: memory and speed do not change, only the size on the disk does.
    """
    tensors: dict[str, Tensor] = {}
    for name, tensor in load_file(folder / WEIGHTS_FILE).items():
        tensors[name] = tensor
        if tensor.ndim == 2 and ".layers." in name:  # noqa: PLR2004
            scale = tensor.float().abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / 127
            tensors[name] = (tensor.float() / scale[:, None]).round().to(torch.int8)
            tensors[name + SCALE] = scale
    into.mkdir(parents=True, exist_ok=True)
    write_whole(into / WEIGHTS_FILE, save(tensors, metadata={"format": "pt"}))


def _row_counts(config: ModelConfig, names: tuple[str, ...], rows: int) -> list[int]:
    """How many of the `rows` rows of a fused tensor belong to each of its parts."""
    if ".q_proj." not in names[0]:  # a single tensor, gate and up, or experts: equal sizes
        return [rows // len(names)] * len(names)
    keys = config.num_key_value_heads * config.head_dim
    return [rows - 2 * keys, keys, keys]
