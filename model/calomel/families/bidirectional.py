"""The families that read in both directions over the whole sequence, in a window of a few thousand positions.

* Dream and Dream-Coder (arXiv 2508.15487): Qwen2.5; a row predicts the next position.
* DiffuCoder (arXiv 2506.20639): Dream's network and loop, trained on code from Qwen2.5-Coder.
* DreamOn (arXiv 2602.01326): Dream-Coder whose canvases grow and shrink by tokens of their own.
* Open-dCoder (Open-dLLM): Qwen2.5-Coder 0.5B.
* LLaDA-8B and LLaDA 1.5 (arXiv 2502.09992): a Llama shape with names of its own, no shift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from calomel.engine import Bidirectional, BidirectionalOptions, CheckpointError, DiffusionConfig, Engine, ModelConfig
from calomel.engine.checkpoint import tensor_table
from calomel.families.configuration import decoder_config, named, need_token_id, read_config, token_id
from calomel.families.family import Family, Generation, OpenOptions
from calomel.families.generation import published_generation, read_generation_config
from calomel.families.loading import Places, dtype_of, load_decoder, renamed
from calomel.families.memory import Estimate, EstimateOptions, decoder_estimate
from calomel.prompts.renderer import PromptStyle

# Of the Qwen2.5 tokenizer, which all but LLaDA took over.
END: Final = "<|endoftext|>"
TURN_END: Final = "<|im_end|>"
_CANVAS: Final = 256


def _qwen2_config(raw: Mapping[str, Any], folder: Path, *, mask: str, window: int, canvas: int) -> ModelConfig:
    """A network shaped as Qwen2, read in both directions, with shifted logits, over at most `window` positions.

    The configurations name the positions of the model that it was made of: far more than a step could forward.
    """
    said = raw.get("mask_token_id")
    positions = raw.get("max_position_embeddings")
    diffusion = DiffusionConfig(
        mask_token_id=said if isinstance(said, int) else need_token_id(folder, mask),
        end_token_id=need_token_id(folder, END),
        logit_shift=True,
        max_canvas=canvas,
        verifiable=False,
        reads_suffix=True,
    )
    bounded = {**raw, "max_position_embeddings": min(window, positions) if isinstance(positions, int) else window}
    return decoder_config(bounded, diffusion, qkv_bias=True)


def _ends(folder: Path, *names: str) -> BidirectionalOptions:
    """Those of `names` that the tokenizer has end an answer as well."""
    found = (token_id(folder, name) for name in names)
    return BidirectionalOptions(end_token_ids=tuple(each for each in found if each is not None))


def _open(folder: Path, options: OpenOptions, config: ModelConfig, places: Places, own: BidirectionalOptions) -> Engine:
    """The checkpoint in `folder` as a running engine. Raises CheckpointError when its tensors do not fit."""
    dtype = dtype_of(options.dtype, options.device)
    model = load_decoder(folder, config, places, dtype=dtype, device=options.device, quantize=options.quantize)
    return Engine(Bidirectional(model, own, threads=options.threads), max_batch=options.batch)


def _estimate(
    raw: Mapping[str, Any], options: EstimateOptions, *, window: int, canvas: int = _CANVAS, dual_cache: bool = False
) -> Estimate:
    """Its memory: a step forwards the windows of all requests; a dual cache keeps the keys and values of each."""
    asked = replace(options, context=min(options.context, window))
    found = decoder_estimate(raw, asked, cached=False, canvas=canvas)
    if not dual_cache:
        return found
    kept = replace(asked, cache_tokens=0, spare_tokens=asked.max_batch * asked.context)
    return replace(found, cache=decoder_estimate(raw, kept, cached=True, canvas=canvas).cache)


def _qwen2_family(
    name: str,
    recognises: Callable[[Mapping[str, Any]], bool],
    generation: Generation,
    prompts: PromptStyle,
    *,
    window: int,
    canvas: int = _CANVAS,
    own: Callable[[Mapping[str, Any], Path], BidirectionalOptions] | None = None,
    confirms: Callable[[Mapping[str, Any], Path], bool] | None = None,
) -> Family:
    """A family on Qwen2's network; `own` says how the canvases of a folder are denoised."""
    canvases = own or (lambda _, folder: _ends(folder, *prompts.ends[1:]))

    def config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
        return _qwen2_config(raw, folder, mask=str(prompts.mask), window=window, canvas=canvas)

    def opened(folder: Path, options: OpenOptions) -> Engine:
        raw = read_config(folder)
        shape = config(raw, folder)
        return _open(folder, options, shape, tensor_table(shape), canvases(raw, folder))

    return Family(
        name=name,
        recognises=recognises,
        config=config,
        open=opened,
        estimate=lambda raw, options: _estimate(raw, options, window=window, canvas=canvas),
        prompts=prompts,
        generation=generation,
        read_generation=lambda _, folder: published_generation(generation, folder),
        confirms=confirms,
    )


