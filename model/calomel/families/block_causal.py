"""The families that denoise behind an encoded context, on our own decoder: Calomel's own, and block-causal ones.

* Calomel's own: a causal context, a canvas that sees both ways, trained by `calomel train`.
* SDAR (arXiv 2510.06303): Qwen3, and Qwen3-MoE, made to denoise a block of four at a time.
* Fast-dLLM v2 (arXiv 2509.26328): Qwen2.5, blocks of 32 in runs of 8; a row predicts the next position.
* Stable-DiffCoder (ByteDance-Seed/Stable-DiffCoder): Seed-Coder, a Llama, blocks of four.
* LLaDA2: a mixture of experts, blocks of 32. 2.0 (arXiv 2512.15745) reveals what is above a threshold; 2.1 (arXiv
  2602.08676) also changes what it has revealed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from calomel.engine import CheckpointError, DiffusionConfig, Engine, ModelConfig
from calomel.engine.checkpoint import tensor_table
from calomel.engine.config import MoeConfig
from calomel.families.configuration import (
    block_of,
    decoder_config,
    named,
    names_of,
    need_token_id,
    read_config,
    rope_of,
    token_id,
)
from calomel.families.family import Family, Generation, OpenOptions
from calomel.families.generation import read_generation_config, sampled
from calomel.families.loading import Places, dtype_of, engine_of, load_checkpoint, open_decoder, renamed
from calomel.families.memory import Estimate, EstimateOptions, decoder_estimate
from calomel.prompts.renderer import PromptStyle

TURN_END: Final = "<|im_end|>"
TEXT_END: Final = "<|endoftext|>"


@dataclass(frozen=True, slots=True)
class Blocks:
    """How the checkpoints of a family denoise blocks.

    Attributes:
        field: of `config.json`, that says how long a block is.
        length: of a block, where it does not.
        config: of a checkpoint, by its `config.json` and folder.
        generation: of blocks of `length`.
        mixture: the experts in the place of its MLPs; None where there are none.
        places: where its tensors go.
    """

    field: str
    length: int
    config: Callable[[Mapping[str, Any], Path], ModelConfig]
    generation: Generation
    mixture: Callable[[Mapping[str, Any]], MoeConfig] | None = None
    places: Callable[[ModelConfig], Places] = tensor_table

    def open(self, folder: Path, options: OpenOptions) -> Engine:
        """The checkpoint in `folder` as a running engine."""
        config = self.config(read_config(folder), folder)
        return open_decoder(folder, options, config, self.places(config))

    def estimate(self, raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
        """Its memory."""
        moe = None if self.mixture is None else self.mixture(raw)
        return decoder_estimate(raw, options, moe=moe, canvas=block_of(raw, self.field, self.length))

    def read(self, raw: Mapping[str, Any], folder: Path) -> Generation:  # noqa: ARG002  (as `Family` has it)
        """One canvas a block, in as many steps at most."""
        block = block_of(raw, self.field, self.length)
        return replace(self.generation, max_steps=block, fill_canvases=(block,), edit_canvas=block)

    def family(
        self, name: str, recognises: Callable[[Mapping[str, Any]], bool], prompts: PromptStyle, **more: Any
    ) -> Family:
        """The family of this name."""
        return Family(
            name=name,
            recognises=recognises,
            config=self.config,
            open=self.open,
            estimate=self.estimate,
            prompts=prompts,
            generation=self.generation,
            **more,
        )


def in_blocks(policy: str, block: int, source: str) -> Generation:
    """One canvas a block, in as many steps at most."""
    return Generation(policy=policy, max_steps=block, fill_canvases=(block,), edit_canvas=block, source=source)


def _experts(raw: Mapping[str, Any], **fields: Any) -> MoeConfig:
    """A mixture of experts with the fields that all have in common, and `fields`."""
    try:
        return MoeConfig(
            experts=int(raw["num_experts"]),
            chosen=int(raw["num_experts_per_tok"]),
            intermediate_size=int(raw["moe_intermediate_size"]),
            **fields,
        )
    except KeyError as error:
        raise CheckpointError(f"config.json has no field {error}; this family is a mixture of experts") from error


# Calomel's own


def _open_own(folder: Path, options: OpenOptions) -> Engine:
    dtype = dtype_of(options.dtype, options.device)
    return engine_of(load_checkpoint(folder, dtype=dtype, device=options.device, quantize=options.quantize), options)


OWN: Final = Family(
    name="calomel",
    recognises=lambda raw: isinstance(raw.get("diffusion"), Mapping),
    config=lambda raw, _: ModelConfig.from_dict(raw),
    open=_open_own,
    estimate=lambda raw, options: decoder_estimate(
        raw, options, canvas=ModelConfig.from_dict(raw).diffusion.max_canvas
    ),
    prompts=PromptStyle(fim="calomel", edit="calomel", mask="<|mask|>", ends=("<|end|>",)),
    generation=Generation(
        policy="prefix:0.8", max_steps=8, fill_canvases=(15,), edit_canvas=48, source="docs/decisions/013"
    ),
)

# SDAR

# generate.py's --block_length.
_SDAR_BLOCK: Final = 4
# As they are published: SDAR-8B-Chat has blocks of 4, SDAR-8B-Chat-b32 of 32.
_SDAR_NAME: Final = re.compile(r"\bsdar-[\w.]+(?:-[a-z]\w+)*?-chat(?:-b(\d+))?\b")
_SDAR_MASK: Final = "<|MASK|>"


def _sdar_block(raw: Mapping[str, Any], folder: Path) -> int:
    """The length of its blocks, which the published configurations leave to the name. Raises CheckpointError."""
    said = raw.get("block_size", read_generation_config(folder).get("block_length"))
    if said is None:
        name = _SDAR_NAME.search(names_of(raw, folder))
        if name is None:
            raise CheckpointError(
                f"{folder} does not say how long its blocks are, and its name is not as published (SDAR-8B-Chat-b16): "
                'write "block_size" into its config.json, 4 for a checkpoint without -b and a number in its name'
            )
        said = int(name[1] or _SDAR_BLOCK)
    return block_of({"block_size": said}, "block_size", _SDAR_BLOCK)


def _sdar_config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    block, mask = _sdar_block(raw, folder), raw.get("mask_token_id")
    diffusion = DiffusionConfig(
        mask_token_id=need_token_id(folder, _SDAR_MASK, "<MASK>") if mask is None else int(mask),
        end_token_id=need_token_id(folder, TURN_END, TEXT_END),
        max_canvas=block,
        verifiable=False,
        block=block,
    )
    return decoder_config(raw, diffusion, qk_norm=True)


def _sdar_experts(raw: Mapping[str, Any]) -> MoeConfig:
    layers, every = int(raw["num_hidden_layers"]), int(raw.get("decoder_sparse_step") or 1)
    only = set(raw.get("mlp_only_layers") or ())
    dense = tuple(layer for layer in range(layers) if layer in only or (layer + 1) % every)
    return _experts(raw, normalised=bool(raw.get("norm_topk_prob", False)), dense=dense)


_SDAR: Final = Blocks(
    "block_size",
    _SDAR_BLOCK,
    _sdar_config,
    in_blocks(
        "low_confidence_dynamic:0.85",
        _SDAR_BLOCK,
        "generate.py of JetAstra/SDAR: remasking, threshold, a step a position; sampling: generation_config.json",
    ),
)
_SDAR_MOE: Final = replace(
    _SDAR,
    config=lambda raw, folder: replace(_sdar_config(raw, folder), moe=_sdar_experts(raw)),
    mixture=_sdar_experts,
)
_SDAR_PROMPTS: Final = PromptStyle(fim="chat", edit="chat", mask=_SDAR_MASK, ends=(TURN_END, TEXT_END))


def _read_sdar(raw: Mapping[str, Any], folder: Path) -> Generation:
    return sampled(_SDAR.read({**raw, "block_size": _sdar_block(raw, folder)}, folder), folder)


def _is_sdar_moe(raw: Mapping[str, Any]) -> bool:
    return named(raw, "sdar_moe", "sdarmoe")


SDAR: Final = _SDAR.family(
    "sdar",
    lambda raw: named(raw, "sdar") and not _is_sdar_moe(raw),
    _SDAR_PROMPTS,
    read_generation=_read_sdar,
)
SDAR_MOE: Final = _SDAR_MOE.family("sdar-moe", _is_sdar_moe, _SDAR_PROMPTS, read_generation=_read_sdar)

# Fast-dLLM v2

# The model card's small_block_size.
SUB_BLOCK: Final = 8
_FAST_MASK: Final = "|<MASK>|"


def _fast_config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    block = block_of(raw, "bd_size", 32)
    diffusion = DiffusionConfig(
        mask_token_id=need_token_id(folder, _FAST_MASK),
        end_token_id=need_token_id(folder, TURN_END, TEXT_END),
        logit_shift=True,
        max_canvas=block,
        verifiable=False,
        block=block,
        sub_block=SUB_BLOCK if block % SUB_BLOCK == 0 else None,
    )
    return decoder_config(raw, diffusion, qkv_bias=True)


_FAST: Final = Blocks(
    "bd_size",
    32,
    _fast_config,
    in_blocks(
        "threshold:0.9",
        32,
        "model card (threshold 0.9, small_block_size 8); the published loop takes the best token",
    ),
)
FAST_DLLM_V2: Final = _FAST.family(
    "fast-dllm-v2",
    lambda raw: named(raw, "fast_dllm_qwen", "fast_dllm_v2"),
    PromptStyle(fim="chat", edit="chat", mask=_FAST_MASK, ends=(TURN_END, TEXT_END)),
    # Its generation_config.json is Qwen2.5's, which samples; the published loop takes the best token.
    read_generation=_FAST.read,
)

# Stable-DiffCoder

# generation_utils.py: block_length and mask_id of generate_block.
_DIFFCODER_MASK_ID: Final = 5
_DIFFCODER_MASK: Final = "<[MASK_TOKEN]>"
_DIFFCODER_END: Final = "<[end▁of▁sentence]>"


def _diffcoder_config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    block = block_of(raw, "block_length", 4)
    mask = raw.get("mask_token_id", token_id(folder, _DIFFCODER_MASK))
    diffusion = DiffusionConfig(
        mask_token_id=_DIFFCODER_MASK_ID if mask is None else int(mask),
        end_token_id=need_token_id(folder, _DIFFCODER_END),
        max_canvas=block,
        verifiable=False,
        block=block,
    )
    return decoder_config(raw, diffusion)


STABLE_DIFFCODER: Final = Blocks(
    "block_length",
    4,
    _diffcoder_config,
    in_blocks(
        "low_confidence",
        4,
        "model card: 512 steps for 512 tokens in blocks of 4, low_confidence, no threshold, temperature 0",
    ),
).family(
    "stable-diffcoder",
    lambda raw: named(raw, "diffcoder"),
    # It has the tokens of Seed-Coder.
    PromptStyle(
        fim="fim_tokens",
        edit="chat",
        mask=_DIFFCODER_MASK,
        ends=(_DIFFCODER_END,),
        begin="<[begin▁of▁sentence]>",
    ),
)

# LLaDA2

_LLADA2_MASK: Final = "<|mask|>"
# As published; a checkpoint's own tokenizer has the last word.
_LLADA2_MASK_ID: Final = 156_895
_LLADA2_END_ID: Final = 156_892
_LLADA2_NAMES: Final = {
    "model.embed_tokens": "model.word_embeddings",
    "self_attn.o_proj": "attention.dense",
    "self_attn.q_norm": "attention.query_layernorm",
    "self_attn.k_norm": "attention.key_layernorm",
}


def _llada2_config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    for name in ("use_linear_attention", "linear_attention_layers", "norm_head"):
        if raw.get(name):
            raise CheckpointError(f"config.json says {name}; such a checkpoint is not there")
    block = block_of(raw, "block_size", 32)
    diffusion = DiffusionConfig(
        mask_token_id=_llada2_id(raw, folder, _LLADA2_MASK, "mask_token_id", _LLADA2_MASK_ID),
        end_token_id=_llada2_id(raw, folder, TEXT_END, "eos_token_id", _LLADA2_END_ID),
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
    turning = int(config.head_dim * float(rope_of(raw).get("partial_rotary_factor") or 1.0))
    return replace(
        config,
        output_bias=bool(raw.get("use_bias")),
        rotary_dim=None if turning == config.head_dim else turning,
        moe=_llada2_experts(raw),
    )


def _llada2_experts(raw: Mapping[str, Any]) -> MoeConfig:
    return _experts(
        raw,
        score=raw.get("score_function") or "sigmoid",
        normalised=bool(raw.get("norm_topk_prob", True)),
        bias=bool(raw.get("moe_router_enable_expert_bias", True)),
        groups=int(raw.get("n_group") or 1),
        chosen_groups=int(raw.get("topk_group") or 1),
        scaling=float(raw.get("routed_scaling_factor") or 1.0),
        shared=int(raw.get("num_shared_experts") or 0),
        dense=tuple(range(int(raw.get("first_k_dense_replace") or 0))),
    )


def _llada2_id(raw: Mapping[str, Any], folder: Path, name: str, field: str, published: int) -> int:
    said = raw.get(field)
    found = said if isinstance(said, int) else token_id(folder, name)
    found = published if found is None else found
    if not 0 <= found < int(raw.get("vocab_size", 0)):
        raise CheckpointError(f"{folder} has no token {name}: {found} is outside of its vocabulary")
    return found


def llada2_places(config: ModelConfig) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Where the published tensors go: queries, keys and values lie in one."""
    for ours, theirs in renamed(tensor_table(config), _LLADA2_NAMES):
        if "qkv_proj" in ours:
            layer, kind = theirs[0].split(".self_attn.")[0], ours.rpartition(".")[2]
            yield ours, (f"{layer}.attention.query_key_value.{kind}",)
        else:
            yield ours, theirs


