"""A tiny random LLaDA in the files that its makers publish: a Llama in names of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.families.published.layout import TEXT_TOKENS, random_state, write_config, write_tokenizer, write_weights
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

CONTROLS = (
    "<|startoftext|>",
    "<|endoftext|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|mdm_mask|>",
)
TEMPLATE = (
    "{{ '<|startoftext|>' }}{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>"
    "{{ '\n\n' }}{{ message.content }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>{{ '\n\n' }}{% endif %}"
)
_LAYER = {
    "self_attn.q_proj": "q_proj",
    "self_attn.k_proj": "k_proj",
    "self_attn.v_proj": "v_proj",
    "self_attn.o_proj": "attn_out",
    "mlp.gate_proj": "ff_proj",
    "mlp.up_proj": "up_proj",
    "mlp.down_proj": "ff_out",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ff_norm",
}


ENDS = {"eos_token_id": TEXT_TOKENS + 1, "pad_token_id": TEXT_TOKENS + 1}
CONFIG: dict[str, Any] = {
    "activation_type": "silu",
    "alibi": False,
    "architectures": ["LLaDAModelLM"],
    "attention_layer_norm": False,
    "auto_map": {"AutoConfig": "configuration_llada.LLaDAConfig", "AutoModel": "modeling_llada.LLaDAModelLM"},
    "block_group_size": 1,
    "block_type": "llama",
    "d_model": 48,
    "embedding_size": 288,
    "include_bias": False,
    "include_qkv_bias": False,
    "input_emb_norm": False,
    "layer_norm_type": "rms",
    "mask_token_id": TEXT_TOKENS + 5,
    "max_sequence_length": 4096,
    "mlp_hidden_size": 64,
    "model_type": "llada",
    "multi_query_attention": None,
    "n_heads": 6,
    "n_kv_heads": 6,
    "n_layers": 3,
    **ENDS,
    "rms_norm_eps": 1e-05,
    "rope": True,
    "rope_theta": 500000.0,
    "scale_logits": False,
    "vocab_size": 288,
    "weight_tying": False,
}


def network() -> Any:
    """The network that it is, in ordinary names."""
    shape = {
        "vocab_size": CONFIG["embedding_size"],
        "hidden_size": CONFIG["d_model"],
        "intermediate_size": CONFIG["mlp_hidden_size"],
        "num_hidden_layers": CONFIG["n_layers"],
        "num_attention_heads": CONFIG["n_heads"],
        "num_key_value_heads": CONFIG["n_kv_heads"],
        "max_position_embeddings": CONFIG["max_sequence_length"],
        "rms_norm_eps": CONFIG["rms_norm_eps"],
        "rope_theta": CONFIG["rope_theta"],
        "tie_word_embeddings": CONFIG["weight_tying"],
    }
    model = LlamaForCausalLM(LlamaConfig(**shape, bos_token_id=None, eos_token_id=None)).train(mode=False)
    model.load_state_dict(random_state(model), strict=False)
    return model


def published_names(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """A Llama's tensors under LLaDA's names."""
    outside = {"model.embed_tokens": "wte", "model.norm": "ln_f", "lm_head": "ff_out"}
    found = {f"model.transformer.{theirs}.weight": state[f"{ours}.weight"] for ours, theirs in outside.items()}
    for name, tensor in state.items():
        if name.startswith("model.layers."):
            _, _, layer, rest = name.split(".", 3)
            found[f"model.transformer.blocks.{layer}.{_LAYER[rest.removesuffix('.weight')]}.weight"] = tensor
    return found


def write(folder: Path) -> Path:
    """A folder with everything that is published."""
    write_config(folder, CONFIG)
    write_config(folder, {"_from_model_config": True, "bos_token_id": TEXT_TOKENS, **ENDS}, "generation_config.json")
    write_weights(folder, published_names(network().state_dict()))
    names = {"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>"}
    write_tokenizer(folder, CONTROLS, tokenizer_class="PreTrainedTokenizerFast", chat_template=TEMPLATE, more=names)
    return folder


WRITERS = {"llada": write}
