"""Tiny random checkpoints of the families that denoise block by block, in their published layouts."""

from __future__ import annotations

from dataclasses import dataclass, field
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
from torch import Tensor
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

END, MASK = TEXT_TOKENS + 2, TEXT_TOKENS + 3
IDS = {"bos_token_id": TEXT_TOKENS, "eos_token_id": END, "vocab_size": TEXT_TOKENS + 9}
QWEN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What is published: its config.json, what it generates by, and its tokenizer.

    `classes` are the configuration and the network of transformers that its own network is made of; `repository` is
    where `calomel models fetch` has it from, for those that their name tells apart.
    """

    config: dict[str, Any]
    classes: tuple[Any, Any]
    controls: tuple[str, ...]
    generation: dict[str, Any]
    tokenizer: dict[str, Any] = field(default_factory=lambda: {"chat_template": CHATML})
    repository: str = ""

    def network(self, **changed: Any) -> Any:
        """The same weights in that class; `changed` are fields of its config.json."""
        own = {"architectures", "auto_map", "model_type"}
        fields = {name: value for name, value in (self.config | changed).items() if name not in own}
        kind, network = self.classes
        model = network(kind(**fields, attn_implementation="eager")).train(mode=False)
        model.load_state_dict(random_state(model), strict=False)
        return model

    def write(self, folder: Path, **changed: Any) -> Path:
        """The checkpoint in two shards."""
        write_config(folder, self.config | changed)
        write_config(folder, self.generation, "generation_config.json")
        write_tokenizer(folder, self.controls, **self.tokenizer)
        if self.repository:
            write_config(folder, {"repository": self.repository, "revision": "0f3a"}, "calomel-source.json")
        write_weights(folder, tensors(self.network(**changed)))
        return folder


def tensors(model: Any) -> dict[str, Tensor]:
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


def remote(file: str, name: str) -> dict[str, Any]:
    """The classes that its config.json names, which transformers would fetch."""
    return {"architectures": [name], "auto_map": {"AutoModelForCausalLM": f"{file}.{name}"}}


_SDAR = {
    **DECODER,
    **IDS,
    "attention_bias": False,
    "block_size": 4,
    "head_dim": 16,
    "mask_token_id": MASK,
    "max_window_layers": 3,
    "sliding_window": None,
}
_EXPERTS = {
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "moe_intermediate_size": 24,
    "norm_topk_prob": True,
    "num_experts": 8,
    "num_experts_per_tok": 3,
}
_SDAR_FILES: dict[str, Any] = {
    "controls": (*QWEN, "<|MASK|>"),
    "generation": {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "eos_token_id": [END]},
    "tokenizer": {"files": "vocab and merges", "chat_template": CHATML, "more": {"mask_token": "<|MASK|>"}},
}
SDAR = Checkpoint(
    {**_SDAR, **remote("modeling_sdar", "SDARForCausalLM"), "model_type": "sdar"},
    (Qwen3Config, Qwen3ForCausalLM),
    **_SDAR_FILES,
)
SDAR_MOE = Checkpoint(
    {**_SDAR, **_EXPERTS, **remote("modeling_sdar_moe", "SDARMoeForCausalLM"), "model_type": "sdar_moe"},
    (Qwen3MoeConfig, Qwen3MoeForCausalLM),
    **_SDAR_FILES,
)
# A Llama with Seed-Coder's control tokens; the template is cut down to what counts.
STABLE_DIFFCODER = Checkpoint(
    {
        **DECODER,
        **IDS,
        **remote("modeling_seed_diffcoder", "StableDiffcoderForCausalLM"),
        "attention_bias": False,
        "head_dim": 16,
        "mlp_bias": False,
        "model_type": "llama",
        "pad_token_id": TEXT_TOKENS + 1,
    },
    (LlamaConfig, LlamaForCausalLM),
    (
        *("<[begin▁of▁sentence]>", "<[PAD▁TOKEN]>", "<[end▁of▁sentence]>", "<[MASK_TOKEN]>"),
        *("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"),
    ),
    {"eos_token_id": END, "do_sample": False},
    {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": "{% for message in messages %}<[begin▁of▁sentence]>{{ message.role }}\n{{ message.content }}"
        "<[end▁of▁sentence]>{% endfor %}{% if add_generation_prompt %}<[begin▁of▁sentence]>assistant\n{% endif %}",
    },
)
WRITERS = {"sdar": SDAR.write, "sdar-moe": SDAR_MOE.write, "stable-diffcoder": STABLE_DIFFCODER.write}