# Dream, DiffuCoder, DreamOn: the tokenizer alone tells them apart for sure

# "the context length (input+output) of Dream currently is 2048": the makers' README.
_DREAM_WINDOW: Final = 2048
_DREAM_MASK: Final = "<|mask|>"


def _is_dream(raw: Mapping[str, Any]) -> bool:
    """Whether a `config.json` is of Dream's network, by whomever it was trained on; DreamReasoner's blocks are not."""
    return named(raw, "dreammodel") and not raw.get("block_size")


_DREAM_GENERATION: Final = Generation(
    policy="entropy",
    max_steps=_CANVAS,
    fill_canvases=(8, 16, 32),
    edit_canvas=128,
    temperature=0.2,
    top_p=0.95,
    source="model cards: alg entropy, alg_temp 0, temperature 0.2, top_p 0.95, one token a step; canvases are ours",
)
DREAM: Final = _qwen2_family(
    "dream",
    _is_dream,
    _DREAM_GENERATION,
    PromptStyle(fim="around", edit="chat", mask=_DREAM_MASK, ends=(END, TURN_END), begin="<|beginoftext|>"),
    window=_DREAM_WINDOW,
)
# It fills what is behind an answer, and its makers' examples cut it off.
_PADDING: Final = "<|dlm_pad|>"
DIFFUCODER: Final = _qwen2_family(
    "diffucoder",
    _is_dream,
    replace(
        _DREAM_GENERATION,
        source="model cards: alg entropy, alg_temp 0, temperature 0.2 (base), top_p 0.95; canvases are ours",
    ),
    PromptStyle(fim="around", edit="chat", mask=_DREAM_MASK, ends=(END, TURN_END, _PADDING)),
    window=_DREAM_WINDOW,
    confirms=lambda _, folder: token_id(folder, _PADDING) is not None,
)

_EXPAND: Final = "<|expand|>"


def _elastic(raw: Mapping[str, Any], folder: Path) -> BidirectionalOptions:
    """How DreamOn's canvases grow and shrink."""
    said = read_generation_config(folder)
    expand = raw.get("expand_token_id", said.get("expand_token_id"))
    budget, transfer = said.get("expand_budget"), said.get("number_transfer_tokens")
    return BidirectionalOptions(
        expand_token_id=expand if isinstance(expand, int) else need_token_id(folder, _EXPAND),
        # Its loop takes the end token for it.
        delete_token_id=need_token_id(folder, END),
        expand_budget=budget if isinstance(budget, int) and budget >= 0 else None,
        transfer=transfer if isinstance(transfer, int) and transfer > 0 else 1,
    )


DREAMON: Final = _qwen2_family(
    "dreamon",
    lambda raw: named(raw, "dreamon") or _is_dream(raw),
    Generation(
        policy="entropy",
        # One token a step, and as many steps again for what grows and shrinks: its makers' evaluation stops there.
        max_steps=256,
        fill_canvases=(4,),
        edit_canvas=64,
        temperature=0.2,
        top_p=0.9,
        source="README: alg entropy, temperature 0.2, top_p 0.9, 4 masks to begin with, number_transfer_tokens 1",
    ),
    PromptStyle(fim="around", edit="around", mask=_DREAM_MASK, ends=(END,), begin="<|beginoftext|>", close=END),
    window=_DREAM_WINDOW,
    # Its README's max_new_tokens; a canvas begins with 4 masks there.
    canvas=64,
    own=_elastic,
    confirms=lambda raw, folder: isinstance(raw.get("expand_token_id"), int) or token_id(folder, _EXPAND) is not None,
)

# Open-dCoder

_OPEN_DCODER_MASK: Final = "<M>"
_OPEN_DCODER: Final = _qwen2_family(
    "open-dcoder",
    # Its configuration is an ordinary Qwen2's; the mask token tells it from one.
    lambda raw: raw.get("model_type") == "qwen2" and named(raw, "qwen2forcausallm"),
    Generation(
        policy="p2",
        max_steps=64,
        fill_canvases=(8, 16, 32),
        edit_canvas=64,
        temperature=0.6,
        top_p=0.95,
        source="Open-dLLM's infilling evaluation: alg p2, 64 steps, temperature 0.6, top_p 0.95; canvases are ours",
    ),
    PromptStyle(fim="around", edit="around", mask=_OPEN_DCODER_MASK, ends=(END, TURN_END)),
    # The length that it was trained on.
    window=4096,
)


