"""Tiny random checkpoints of the Dream family in the files that their makers publish: a Qwen2 with a mask token."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.families.published.block_causal import IDS, QWEN, Checkpoint
from tests.families.published.layout import CHATML, DECODER, TEXT_TOKENS
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

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
# Ordinary decoders with a mask token.
_A2D_QWEN2 = {**DECODER, **IDS, "max_window_layers": 21, "sliding_window": None, "tie_word_embeddings": True}
_A2D_QWEN3 = {**_A2D_QWEN2, "attention_bias": False, "head_dim": 16}
_MASKED: dict[str, Any] = {
    "controls": (*QWEN, "<|mask|>"),
    # That of the model that it was made of, which samples.
    "generation": {"do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8},
    "tokenizer": {"chat_template": CHATML, "more": {"mask_token": "<|mask|>", "eos_token": "<|im_end|>"}},
}
A2D_MDLM = Checkpoint(
    {**_A2D_QWEN2, "architectures": ["A2DQwen2LMHeadModel"], "model_type": "a2d-qwen2"},
    (Qwen2Config, Qwen2ForCausalLM),
    **_MASKED,
    repository="dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1",
)
A2D_BD3LM = Checkpoint(
    {**_A2D_QWEN3, "architectures": ["A2DQwen3LMHeadModel"], "model_type": "a2d-qwen3"},
    (Qwen3Config, Qwen3ForCausalLM),
    **_MASKED,
    repository="dllm-hub/Qwen3-0.6B-diffusion-bd3lm-v0.1",
)
ADAPTED = {"a2d-mdlm": A2D_MDLM, "a2d-bd3lm": A2D_BD3LM}
WRITERS = {name: checkpoint.write for name, checkpoint in (CHECKPOINTS | ADAPTED).items()}
