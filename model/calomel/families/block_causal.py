"""The families that denoise after an encoded context, on our own decoder: Calomel's own, and block-causal ones.

* Calomel's own: a causal context, a canvas that sees both ways, trained by `calomel train`.
* SDAR (arXiv 2510.06303): Qwen3, and Qwen3-MoE, trained to denoise a block of four at a time.
* Stable-DiffCoder (ByteDance-Seed/Stable-DiffCoder): Seed-Coder, a Llama, blocks of four.
* LLaDA2: a mixture of experts, blocks of 32. 2.0 (arXiv 2512.15745) reveals what is above a threshold; 2.1 (arXiv
  2602.08676) also changes what it has revealed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from calomel.engine import CheckpointError, DiffusionConfig, Engine, ModelConfig
from calomel.engine.checkpoint import tensor_table
from calomel.engine.config import MoeConfig
from calomel.families.configuration import (
    block_of,
    control_id,
    decoder_config,
    named,
    names_of,
    read_config,
    rope_of,
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
        field: of `config.json`, that gives the length of a block.
        length: of a block, if that field is missing.
        policy: that denoises it; source: where that is published.
        prompts: how they are prompted; the mask and end tokens named there are looked up in the tokenizer.
        usual: a `config.json` completed with what only the folder tells.
        network: further settings of the network, as `decoder_config` takes them.
        mask_id: the published id, if neither file gives it.
        end_id: the same for the end token, which `config.json` gives, too; None if only the tokenizer does.
        mixture: the experts in place of its MLPs; None if there are none.
        places: where its tensors go.
        samples: whether a checkpoint's generation_config.json counts.
    """

    field: str
    length: int
    policy: str
    source: str
    prompts: PromptStyle
    usual: Callable[[Mapping[str, Any], Path], Mapping[str, Any]] = lambda raw, _: raw
    network: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda _: {}
    mask_id: int | None = None
    end_id: int | None = None
    mixture: Callable[[Mapping[str, Any]], MoeConfig] | None = None
    places: Callable[[ModelConfig], Places] = tensor_table
    samples: bool = False

    def config(self, raw: Mapping[str, Any], folder: Path) -> ModelConfig:
        """The configuration of the checkpoint in `folder`. Raises CheckpointError."""
        raw = self.usual(raw, folder)
        block = block_of(raw, self.field, self.length)
        said = "" if self.end_id is None else "eos_token_id"
        diffusion = DiffusionConfig(
            mask_token_id=control_id(raw, folder, "mask_token_id", (str(self.prompts.mask),), self.mask_id),
            end_token_id=control_id(raw, folder, said, self.prompts.ends, self.end_id),
            max_canvas=block,
            verifiable=False,
            block=block,
        )
        moe = None if self.mixture is None else asdict(self.mixture(raw))
        return decoder_config(raw, diffusion, moe=moe, **self.network(raw))

    def open(self, folder: Path, options: OpenOptions) -> Engine:
        """The checkpoint in `folder` as a running engine."""
        config = self.config(read_config(folder), folder)
        return open_decoder(folder, options, config, self.places(config))

    def estimate(self, raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
        """Its memory."""
        moe = None if self.mixture is None else self.mixture(raw)
        return decoder_estimate(raw, options, moe=moe, canvas=block_of(raw, self.field, self.length))

    def read(self, raw: Mapping[str, Any], folder: Path) -> Generation:
        """One canvas per block, in at most as many steps as it has positions."""
        block = block_of(self.usual(raw, folder), self.field, self.length)
        found = in_blocks(self.policy, block, self.source)
        return sampled(found, folder) if self.samples else found

    def family(
        self,
        name: str,
        recognises: Callable[[Mapping[str, Any]], bool],
        read: Callable[[Mapping[str, Any], Path], Generation] | None = None,
    ) -> Family:
        """The family of this name; `read` says how its checkpoints generate, if that needs more."""
        return Family(
            name=name,
            recognises=recognises,
            config=self.config,
            open=self.open,
            estimate=self.estimate,
            prompts=self.prompts,
            generation=in_blocks(self.policy, self.length, self.source),
            read_generation=read or self.read,
        )


def in_blocks(policy: str, block: int, source: str) -> Generation:
    """One canvas per block, in at most as many steps as it has positions."""
    return Generation(policy=policy, max_steps=block, fill_canvas=block, edit_canvas=block, source=source)


def _experts(raw: Mapping[str, Any], **fields: Any) -> MoeConfig:
    """A mixture of experts with the fields that all of them have, and `fields`."""
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
        policy="prefix:0.8/10", max_steps=6, fill_canvas=8, edit_canvas=48, source="docs/decisions/022"
    ),
)

# SDAR

# generate.py's --block_length.
_SDAR_BLOCK: Final = 4
# As published: SDAR-8B-Chat has blocks of 4, SDAR-8B-Chat-b32 of 32.
_SDAR_NAME: Final = re.compile(r"\bsdar-[\w.]+(?:-[a-z]\w+)*?-chat(?:-b(\d+))?\b")