def _masks(raw: Mapping[str, Any], folder: Path) -> bool:
    """Whether there is a mask token, which an ordinary Qwen2 does not have."""
    return isinstance(raw.get("mask_token_id"), int) or token_id(folder, _OPEN_DCODER_MASK) is not None


OPEN_DCODER: Final = replace(_OPEN_DCODER, confirms=_masks)

# LLaDA

_LLADA_WINDOW: Final = 4096
_LLADA_MASK: Final = "<|mdm_mask|>"
_LLADA_TURN_END: Final = "<|eot_id|>"
# What its configuration can say of which only this is there.
_LLADA_ONLY: Final[Mapping[str, tuple[Any, ...]]] = {
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
_LLADA_NAMES: Final = {
    "model.embed_tokens": "model.transformer.wte",
    "model.norm": "model.transformer.ln_f",
    "lm_head": "model.transformer.ff_out",
    "model.layers": "model.transformer.blocks",
    "self_attn.o_proj": "attn_out",
    "self_attn.": "",
    "mlp.gate_proj": "ff_proj",
    "mlp.up_proj": "up_proj",
    "mlp.down_proj": "ff_out",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ff_norm",
}


def _llada_usual(raw: Mapping[str, Any]) -> dict[str, Any]:
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


def _llada_config(raw: Mapping[str, Any], folder: Path) -> ModelConfig:
    for name, there in _LLADA_ONLY.items():
        if raw.get(name) is not None and raw[name] not in there:
            raise CheckpointError(f"config.json says {name} {raw[name]!r}; only {there[0]!r} is there")
    usual = _llada_usual(raw)
    missing = [name for name, value in usual.items() if value is None]
    if missing:
        raise CheckpointError(f"config.json does not say {', '.join(missing)} in LLaDA's names")
    mask, end = raw.get("mask_token_id"), raw.get("eos_token_id")
    diffusion = DiffusionConfig(
        mask_token_id=mask if isinstance(mask, int) else need_token_id(folder, _LLADA_MASK),
        end_token_id=end if isinstance(end, int) else need_token_id(folder, END),
        max_canvas=_CANVAS,
        verifiable=False,
        reads_suffix=True,
    )
    return ModelConfig(
        **usual,
        head_dim=usual["hidden_size"] // usual["num_attention_heads"],
        max_position_embeddings=min(_LLADA_WINDOW, raw.get("max_sequence_length") or _LLADA_WINDOW),
        diffusion=diffusion,
        rms_norm_eps=float(raw.get("rms_norm_eps", 1e-5)),
        rope_theta=float(raw.get("rope_theta", 10_000.0)),
        qk_norm=False,
        attention_bias=bool(raw.get("include_qkv_bias")),
    )


def llada_places(config: ModelConfig) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Where LLaDA's tensors go."""
    return renamed(tensor_table(config), _LLADA_NAMES)


def _open_llada(folder: Path, options: OpenOptions) -> Engine:
    config = _llada_config(read_config(folder), folder)
    # Blocks as in its README's example, and in Fast-dLLM's evaluation. The dual cache is 3 and 17 times as fast on a
    # window of 1,024 tokens, most tokens the same (docs/decisions/008).
    own = replace(_ends(folder, _LLADA_TURN_END), block=32, dual_cache=not options.exact)
    return _open(folder, options, config, llada_places(config), own)


_LLADA_GENERATION: Final = Generation(
    policy="low_confidence",
    max_steps=_CANVAS,
    fill_canvases=(8, 16, 32),
    edit_canvas=128,
    source="README: low_confidence, blocks of 32, temperature 0, one token a step; canvases are ours",
)
LLADA: Final = Family(
    name="llada",
    recognises=lambda raw: named(raw, "lladamodellm") and "d_model" in raw,
    config=_llada_config,
    open=_open_llada,
    estimate=lambda raw, options: _estimate(_llada_usual(raw), options, window=_LLADA_WINDOW, dual_cache=True),
    prompts=PromptStyle(
        fim="around", edit="chat", mask=_LLADA_MASK, ends=(END, _LLADA_TURN_END), begin="<|startoftext|>"
    ),
    generation=_LLADA_GENERATION,
    read_generation=lambda _, folder: published_generation(_LLADA_GENERATION, folder),
)
