"""A tiny random Dream in the files that its makers publish; DiffuCoder and DreamOn have the same network."""

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

CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|beginoftext|>", "<|mask|>")
VOCABULARY = 288


def config(controls: tuple[str, ...] = CONTROLS, **more: Any) -> dict[str, Any]:
    """Its `config.json`, cut down."""
    end, mask = (TEXT_TOKENS + controls.index(name) for name in ("<|endoftext|>", "<|mask|>"))
    return {
        "architectures": ["DreamModel"],
        "attention_dropout": 0.0,
        "auto_map": {"AutoConfig": "configuration_dream.DreamConfig", "AutoModel": "modeling_dream.DreamModel"},
        "bos_token_id": end,
        "eos_token_id": end,
        "hidden_act": "silu",
        "hidden_size": 48,
        "initializer_range": 0.02,
        "intermediate_size": 64,
        "mask_token_id": mask,
        "max_position_embeddings": 131072,
        "max_window_layers": 3,
        "model_type": "Dream",
        "num_attention_heads": 6,
        "num_hidden_layers": 3,
        "num_key_value_heads": 2,
        "pad_token_id": end,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 1000000.0,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "use_cache": False,
        "use_sliding_window": False,
        "vocab_size": VOCABULARY,
        **more,
    }


def backbone(raw: dict[str, Any]) -> Qwen2ForCausalLM:
    """The network that it is made of, by its own `config.json`."""
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    shape = {name: raw[name] for name in (*names, "rms_norm_eps", "rope_theta", "vocab_size", "tie_word_embeddings")}
    # No ids: the class would look for them in its vocabulary.
    model = Qwen2ForCausalLM(Qwen2Config(**shape, bos_token_id=None, eos_token_id=None))
    model.train(mode=False)
    return model


def write(
    folder: Path,
    *,
    seed: int = 0,
    controls: tuple[str, ...] = CONTROLS,
    generation: dict[str, Any] | None = None,
    **more: Any,
) -> Path:
    """A folder with everything that is published."""
    raw = config(controls, **more)
    write_config(folder, raw)
    ids = {name: raw[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    write_config(folder, {"_from_model_config": True, **ids, **(generation or {})}, "generation_config.json")
    write_weights(folder, random_state(backbone(raw), seed))
    write_tokenizer(folder, controls, files="vocab and merges", tokenizer_class="DreamTokenizer", chat_template=CHATML)
    return folder


WRITERS = {"dream": write}
