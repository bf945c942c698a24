"""Tiny random checkpoints that are ordinary decoders with a mask token, in their published layouts."""

from __future__ import annotations

from typing import Any

from tests.families.published.block_causal import IDS, MASK, QWEN, Checkpoint, remote
from tests.families.published.layout import CHATML, DECODER, TEXT_TOKENS
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

ILLADA = Checkpoint(
    {
        **DECODER,
        **IDS,
        **remote("modeling_illada", "ILLaDAForCausalLM"),
        "attention_bias": False,
        "layer_norm_eps": None,
        "mlp_bias": False,
        "model_type": "illada",
        "pad_token_id": TEXT_TOKENS + 1,
        "rope_scaling": None,
        "tie_word_embeddings": True,
    },
    (LlamaConfig, LlamaForCausalLM),
    ("<[begin▁of▁sentence]>", "<[PAD▁TOKEN]>", "<[end▁of▁sentence]>", "<[MASK]>"),
    {"_from_model_config": True},
    {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": "{% for message in messages %}{{ message.role }}\n{{ message.content }}<[end▁of▁sentence]>"
        "{% endfor %}{% if add_generation_prompt %}assistant\n{% endif %}",
    },
)
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
DREAM_REASONER = Checkpoint(
    {
        **_QWEN3,
        **remote("modeling_dream", "DreamForCausalLM"),
        "block_size": 32,
        "mask_token_id": MASK,
        "model_type": "Dream",
        "tie_word_embeddings": False,
    },
    (Qwen3Config, Qwen3ForCausalLM),
    **_MASKED,
)
# It says nothing of its head.
CODA = Checkpoint(
    {
        **{name: value for name, value in _QWEN3.items() if name != "tie_word_embeddings"},
        **remote("modeling_coda", "CoDALanguageModel"),
        "attention_kernel": "flash_attention",
        "block_masking_probability": [0.25, 0.5],
        "mask_block_sizes": [4, 8],
        "mask_token_id": MASK,
        "model_type": "CoDA",
        "sampling_eps": [0.001, 0.25],
    },
    (Qwen3Config, Qwen3ForCausalLM),
    **{**_MASKED, "generation": {"alg": "origin", "alg_temp": 0.2, "diffusion_steps": 10, "top_p": None}},
)
WINDOWS = {"illada": ILLADA, "a2d-mdlm": A2D_MDLM, "coda": CODA}
BLOCKS = {"a2d-bd3lm": A2D_BD3LM, "dream-reasoner": DREAM_REASONER}
WRITERS = {name: checkpoint.write for name, checkpoint in {**WINDOWS, **BLOCKS}.items()}