def _sdar_usual(raw: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Adds the block length, which the published configurations leave to the name. Raises CheckpointError."""
    said = raw.get("block_size", read_generation_config(folder).get("block_length"))
    if said is None:
        name = _SDAR_NAME.search(names_of(raw, folder))
        if name is None:
            raise CheckpointError(
                f"cannot tell the block size of {folder}: its name is not a published one (SDAR-8B-Chat-b16): "
                'write "block_size" into its config.json, 4 for a checkpoint without -b and a number in its name'
            )
        said = int(name[1] or _SDAR_BLOCK)
    return {**raw, "block_size": said}


def _sdar_experts(raw: Mapping[str, Any]) -> MoeConfig:
    layers, every = int(raw["num_hidden_layers"]), int(raw.get("decoder_sparse_step") or 1)
    only = set(raw.get("mlp_only_layers") or ())
    dense = tuple(layer for layer in range(layers) if layer in only or (layer + 1) % every)
    return _experts(raw, normalised=bool(raw.get("norm_topk_prob", False)), dense=dense)


_SDAR: Final = Blocks(
    "block_size",
    _SDAR_BLOCK,
    "low_confidence_dynamic:0.85",
    "generate.py of JetAstra/SDAR: remasking, threshold, a step a position; sampling: generation_config.json",
    PromptStyle(fim="left_to_right", edit="chat", mask="<|MASK|>", ends=(TURN_END, TEXT_END)),
    usual=_sdar_usual,
    network=lambda _: {"qk_norm": True},
    # The --mask_id of generate.py.
    mask_id=151_669,
    samples=True,
)


def _is_sdar_moe(raw: Mapping[str, Any]) -> bool:
    return named(raw, "sdar_moe", "sdarmoe")


SDAR: Final = _SDAR.family("sdar", lambda raw: named(raw, "sdar") and not _is_sdar_moe(raw))
SDAR_MOE: Final = replace(_SDAR, mixture=_sdar_experts).family("sdar-moe", _is_sdar_moe)

# Stable-DiffCoder

STABLE_DIFFCODER: Final = Blocks(
    "block_length",
    4,
    "low_confidence",
    "model card: 512 steps for 512 tokens in blocks of 4, low_confidence, no threshold, temperature 0",
    # It has the tokens of Seed-Coder.
    PromptStyle(
        fim="fim_tokens",
        edit="chat",
        mask="<[MASK_TOKEN]>",
        ends=("<[end▁of▁sentence]>",),
        begin="<[begin▁of▁sentence]>",
    ),
    # generation_utils.py: mask_id of generate_block.
    mask_id=5,
    samples=True,
).family("stable-diffcoder", lambda raw: named(raw, "diffcoder"))

# LLaDA2

_LLADA2_NAMES: Final = {
    "model.embed_tokens": "model.word_embeddings",
    "self_attn.o_proj": "attention.dense",
    "self_attn.q_norm": "attention.query_layernorm",
    "self_attn.k_norm": "attention.key_layernorm",
}


def _llada2_usual(raw: Mapping[str, Any], _: Path) -> Mapping[str, Any]:
    for name in ("use_linear_attention", "linear_attention_layers", "norm_head"):
        if raw.get(name):
            raise CheckpointError(f"{name} in config.json is not supported")
    return {**raw, "use_sliding_window": False}


def _llada2_network(raw: Mapping[str, Any]) -> dict[str, Any]:
    width = int(raw.get("head_dim") or int(raw["hidden_size"]) // int(raw["num_attention_heads"]))
    turning = int(width * float(rope_of(raw).get("partial_rotary_factor") or 1.0))
    return {
        "qk_norm": bool(raw.get("use_qk_norm", True)),
        "qkv_bias": bool(raw.get("use_qkv_bias")),
        "output_bias": bool(raw.get("use_bias")),
        "rotary_dim": None if turning == width else turning,
    }


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


def llada2_places(config: ModelConfig) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Where the published tensors go: queries, keys and values are in one."""
    for ours, theirs in renamed(tensor_table(config), _LLADA2_NAMES):
        if "qkv_proj" in ours:
            layer, kind = theirs[0].split(".self_attn.")[0], ours.rpartition(".")[2]
            yield ours, (f"{layer}.attention.query_key_value.{kind}",)
        else:
            yield ours, theirs


_LLADA2: Final = Blocks(
    "block_size",
    32,
    "threshold:0.95",
    "generate of modeling_llada2_moe.py (LLaDA2.0): threshold 0.95, blocks of 32, temperature 0",
    PromptStyle(fim="left_to_right", edit="chat", mask="<|mask|>", ends=(TEXT_END, "<|role_end|>")),
    usual=_llada2_usual,
    network=_llada2_network,
    # As published; a checkpoint's own files take precedence.
    mask_id=156_895,
    end_id=156_892,
    mixture=_llada2_experts,
    places=llada2_places,
)
_EDITING: Final = (
    "model card of LLaDA2.1, quality mode: threshold 0.7, editing_threshold 0.5; generate of modeling_llada2_moe.py: "
    "16 steps behind"
)


def _read_llada2(raw: Mapping[str, Any], folder: Path) -> Generation:
    """The joint threshold from 2.1 on, which is recognised by its name or by a threshold for edits."""
    said, found = read_generation_config(folder), _LLADA2.read(raw, folder)
    edits = "editing_threshold" in said or re.search(r"llada2\.[1-9]", names_of(raw, folder)) is not None
    threshold = said.get("threshold", 0.7 if edits else 0.95)
    if edits:
        edit, after = said.get("editing_threshold", 0.5), said.get("max_post_steps", 16)
        policy, steps = f"joint:{threshold}/{edit}/{after}", found.max_steps + int(after) + 1
        return sampled(replace(found, policy=policy, max_steps=steps, source=_EDITING), folder)
    return sampled(replace(found, policy=f"threshold:{threshold}"), folder)


LLADA2: Final = _LLADA2.family("llada2", lambda raw: named(raw, "llada2"), _read_llada2)
