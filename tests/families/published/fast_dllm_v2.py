"""A tiny random Fast-dLLM v2 in its published layout: Qwen2.5's tensors, whose projections have biases."""

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
from transformers import Qwen2Config, Qwen2ForCausalLM

CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "|<MASK>|")
CONFIG: dict[str, Any] = {
    "architectures": ["Fast_dLLM_QwenForCausalLM"],
    "attention_dropout": 0.0,
    "auto_map": {
        "AutoConfig": "configuration.Fast_dLLM_QwenConfig",
        "AutoModel": "modeling.Fast_dLLM_QwenForCausalLM",
        "AutoModelForCausalLM": "modeling.Fast_dLLM_QwenForCausalLM",
    },
    "bd_size": 32,
    "bos_token_id": TEXT_TOKENS,
    "eos_token_id": TEXT_TOKENS + 2,
    "hidden_act": "silu",
    "hidden_size": 64,
    "initializer_range": 0.02,
    "intermediate_size": 96,
    "max_position_embeddings": 2048,
    "max_window_layers": 21,
    "model_type": "Fast_dLLM_Qwen",
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "sliding_window": 2048,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": TEXT_TOKENS + len(CONTROLS) + 3,
}
GENERATION = {"do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8, "repetition_penalty": 1.1}


def network(**changed: Any) -> Any:
    """The same weights in the class that Fast-dLLM v2's is made of."""
    fields = {name: value for name, value in (CONFIG | changed).items() if name not in {"architectures", "auto_map"}}
    settings: dict[str, Any] = fields | {"model_type": "qwen2", "attn_implementation": "eager"}
    model: Any = Qwen2ForCausalLM(Qwen2Config(**settings))
    model.eval().load_state_dict(random_state(model), strict=False)
    return model


def write(folder: Path, **changed: Any) -> None:
    """The checkpoint in two shards; `changed` are fields of its config.json."""
    write_config(folder, CONFIG | changed)
    write_config(folder, GENERATION, "generation_config.json")
    write_tokenizer(folder, CONTROLS, chat_template=CHATML)
    write_weights(folder, random_state(network(**changed)))


WRITERS = {"fast-dllm-v2": write}
