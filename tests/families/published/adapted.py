"""Tiny random checkpoints that are ordinary decoders with a mask token, in their published layouts."""

from __future__ import annotations

from tests.families.published.block_causal import IDS, Checkpoint, remote
from tests.families.published.layout import DECODER, TEXT_TOKENS
from transformers import LlamaConfig, LlamaForCausalLM

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
WINDOWS = {"illada": ILLADA}
WRITERS = {name: checkpoint.write for name, checkpoint in WINDOWS.items()}
