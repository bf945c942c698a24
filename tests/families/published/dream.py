"""Tiny random checkpoints of the Dream family in the files that their makers publish: a Qwen2 with a mask token."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.families.published.layout import (
    CHATML,
    DECODER,
    TEXT_TOKENS,
    random_state,
    write_config,
    write_tokenizer,
    write_weights,
)
from transformers import Qwen2Config, Qwen2ForCausalLM

CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|beginoftext|>", "<|mask|>")
OPEN_CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<M>")
_QWEN = {
    **DECODER,
    "max_position_embeddings": 131072,
    "max_window_layers": 3,
    "sliding_window": None,
    "vocab_size": 288,
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
    controls: tuple[str, ...] = CONTROLS,
    generation: dict[str, Any] | None = None,
) -> Path:
    """A folder with everything that is published of a Dream."""
    end, mask = (TEXT_TOKENS + controls.index(token) for token in ("<|endoftext|>", "<|mask|>"))
    ids = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end}
    remote = {"AutoConfig": "configuration_dream.DreamConfig", "AutoModel": "modeling_dream.DreamModel"}
    own = {"architectures": ["DreamModel"], "auto_map": remote, "model_type": "Dream", "mask_token_id": mask}
    raw = {**_QWEN, **ids, **own, "use_cache": False}
    write_config(folder, raw)
    write_config(folder, {"_from_model_config": True, **ids, **(generation or {})}, "generation_config.json")
    write_weights(folder, random_state(backbone(raw)))
    write_tokenizer(folder, controls, files="vocab and merges", tokenizer_class="DreamTokenizer", chat_template=CHATML)
    return folder


def write_open_dcoder(folder: Path, *, controls: tuple[str, ...] = OPEN_CONTROLS) -> Path:
    """A folder with everything that is published of Open-dCoder: an ordinary Qwen2."""
    own = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "tie_word_embeddings": True}
    raw = {**_QWEN, **own, "max_position_embeddings": 32768, "eos_token_id": TEXT_TOKENS}
    write_config(folder, raw)
    write_weights(folder, random_state(backbone(raw)))
    write_tokenizer(folder, controls, more={"mask_token": "<M>", "eos_token": "<|endoftext|>"})
    return folder


# The one with a padding token of its own, the other with one that asks for room.
WRITERS: dict[str, Callable[..., Path]] = {
    "dream": write,
    "diffucoder": partial(write, controls=(*CONTROLS, "<|dlm_pad|>")),
    "dreamon": partial(
        write, controls=(*CONTROLS, "<|expand|>"), generation={"alg": "entropy", "number_transfer_tokens": 1}
    ),
    "open-dcoder": write_open_dcoder,
}
