"""LLaDA2: a mixture of experts that denoises blocks of 32 behind a context that is read in blocks.

2.0 (arXiv 2512.15745) reveals what is above a threshold; 2.1 (arXiv 2602.08676) also changes what it has revealed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from calomel.engine import CheckpointError, DiffusionConfig, ModelConfig, Serving
from calomel.engine.checkpoint import tensor_table
from calomel.engine.mixture import MoeConfig
from calomel.families.configuration import block_of, decoder_config, named
from calomel.families.decoder import open_decoder
from calomel.families.estimate import Estimate, EstimateOptions, decoder_estimate
from calomel.families.facts import FamilyFacts, Published
from calomel.families.family import Family, OpenOptions
from calomel.families.generation import Generation, read_generation_config, sampled
from calomel.families.placing import Place
from calomel.families.style import PromptStyle
from calomel.families.token_ids import token_id

BLOCK: Final = 32
MASK: Final = "<|mask|>"
END: Final = "<|endoftext|>"
# As published; a checkpoint's own tokenizer has the last word.
_MASK_ID: Final = 156_895
_END_ID: Final = 156_892
# Our name of a part of a tensor's name to the published one.
_NAMES: Final = {
    "model.embed_tokens": "model.word_embeddings",
    "self_attn.o_proj": "attention.dense",
    "self_attn.q_norm": "attention.query_layernorm",
    "self_attn.k_norm": "attention.key_layernorm",
}


def _recognises(raw: Mapping[str, Any]) -> bool:
    return named(raw, "llada2")


def _config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    for name in ("use_linear_attention", "linear_attention_layers", "norm_head"):
        if raw.get(name):
            raise CheckpointError(f"config.json says {name}; such a checkpoint is not there")
    block = block_of(raw, "block_size", BLOCK)
    diffusion = DiffusionConfig(
        mask_token_id=_id(raw, folder, MASK, "mask_token_id", _MASK_ID),
        end_token_id=_id(raw, folder, END, "eos_token_id", _END_ID),
        max_canvas=block,
        verifiable=False,
        block=block,
    )
    config = decoder_config(
        {**raw, "use_sliding_window": False},
        diffusion,
        qk_norm=bool(raw.get("use_qk_norm", True)),
        qkv_bias=bool(raw.get("use_qkv_bias")),
    )
    turning = int(config.head_dim * float(raw.get("partial_rotary_factor") or 1.0))
    return replace(
        config,
        output_bias=bool(raw.get("use_bias")),
        rotary_dim=None if turning == config.head_dim else turning,
        moe=_mixture(raw),
    )


def _mixture(raw: Mapping[str, Any]) -> MoeConfig:
    try:
        return MoeConfig(
            experts=int(raw["num_experts"]),
            chosen=int(raw["num_experts_per_tok"]),
            intermediate_size=int(raw["moe_intermediate_size"]),
            score=raw.get("score_function") or "sigmoid",
            normalised=bool(raw.get("norm_topk_prob", True)),
            bias=bool(raw.get("moe_router_enable_expert_bias", True)),
            groups=int(raw.get("n_group") or 1),
            chosen_groups=int(raw.get("topk_group") or 1),
            scaling=float(raw.get("routed_scaling_factor") or 1.0),
            shared=int(raw.get("num_shared_experts") or 0),
            dense=tuple(range(int(raw.get("first_k_dense_replace") or 0))),
        )
    except KeyError as error:
        raise CheckpointError(f"config.json has no field {error}; LLaDA2 is a mixture of experts") from error
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"config.json has a field of the wrong type: {error}") from error


def _id(raw: Mapping[str, Any], folder: Path, name: str, field: str, published: int) -> int:
    said = raw.get(field)
    found = said if isinstance(said, int) else token_id(folder, name)
    found = published if found is None else found
    if not 0 <= found < int(raw.get("vocab_size", 0)):
        raise CheckpointError(f"{folder} has no token {name}: {found} is outside of its vocabulary")
    return found


def places(config: ModelConfig) -> Iterator[Place]:
    """Where the published tensors go: queries, keys and values lie in one."""
    for ours, theirs in tensor_table(config):
        if "qkv_proj" in ours:
            layer, kind = theirs[0].split(".self_attn.")[0], ours.rpartition(".")[2]
            yield Place(ours, (f"{layer}.attention.query_key_value.{kind}",))
        else:
            yield Place(ours, tuple(map(_published, theirs)))


def _published(name: str) -> str:
    for ours, theirs in _NAMES.items():
        name = name.replace(ours, theirs)
    return name


def _open(folder: Path, options: OpenOptions) -> Serving:
    config = _config(json.loads((folder / "config.json").read_text(encoding="utf-8")), folder)
    return open_decoder(folder, options, config, places(config))


def _estimate(raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
    return mixture_estimate(raw, options, _mixture(raw), canvas=block_of(raw, "block_size", BLOCK))


def mixture_estimate(raw: Mapping[str, Any], options: EstimateOptions, moe: MoeConfig, *, canvas: int) -> Estimate:
    """The memory of a decoder with a mixture of experts in the place of its MLPs."""
    size, layers, inner = (int(raw[name]) for name in ("hidden_size", "num_hidden_layers", "intermediate_size"))
    heads = int(raw["num_attention_heads"])
    key_heads, width = int(raw.get("num_key_value_heads") or heads), int(raw.get("head_dim") or size // heads)
    attention = layers * size * width * (2 * heads + 2 * key_heads)
    dense = 3 * size * inner * len(moe.dense)
    expert = 3 * size * moe.intermediate_size
    mixtures = (layers - len(moe.dense)) * (expert * (moe.experts + moe.shared) + size * moe.experts)
    outside = int(raw["vocab_size"]) * size * (1 if raw.get("tie_word_embeddings") else 2)
    # A token's row is as wide as all the experts that see it.
    wide = max(inner if moe.dense else 0, moe.intermediate_size * (moe.chosen + moe.shared))
    total = attention + dense + mixtures + outside
    return decoder_estimate({**raw, "intermediate_size": wide}, options, parameters=total, canvas=canvas)


def _read_generation(raw: Mapping[str, Any], folder: Path) -> Generation:
    """The joint threshold where the folder is of 2.1, by its name or by a threshold for edits."""
    said, block = read_generation_config(folder), block_of(raw, "block_size", BLOCK)
    names = f"{raw.get('_name_or_path', '')} {folder.resolve().name}".lower()
    edits = "editing_threshold" in said or "llada2.1" in names
    base = replace(EDITING if edits else GENERATION, fill_canvases=(block,), edit_canvas=block)
    threshold = said.get("threshold", 0.95)
    if edits:
        edit, after = said.get("editing_threshold", 0.9), said.get("max_post_steps", 16)
        steps = block + int(after) + 1
        return sampled(replace(base, policy=f"joint:{threshold}/{edit}/{after}", max_steps=steps), folder)
    return sampled(replace(base, policy=f"threshold:{threshold}", max_steps=block), folder)


GENERATION: Final = Generation(
    policy="threshold:0.95",
    max_steps=BLOCK,
    fill_canvases=(BLOCK,),
    edit_canvas=BLOCK,
    source="generate of modeling_llada2_moe.py (LLaDA2.0): threshold 0.95, blocks of 32, temperature 0",
)
EDITING: Final = Generation(
    policy="joint:0.95/0.9/16",
    max_steps=BLOCK + 17,
    fill_canvases=(BLOCK,),
    edit_canvas=BLOCK,
    source="generate of modeling_llada2_moe.py (LLaDA2.1): threshold 0.95, editing_threshold 0.9, 16 steps behind",
)

LLADA2: Final = Family(
    name="llada2",
    recognises=_recognises,
    config=_config,
    open=_open,
    estimate=_estimate,
    prompts=PromptStyle(fim="chat", edit="chat", mask=MASK, ends=(END, "<|role_end|>")),
    generation=GENERATION,
    read_generation=_read_generation,
    facts=FamilyFacts(
        title="LLaDA2.0, LLaDA2.1",
        checkpoints=(
            Published("inclusionAI/LLaDA2.0-mini", 16.0, "Apache-2.0"),
            Published("inclusionAI/LLaDA2.0-flash", 100.0, "Apache-2.0"),
            Published(
                "inclusionAI/LLaDA2.1-mini",
                16.0,
                "Apache-2.0",
                "1,587 tokens/s at best (arXiv 2602.08676)",
            ),
            Published("inclusionAI/LLaDA2.1-flash", 100.0, "Apache-2.0", "HumanEval+ 89.6 (arXiv 2602.08676)"),
        ),
        attention="block-causal, blocks of 32; 256 experts, 8 see a token",
        mask="`<|mask|>` 156895",
        shift=False,
        block=BLOCK,
        sources=(
            "modeling_llada2_moe.py, configuration_llada2_moe.py of the checkpoints",
            "sgl-project/sglang, srt/dllm/algorithm: low_confidence.py, joint_threshold.py",
        ),
        parity="tests/families/test_llada2.py",
        limits="the InDel checkpoint's tokens that delete and split do nothing; the mask token is never predicted",
    ),
)
FAMILIES: Final = (LLADA2,)
