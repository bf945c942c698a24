"""A tiny random Open-dCoder in the files that its makers publish: an ordinary Qwen2 with a mask token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.families.published import dream
from tests.families.published.layout import TEXT_TOKENS, random_state, write_config, write_tokenizer, write_weights

CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<M>")
_DREAMS_OWN = ("auto_map", "mask_token_id", "use_cache", "pad_token_id", "bos_token_id", "eos_token_id")


def config(**more: Any) -> dict[str, Any]:
    """Its `config.json`, cut down."""
    raw = {name: value for name, value in dream.config().items() if name not in _DREAMS_OWN}
    own = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "tie_word_embeddings": True}
    return {**raw, **own, "max_position_embeddings": 32768, "eos_token_id": TEXT_TOKENS, **more}


def write(folder: Path, *, seed: int = 0, controls: tuple[str, ...] = CONTROLS, **more: Any) -> Path:
    """A folder with everything that is published."""
    raw = config(**more)
    write_config(folder, raw)
    write_weights(folder, random_state(dream.backbone(raw), seed))
    write_tokenizer(folder, controls, more={"mask_token": "<M>", "eos_token": "<|endoftext|>"})
    return folder


WRITERS = {"open-dcoder": write}
