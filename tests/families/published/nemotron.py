"""A tiny random Nemotron-Labs-Diffusion in its published layout: a Ministral whose tensors have other names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tests.families.published.block_causal import END, IDS, MASK, QWEN
from tests.families.published.layout import CHATML, DECODER, random_state, write_config, write_tokenizer, write_weights
from transformers import Ministral3Config, Ministral3ForCausalLM

ROPE = {
    "rope_type": "yarn",
    "rope_theta": 1000000.0,
    "factor": 16.0,
    "original_max_position_embeddings": 2048,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}
CONFIG: dict[str, Any] = {
    **{name: value for name, value in DECODER.items() if name not in {"rope_theta", "rope_scaling"}},
    **IDS,
    "architectures": ["NemotronLabsDiffusionModel"],
    "block_size": 32,
    "dlm_paradigm": "bidirectional",
    "head_dim": 16,
    "max_position_embeddings": 32768,
    "mask_token_id": MASK,
    "model_type": "nemotron_labs_diffusion",
    "rms_norm_eps": 1e-05,
    "rope_parameters": ROPE,
    "sliding_window": None,
}


def network(common: float = 0.0) -> Any:
    """The same weights in the class that its own is made of.

    The more all tokens have in `common`, the more often both ways of reading agree; no answer ends by itself then.
    """
    own = {"architectures", "block_size", "dlm_paradigm", "mask_token_id", "model_type", "use_sliding_window"}
    fields = {name: value for name, value in CONFIG.items() if name not in own}
    config: Any = Ministral3Config
    model = Ministral3ForCausalLM(config(**fields, attn_implementation="eager")).train(mode=False)
    state = random_state(model)
    if common:
        state["model.embed_tokens.weight"] += common * torch.randn(48, generator=torch.Generator().manual_seed(3))
        state["lm_head.weight"][END] = 0.0
    model.load_state_dict(state, strict=False)
    return model


def write(folder: Path, common: float = 0.0, **changed: Any) -> Path:
    """The checkpoint in two shards; `changed` are fields of its config.json."""
    write_config(folder, CONFIG | changed)
    write_config(folder, {"do_sample": True, "temperature": 0.7}, "generation_config.json")
    write_tokenizer(folder, (*QWEN, "<SPECIAL_100>"), chat_template=CHATML)
    names = {"model.": "encoder.", "lm_head.": "diffusion_head."}
    state = network(common).state_dict()
    for ours, theirs in names.items():
        state = {name.replace(ours, theirs, 1) if name.startswith(ours) else name: held for name, held in state.items()}
    write_weights(folder, state)
    return folder


WRITERS = {"nemotron-labs-diffusion": write}