_LLADA2: Final = Blocks(
    "block_size",
    32,
    _llada2_config,
    in_blocks(
        "threshold:0.95",
        32,
        "generate of modeling_llada2_moe.py (LLaDA2.0): threshold 0.95, blocks of 32, temperature 0",
    ),
    mixture=_llada2_experts,
    places=llada2_places,
)
_EDITING: Final = (
    "model card of LLaDA2.1, quality mode: threshold 0.7, editing_threshold 0.5; generate of modeling_llada2_moe.py: "
    "16 steps behind"
)


def _read_llada2(raw: Mapping[str, Any], folder: Path) -> Generation:
    """The joint threshold from 2.1 on, which a name or a threshold for edits tells."""
    said, found = read_generation_config(folder), _LLADA2.read(raw, folder)
    edits = "editing_threshold" in said or re.search(r"llada2\.[1-9]", names_of(raw, folder)) is not None
    threshold = said.get("threshold", 0.7 if edits else 0.95)
    if edits:
        edit, after = said.get("editing_threshold", 0.5), said.get("max_post_steps", 16)
        policy, steps = f"joint:{threshold}/{edit}/{after}", found.max_steps + int(after) + 1
        return sampled(replace(found, policy=policy, max_steps=steps, source=_EDITING), folder)
    return sampled(replace(found, policy=f"threshold:{threshold}"), folder)


LLADA2: Final = _LLADA2.family(
    "llada2",
    lambda raw: named(raw, "llada2"),
    PromptStyle(fim="chat", edit="chat", mask=_LLADA2_MASK, ends=(TEXT_END, "<|role_end|>")),
    read_generation=_read_llada2,
)
