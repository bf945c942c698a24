"""Tiny random checkpoints of the Dream family in the files that their makers publish: a Qwen2 with a mask token."""

from __future__ import annotations

from dataclasses import replace

from tests.families.published.block_causal import QWEN, Checkpoint
from tests.families.published.layout import CHATML, DECODER, TEXT_TOKENS
from transformers import Qwen2Config, Qwen2ForCausalLM

CONTROLS = (*QWEN, "<|beginoftext|>", "<|mask|>")
_QWEN = {
    **DECODER,
    "max_position_embeddings": 131072,
    "max_window_layers": 3,
    "sliding_window": None,
    "vocab_size": 288,
}
_IDS = {"bos_token_id": TEXT_TOKENS, "eos_token_id": TEXT_TOKENS, "pad_token_id": TEXT_TOKENS}
DREAM = Checkpoint(
    {
        **_QWEN,
        **_IDS,
        "architectures": ["DreamModel"],
        "auto_map": {"AutoConfig": "configuration_dream.DreamConfig", "AutoModel": "modeling_dream.DreamModel"},
        "mask_token_id": TEXT_TOKENS + CONTROLS.index("<|mask|>"),
        "model_type": "Dream",
    },
    (Qwen2Config, Qwen2ForCausalLM),
    CONTROLS,
    {"_from_model_config": True, **_IDS},
    {"files": "vocab and merges", "tokenizer_class": "DreamTokenizer", "chat_template": CHATML},
)
# With one that asks for room.
DREAMON = replace(
    DREAM,
    controls=(*CONTROLS, "<|expand|>"),
    generation={**DREAM.generation, "alg": "entropy", "number_transfer_tokens": 1},
)
# An ordinary Qwen2, but for a mask token.
OPEN_DCODER = Checkpoint(
    {
        **_QWEN,
        "architectures": ["Qwen2ForCausalLM"],
        "eos_token_id": TEXT_TOKENS,
        "max_position_embeddings": 32768,
        "model_type": "qwen2",
        "tie_word_embeddings": True,
    },
    (Qwen2Config, Qwen2ForCausalLM),
    (*QWEN, "<M>"),
    {},
    {"more": {"mask_token": "<M>", "eos_token": "<|endoftext|>"}},
)
CHECKPOINTS = {
    "dream": DREAM,
    # With a padding token of its own.
    "diffucoder": replace(DREAM, controls=(*CONTROLS, "<|dlm_pad|>")),
    "dreamon": DREAMON,
    "open-dcoder": OPEN_DCODER,
}
WRITERS = {name: checkpoint.write for name, checkpoint in CHECKPOINTS.items()}
