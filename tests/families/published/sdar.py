"""A tiny random SDAR in its published layout: Qwen3's tensors, a tokenizer of vocabulary and merges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.families.published.layout import (
    CHATML,
    TEXT_TOKENS,
    random_state,
    write_config,
    write_tokenizer,
    write_weights,
)
from transformers import Qwen3Config, Qwen3ForCausalLM

CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|MASK|>")
CONFIG: dict[str, Any] = {
    "architectures": ["SDARForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "auto_map": {
        "AutoConfig": "configuration_sdar.SDARConfig",
        "AutoModel": "modeling_sdar.SDARModel",
        "AutoModelForCausalLM": "modeling_sdar.SDARForCausalLM",
    },
    "block_size": 4,
    "bos_token_id": TEXT_TOKENS,
    "eos_token_id": TEXT_TOKENS + 2,
    "fuse_cross_entropy": True,
    "head_dim": 16,
    "hidden_act": "silu",
    "hidden_size": 48,
    "initializer_range": 0.02,
    "intermediate_size": 80,
    "mask_token_id": TEXT_TOKENS + 3,
    "max_position_embeddings": 2048,
    "max_window_layers": 3,
    "model_type": "sdar",
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": TEXT_TOKENS + len(CONTROLS) + 3,
}
GENERATION = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "eos_token_id": [TEXT_TOKENS + 2]}


def network(**changed: Any) -> Any:
    """The same weights in the class that SDAR's is made of."""
    fields = {name: value for name, value in (CONFIG | changed).items() if name not in {"architectures", "auto_map"}}
    settings: dict[str, Any] = fields | {"model_type": "qwen3", "attn_implementation": "eager"}
    model: Any = Qwen3ForCausalLM(Qwen3Config(**settings))
    model.eval().load_state_dict(random_state(model), strict=False)
    return model


def write(folder: Path, **changed: Any) -> None:
    """The checkpoint in two shards; `changed` are fields of its config.json."""
    write_config(folder, CONFIG | changed)
    write_config(folder, GENERATION, "generation_config.json")
    write_tokenizer(folder, CONTROLS, files="vocab and merges", chat_template=CHATML, more={"mask_token": "<|MASK|>"})
    write_weights(folder, random_state(network(**changed)))


WRITERS = {"sdar": write}
