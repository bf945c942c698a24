"""A tiny random LLaDA2 in its published layout: names of tensors, fields of config.json, files of the tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tests.families.published.layout import DECODER, TEXT_TOKENS, write_config, write_tokenizer, write_weights
from torch import Tensor

CONTROLS = ("<|startoftext|>", "<|endoftext|>", "<|mask|>", "<role>", "</role>", "<|role_end|>")
# Cut down to what counts of the published one.
TEMPLATE = (
    "{% for message in messages %}<role>{{ 'HUMAN' if message.role == 'user' else message.role | upper }}</role>"
    "{{ message.content }}<|role_end|>{% endfor %}{% if add_generation_prompt %}<role>ASSISTANT</role>{% endif %}"
)
CONFIG: dict[str, Any] = {
    **DECODER,
    "architectures": ["LLaDA2MoeModelLM"],
    "auto_map": {
        "AutoConfig": "configuration_llada2_moe.LLaDA2MoeConfig",
        "AutoModelForCausalLM": "modeling_llada2_moe.LLaDA2MoeModelLM",
    },
    "first_k_dense_replace": 1,
    "head_dim": 16,
    "max_window_layers": 28,
    "model_type": "llada2_moe",
    "moe_intermediate_size": 24,
    "moe_router_enable_expert_bias": True,
    "n_group": 4,
    "norm_head": False,
    "norm_topk_prob": True,
    "num_experts": 16,
    "num_experts_per_tok": 3,
    "num_shared_experts": 1,
    "pad_token_id": TEXT_TOKENS + 1,
    "partial_rotary_factor": 0.5,
    "rope_theta": 600000,
    "routed_scaling_factor": 2.5,
    "router_dtype": "fp32",
    "score_function": "sigmoid",
    "sliding_window": 4096,
    "topk_group": 2,
    "use_bias": False,
    "use_qk_norm": True,
    "use_qkv_bias": False,
    "vocab_size": TEXT_TOKENS + len(CONTROLS) + 5,
}


def tensors(config: dict[str, Any] = CONFIG, seed: int = 0) -> dict[str, Tensor]:
    """Random tensors of every published name and shape."""
    generator = torch.Generator().manual_seed(seed)

    def weight(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator) * 0.2

    size, width = config["hidden_size"], config["head_dim"]
    heads, key_heads = config["num_attention_heads"], config["num_key_value_heads"]
    found = {"model.word_embeddings.weight": weight(config["vocab_size"], size)}

    def mlp(name: str, inner: int) -> None:
        for part in ("gate_proj", "up_proj"):
            found[f"{name}.{part}.weight"] = weight(inner, size)
        found[f"{name}.down_proj.weight"] = weight(size, inner)

    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}"
        found[f"{name}.attention.query_key_value.weight"] = weight((heads + 2 * key_heads) * width, size)
        found[f"{name}.attention.dense.weight"] = weight(size, heads * width)
        for norm in ("attention.query_layernorm", "attention.key_layernorm"):
            found[f"{name}.{norm}.weight"] = weight(width) + 1
        for norm in ("input_layernorm", "post_attention_layernorm"):
            found[f"{name}.{norm}.weight"] = weight(size) + 1
        if layer < config["first_k_dense_replace"]:
            mlp(f"{name}.mlp", config["intermediate_size"])
            continue
        found[f"{name}.mlp.gate.weight"] = weight(config["num_experts"], size)
        found[f"{name}.mlp.gate.expert_bias"] = weight(config["num_experts"])
        for expert in range(config["num_experts"]):
            mlp(f"{name}.mlp.experts.{expert}", config["moe_intermediate_size"])
        mlp(f"{name}.mlp.shared_experts", config["moe_intermediate_size"] * config["num_shared_experts"])
    found["model.norm.weight"] = weight(size) + 1
    found["lm_head.weight"] = weight(config["vocab_size"], size)
    return found


def write(folder: Path) -> None:
    """The checkpoint, in three shards."""
    write_config(folder, CONFIG)
    write_config(folder, {"eos_token_id": TEXT_TOKENS + 1, "pad_token_id": TEXT_TOKENS + 1}, "generation_config.json")
    more = {"mask_token": "<|mask|>"}
    write_tokenizer(folder, CONTROLS, tokenizer_class="PreTrainedTokenizerFast", chat_template=TEMPLATE, more=more)
    write_weights(folder, tensors(), shards=3)


WRITERS = {"llada2": write}
