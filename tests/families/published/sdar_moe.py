"""A tiny random SDAR of the mixture kind in its published layout: Qwen3-MoE's tensors, expert by expert."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.families.published import sdar
from tests.families.published.layout import CHATML, random_state, write_config, write_tokenizer, write_weights
from torch import Tensor
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

CONFIG: dict[str, Any] = {
    **sdar.CONFIG,
    "architectures": ["SDARMoeForCausalLM"],
    "auto_map": {
        "AutoConfig": "configuration_sdar_moe.SDARMoeConfig",
        "AutoModelForCausalLM": "modeling_sdar_moe.SDARMoeForCausalLM",
    },
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "model_type": "sdar_moe",
    "moe_intermediate_size": 24,
    "norm_topk_prob": True,
    "num_experts": 8,
    "num_experts_per_tok": 3,
    "output_router_logits": False,
    "router_aux_loss_coef": 0.001,
}


def network(**changed: Any) -> Qwen3MoeForCausalLM:
    """The same weights in the class that SDAR's is made of."""
    fields = {name: value for name, value in (CONFIG | changed).items() if name not in {"architectures", "auto_map"}}
    fields |= {"model_type": "qwen3_moe", "attn_implementation": "eager"}
    model: Qwen3MoeForCausalLM = Qwen3MoeForCausalLM(Qwen3MoeConfig(**fields)).train(mode=False)
    model.load_state_dict(random_state(model), strict=False)
    return model


def tensors(model: Qwen3MoeForCausalLM) -> dict[str, Tensor]:
    """Under their published names: transformers holds all experts of a layer in one tensor."""
    found: dict[str, Tensor] = {}
    for name, tensor in model.named_parameters():
        if ".experts." not in name:
            found[name] = tensor.detach()
            continue
        start, part = name.split(".experts.")
        for number, expert in enumerate(tensor.detach()):
            halves = {"gate_proj": expert[: len(expert) // 2], "up_proj": expert[len(expert) // 2 :]}
            for held, piece in (halves if part == "gate_up_proj" else {"down_proj": expert}).items():
                found[f"{start}.experts.{number}.{held}.weight"] = piece
    return found


def write(folder: Path, **changed: Any) -> None:
    """The checkpoint in two shards; `changed` are fields of its config.json."""
    write_config(folder, CONFIG | changed)
    write_config(folder, sdar.GENERATION, "generation_config.json")
    more = {"mask_token": "<|MASK|>"}
    write_tokenizer(folder, sdar.CONTROLS, files="vocab and merges", chat_template=CHATML, more=more)
    write_weights(folder, tensors(network(**changed)))


WRITERS = {"sdar-moe": write}
