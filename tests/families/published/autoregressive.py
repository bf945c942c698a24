"""Tiny random Qwen2.5-Coder, Qwen3 and Seed-Coder in their published layouts: what writes from left to right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tests.families.published.block_causal import QWEN, Checkpoint
from tests.families.published.layout import CHATML, DECODER, TEXT_TOKENS
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

QWEN_FIM: Final = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")
SEED: Final = (
    *("<[begin▁of▁sentence]>", "<[PAD▁TOKEN]>", "<[end▁of▁sentence]>"),
    *("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"),
)
_ENDS: Final = [TEXT_TOKENS + 2, TEXT_TOKENS]
_SAMPLES: Final[dict[str, Any]] = {"do_sample": True, "temperature": 0.7, "eos_token_id": _ENDS}
_SHAPE: Final = {**DECODER, "vocab_size": 288}

QWEN2 = Checkpoint(
    {
        **_SHAPE,
        "architectures": ["Qwen2ForCausalLM"],
        "eos_token_id": TEXT_TOKENS,
        "max_window_layers": 3,
        "model_type": "qwen2",
        "sliding_window": 131072,
        "tie_word_embeddings": True,
    },
    (Qwen2Config, Qwen2ForCausalLM),
    (*QWEN, *QWEN_FIM),
    _SAMPLES,
    {"chat_template": CHATML, "text_tokens": QWEN_FIM},
)
# The published one has Qwen2.5-Coder's tokens in its tokenizer, too; without them a model is asked in words.
QWEN3 = Checkpoint(
    {
        **_SHAPE,
        "architectures": ["Qwen3ForCausalLM"],
        "attention_bias": False,
        "eos_token_id": TEXT_TOKENS + 2,
        "head_dim": 16,
        "max_window_layers": 3,
        "model_type": "qwen3",
        "sliding_window": None,
    },
    (Qwen3Config, Qwen3ForCausalLM),
    QWEN,
    _SAMPLES,
)
LLAMA = Checkpoint(
    {
        **{name: value for name, value in _SHAPE.items() if name != "use_sliding_window"},
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "bos_token_id": TEXT_TOKENS,
        "eos_token_id": TEXT_TOKENS + 2,
        "head_dim": 16,
        "mlp_bias": False,
        "model_type": "llama",
    },
    (LlamaConfig, LlamaForCausalLM),
    SEED,
    {"eos_token_id": TEXT_TOKENS + 2},
    {"tokenizer_class": "PreTrainedTokenizerFast", "more": {"add_bos_token": True, "bos_token": SEED[0]}},
)
# Next edits in a format of their own, which their names tell.
ZETA2 = replace(LLAMA, repository="zed-industries/zeta-2")
ZETA21 = replace(LLAMA, repository="zed-industries/zeta-2.1")
SWEEP = replace(QWEN2, repository="sweepai/sweep-next-edit-1.5B")
SWEEP_V2 = replace(QWEN2, repository="sweepai/sweep-next-edit-v2-7B")
NEXT_EDIT = {"zeta2": ZETA2, "zeta2.1": ZETA21, "sweep-next-edit": SWEEP, "sweep-next-edit-v2": SWEEP_V2}
WRITERS = {
    "qwen2": QWEN2.write,
    "qwen3": QWEN3.write,
    "llama": LLAMA.write,
    **{name: checkpoint.write for name, checkpoint in NEXT_EDIT.items()},
}
