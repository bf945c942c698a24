"""LLaDA-8B and LLaDA 1.5: a Llama shape with names of its own, read in both directions, no shift (arXiv 2502.09992)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from calomel.engine import CheckpointError, DiffusionConfig, ModelConfig, Serving
from calomel.engine.window import WindowOptions
from calomel.families.configuration import named
from calomel.families.estimate import Estimate, EstimateOptions
from calomel.families.facts import FamilyFacts, Published
from calomel.families.family import Family, OpenOptions
from calomel.families.generation import Generation
from calomel.families.placing import Place
from calomel.families.style import PromptStyle
from calomel.families.token_ids import need_token_id
from calomel.families.window import more_ends, open_window, published_generation, raw_of, window_estimate

MASK: Final = "<|mdm_mask|>"
END: Final = "<|endoftext|>"
TURN_END: Final = "<|eot_id|>"
WINDOW: Final = 4096
CANVAS: Final = 256
# Of its README's example, and of Fast-dLLM's evaluation.
BLOCK: Final = 32
# `calomel bench window`: 3 and 17 times as fast on a window of 1,024 tokens, most tokens the same (docs/decisions/008).
DUAL_CACHE: Final = True

# What its configuration can say of which only this is there.
_ONLY: Final[Mapping[str, tuple[Any, ...]]] = {
    "block_type": ("llama",),
    "activation_type": ("silu", "swiglu"),
    "layer_norm_type": ("rms",),
    "alibi": (False,),
    "rope": (True,),
    "include_bias": (False,),
    "attention_layer_norm": (False,),
    "input_emb_norm": (False,),
    "scale_logits": (False,),
    "block_group_size": (1,),
}


def _recognises(raw: Mapping[str, Any]) -> bool:
    return named(raw, "lladamodellm") and "d_model" in raw


def _usual(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Its `config.json` in the field names of other decoders."""
    heads = raw.get("n_heads")
    return {
        "vocab_size": raw.get("embedding_size") or raw.get("vocab_size"),
        "hidden_size": raw.get("d_model"),
        "intermediate_size": raw.get("mlp_hidden_size"),
        "num_hidden_layers": raw.get("n_layers"),
        "num_attention_heads": heads,
        "num_key_value_heads": raw.get("n_kv_heads") or heads,
        "tie_word_embeddings": bool(raw.get("weight_tying")),
    }


def _config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    for name, there in _ONLY.items():
        if raw.get(name) is not None and raw[name] not in there:
            raise CheckpointError(f"config.json says {name} {raw[name]!r}; only {there[0]!r} is there")
    usual = _usual(raw)
    missing = [name for name, value in usual.items() if value is None]
    if missing:
        raise CheckpointError(f"config.json does not say {', '.join(missing)} in LLaDA's names")
    mask, end = raw.get("mask_token_id"), raw.get("eos_token_id")
    diffusion = DiffusionConfig(
        mask_token_id=mask if isinstance(mask, int) else need_token_id(folder, MASK),
        end_token_id=end if isinstance(end, int) else need_token_id(folder, END),
        max_canvas=CANVAS,
        verifiable=False,
        reads_suffix=True,
    )
    return ModelConfig(
        **usual,
        head_dim=usual["hidden_size"] // usual["num_attention_heads"],
        max_position_embeddings=min(WINDOW, raw.get("max_sequence_length") or WINDOW),
        diffusion=diffusion,
        rms_norm_eps=float(raw.get("rms_norm_eps", 1e-5)),
        rope_theta=float(raw.get("rope_theta", 10_000.0)),
        qk_norm=False,
        attention_bias=bool(raw.get("include_qkv_bias")),
    )


def places(config: ModelConfig) -> Iterator[Place]:
    """Where its tensors go."""
    yield Place("embed_tokens.weight", ("model.transformer.wte.weight",))
    for layer in range(config.num_hidden_layers):
        ours, theirs = f"layers.{layer}", f"model.transformer.blocks.{layer}"
        for kind in ("weight", "bias") if config.attention_bias else ("weight",):
            yield Place(f"{ours}.self_attn.qkv_proj.{kind}", tuple(f"{theirs}.{part}_proj.{kind}" for part in "qkv"))
        yield Place(f"{ours}.self_attn.o_proj.weight", (f"{theirs}.attn_out.weight",))
        yield Place(f"{ours}.mlp.gate_up_proj.weight", (f"{theirs}.ff_proj.weight", f"{theirs}.up_proj.weight"))
        yield Place(f"{ours}.mlp.down_proj.weight", (f"{theirs}.ff_out.weight",))
        yield Place(f"{ours}.input_layernorm.weight", (f"{theirs}.attn_norm.weight",))
        yield Place(f"{ours}.post_attention_layernorm.weight", (f"{theirs}.ff_norm.weight",))
    yield Place("norm.weight", ("model.transformer.ln_f.weight",))
    if not config.tie_word_embeddings:
        yield Place("lm_head.weight", ("model.transformer.ff_out.weight",))


def _open(folder: Path, options: OpenOptions) -> Serving:
    config = _config(raw_of(folder), folder)
    window = WindowOptions(
        block=BLOCK, dual_cache=DUAL_CACHE and not options.exact, end_token_ids=more_ends(folder, TURN_END)
    )
    return open_window(folder, options, config, places(config), window)


def _estimate(raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
    return window_estimate(_usual(raw), options, window=WINDOW, canvas=CANVAS, dual_cache=DUAL_CACHE)


GENERATION: Final = Generation(
    policy="low_confidence",
    max_steps=CANVAS,
    fill_canvases=(8, 16, 32),
    edit_canvas=128,
    source="README: low_confidence, blocks of 32, temperature 0, one token a step; canvases are ours",
)

LLADA: Final = Family(
    name="llada",
    recognises=_recognises,
    config=_config,
    open=_open,
    estimate=_estimate,
    prompts=PromptStyle(fim="around", edit="chat", mask=MASK, ends=(END, TURN_END), begin="<|startoftext|>"),
    generation=GENERATION,
    read_generation=lambda _, folder: published_generation(GENERATION, folder),
    facts=FamilyFacts(
        title="LLaDA",
        checkpoints=(
            Published("GSAI-ML/LLaDA-8B-Base", 8.0, "MIT"),
            Published("GSAI-ML/LLaDA-8B-Instruct", 8.0, "MIT", "HumanEval-Infilling 48.3 (Open-dLLM README)"),
            Published("GSAI-ML/LLaDA-1.5", 8.0, "MIT"),
        ),
        attention="in both directions, a window of 4,096 tokens, canvases in blocks of 32",
        mask="`<|mdm_mask|>` 126336",
        shift=False,
        block=BLOCK,
        sources=("github.com/ML-GSAI/LLaDA", "arXiv 2502.09992"),
        parity="tests/families/test_llada.py",
        limits=(
            "no classifier-free guidance; nothing of a context is kept for the next request; the steps of a block read "
            "what stands around it as it was at the block's beginning (Fast-dLLM's dual cache; `--exact` leaves it off)"
        ),
    ),
)
FAMILIES: Final = (LLADA,)
