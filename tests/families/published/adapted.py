"""Tiny random checkpoints that are ordinary decoders with a mask token, in their published layouts."""

from __future__ import annotations

from typing import Any

from tests.families.published.block_causal import IDS, QWEN, Checkpoint
from tests.families.published.layout import CHATML, DECODER
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

_QWEN2 = {**DECODER, **IDS, "max_window_layers": 21, "sliding_window": None, "tie_word_embeddings": True}
_QWEN3 = {**_QWEN2, "attention_bias": False, "head_dim": 16}
_MASKED: dict[str, Any] = {
    "controls": (*QWEN, "<|mask|>"),
    # That of the model that it was made of, which samples.
    "generation": {"do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8},
    "tokenizer": {"chat_template": CHATML, "more": {"mask_token": "<|mask|>", "eos_token": "<|im_end|>"}},
}
A2D_MDLM = Checkpoint(
    {**_QWEN2, "architectures": ["A2DQwen2LMHeadModel"], "model_type": "a2d-qwen2"},
    (Qwen2Config, Qwen2ForCausalLM),
    **_MASKED,
    repository="dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1",
)
A2D_BD3LM = Checkpoint(
    {**_QWEN3, "architectures": ["A2DQwen3LMHeadModel"], "model_type": "a2d-qwen3"},
    (Qwen3Config, Qwen3ForCausalLM),
    **_MASKED,
    repository="dllm-hub/Qwen3-0.6B-diffusion-bd3lm-v0.1",
)
WRITERS = {"a2d-mdlm": A2D_MDLM.write, "a2d-bd3lm": A2D_BD3LM.write}
