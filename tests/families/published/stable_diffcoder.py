"""A tiny random Stable-DiffCoder in its published layout: a Llama's tensors, Seed-Coder's control tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.families.published.layout import (
    TEXT_TOKENS,
    random_state,
    write_config,
    write_tokenizer,
    write_weights,
)
from transformers import LlamaConfig, LlamaForCausalLM

CONTROLS = (
    "<[begin▁of▁sentence]>",
    "<[PAD▁TOKEN]>",
    "<[end▁of▁sentence]>",
    "<[MASK_TOKEN]>",
    "<[fim-prefix]>",
    "<[fim-suffix]>",
    "<[fim-middle]>",
)
# Cut down to what counts of the published one.
TEMPLATE = (
    "{% for message in messages %}<[begin▁of▁sentence]>{{ message.role }}\n{{ message.content }}<[end▁of▁sentence]>"
    "{% endfor %}{% if add_generation_prompt %}<[begin▁of▁sentence]>assistant\n{% endif %}"
)
CONFIG: dict[str, Any] = {
    "architectures": ["StableDiffcoderForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "auto_map": {"AutoModelForCausalLM": "modeling_seed_diffcoder.StableDiffcoderForCausalLM"},
    "bos_token_id": TEXT_TOKENS,
    "eos_token_id": TEXT_TOKENS + 2,
    "head_dim": 16,
    "hidden_act": "silu",
    "hidden_size": 64,
    "initializer_range": 0.02,
    "intermediate_size": 96,
    "max_position_embeddings": 2048,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "pad_token_id": TEXT_TOKENS + 1,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "vocab_size": TEXT_TOKENS + len(CONTROLS) + 2,
}


def network(**changed: Any) -> Any:
    """The same weights in the class that Stable-DiffCoder's is made of."""
    fields = {name: value for name, value in (CONFIG | changed).items() if name not in {"architectures", "auto_map"}}
    settings: dict[str, Any] = fields | {"attn_implementation": "eager"}
    model: Any = LlamaForCausalLM(LlamaConfig(**settings))
    model.eval().load_state_dict(random_state(model), strict=False)
    return model


def write(folder: Path, **changed: Any) -> None:
    """The checkpoint in two shards; `changed` are fields of its config.json."""
    write_config(folder, CONFIG | changed)
    write_config(folder, {"eos_token_id": TEXT_TOKENS + 2, "do_sample": False}, "generation_config.json")
    write_tokenizer(folder, CONTROLS, tokenizer_class="PreTrainedTokenizerFast", chat_template=TEMPLATE)
    write_weights(folder, random_state(network(**changed)))


WRITERS = {"stable-diffcoder": write}
