"""DiffusionGemma: a causal encoder, a canvas of uniform noise, self-conditioning; with transformers' own class.

Its published files: `config.json` (`text_config` is for decoder and encoder), `generation_config.json` with the
sampler's settings, sharded safetensors with the decoder's names, `tokenizer.json`, `chat_template.jinja`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Final

import msgspec

from calomel.engine import CheckpointError, Engine, NoiseShape, UniformDiffusion
from calomel.families.configuration import read_config
from calomel.families.family import Family, Generation, OpenOptions
from calomel.families.generation import read_generation_config
from calomel.families.loading import dtype_of
from calomel.families.memory import BYTES, QUANTIZED_BYTES, Estimate, EstimateOptions, is_quantized
from calomel.prompts.renderer import PromptStyle

# transformers' DiffusionGemmaGenerationConfig, and generation_config.json of google/diffusiongemma-26B-A4B-it.
_ENDS: Final = (1, 106, 50)
_PICTURE: Final = 258_880
_ACTIVATION: Final = "gelu_pytorch_tanh"
_BOUND: Final = 0.1
_STEPS: Final = 48
# Version of transformers; older ones have other caches.
_LEAST: Final = (5, 23)
# Every sixth layer sees the whole context, unless layer_types says otherwise.
_PATTERN: Final = 6
# Bytes per logit of one canvas in the forward of a batch: the signal in, logits through the soft cap.
_FORWARD: Final = 16
# Bytes per number of a quantised matrix while it is widened.
_WIDENING: Final = 5
# Bytes per logit while one canvas' tokens are drawn.
_DRAWING: Final = 24

SOURCE: Final = (
    "google/diffusiongemma-26B-A4B-it: generation_config.json; transformers: models/diffusion_gemma/"
    "generation_diffusion_gemma.py"
)


def _recognises(raw: Mapping[str, Any]) -> bool:
    return raw.get("model_type") == "diffusion_gemma" or "DiffusionGemmaForBlockDiffusion" in (
        raw.get("architectures") or ()
    )


def _text(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The text part of `config.json`; what cannot be served is refused."""
    text = raw.get("text_config")
    if not isinstance(text, Mapping):
        raise CheckpointError("config.json has no text_config; DiffusionGemma's has")
    refused = (
        (raw.get("auto_map"), "config.json has auto_map, but Calomel never runs a checkpoint's own code"),
        (
            raw.get("quantization_config"),
            "the weights are quantised by another program (quantization_config); take the checkpoint in bfloat16",
        ),
        (
            text.get("use_bidirectional_attention") == "all",
            "its encoder reads in both directions (use_bidirectional_attention is all); contexts can't be kept then",
        ),
        (
            text.get("hidden_activation", _ACTIVATION) != _ACTIVATION,
            (
                f"hidden_activation in config.json is {json.dumps(text.get('hidden_activation'))}; "
                f"only {_ACTIVATION} is supported"
            ),
        ),
        (
            raw.get("tie_word_embeddings") is False,
            "its encoder and decoder have weights of their own (tie_word_embeddings is false); that is not there",
        ),
    )
    for wrong, sentence in refused:
        if wrong:
            raise CheckpointError(sentence)
    return text


def _config(raw: Mapping[str, Any], folder: Path) -> NoiseShape:
    text, said = _text(raw), read_generation_config(folder)
    ends = said.get("eos_token_id") or raw.get("eos_token_id") or text.get("eos_token_id") or _ENDS
    fields = {
        "vocab_size": text.get("vocab_size"),
        "max_position_embeddings": text.get("max_position_embeddings", 131_072),
        "canvas": raw.get("canvas_length") or 256,
        "end_token_ids": ends if isinstance(ends, list | tuple) else (ends,),
        "pictures": (_PICTURE if raw.get("image_token_id") is None else raw["image_token_id"],),
        "hottest": said.get("t_max") or 0.8,
        "coldest": said.get("t_min") or 0.4,
        "stable": 1 if said.get("stability_threshold") is None else said["stability_threshold"],
        "sure": said.get("confidence_threshold") or 0.005,
    }
    try:
        return msgspec.convert(fields, NoiseShape)
    except msgspec.ValidationError as error:
        raise CheckpointError(f"config.json or generation_config.json cannot be: {error}") from error


def _generation(raw: Mapping[str, Any], folder: Path) -> Generation:
    """The sampler's settings in generation_config.json."""
    said = read_generation_config(folder)
    sampler = said.get("sampler_config")
    bound = sampler.get("entropy_bound", _BOUND) if isinstance(sampler, Mapping) else _BOUND
    canvas = int(raw.get("canvas_length") or 256)
    return Generation(
        policy=f"entropy_bound:{float(bound)}",
        max_steps=int(said.get("max_denoising_steps") or _STEPS),
        fill_canvases=(canvas,),
        edit_canvas=canvas,
        temperature=1.0,
        source=SOURCE,
    )


def _open(folder: Path, options: OpenOptions) -> Engine:
    _check_transformers()
    raw = read_config(folder)
    shape = _config(raw, folder)
    dtype = dtype_of(options.dtype, options.device)
    # Imported by name, so that nothing of transformers is imported before it is needed.
    network = import_module("calomel.families.gemma_network")
    model = network.load(folder, raw, dtype=dtype, device=options.device, ignored=unread, quantize=options.quantize)
    # Encoded contexts stay in contiguous buffers: there are no pages besides.
    decoder = UniformDiffusion(network.Network(model, shape), spare_tokens=options.cached, threads=options.threads)
    return Engine(decoder, max_batch=options.batch)


def _check_transformers() -> None:
    try:
        there = metadata.version("transformers")
    except metadata.PackageNotFoundError:
        there = "none"
    found = re.match(r"(\d+)\.(\d+)", there)
    if found is None or (int(found[1]), int(found[2])) < _LEAST:
        raise CheckpointError(
            f"DiffusionGemma runs on transformers, {_LEAST[0]}.{_LEAST[1]} or newer ({there} is installed): "
            "install Calomel's extra `families` (see docs/install.md#extras)"
        )


def _estimate(raw: Mapping[str, Any], options: EstimateOptions) -> Estimate:
    text = _text(raw)
    try:
        size, layers = int(text["hidden_size"]), int(text["num_hidden_layers"])
        heads, inner = int(text["num_attention_heads"]), int(text["intermediate_size"])
        experts, expert = int(text.get("num_experts") or 0), int(text.get("moe_intermediate_size") or 0)
        vocabulary = int(text["vocab_size"])
        narrow = int(text["num_key_value_heads"]), int(text["head_dim"])
        wide = _wide(text)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"config.json has no usable field {error}, which the estimate of memory needs") from error
    each, canvas = BYTES[options.dtype], options.canvas or int(raw.get("canvas_length") or 256)
    kinds = text.get("layer_types") or [
        "full_attention" if (at + 1) % _PATTERN == 0 else "sliding_attention" for at in range(layers)
    ]
    full = sum(kind == "full_attention" for kind in kinds)
    small = None if options.quantize is None else QUANTIZED_BYTES[options.quantize]
    if options.shards is None:
        attention = (layers - full) * size * narrow[1] * (2 * heads + 2 * narrow[0])
        attention += full * size * wide[1] * (2 * heads + wide[0])
        perceptrons = (layers + 1) * 3 * size * inner + layers * experts * (3 * size * expert + size)
        weights = vocabulary * size * each + int((attention + perceptrons) * (small or each))
    else:
        shards = options.shards.tensors.items()
        sizes = (
            (held.numbers, small if small and is_quantized(name) else each) for name, held in shards if not unread(name)
        )
        weights = int(sum(numbers * size for numbers, size in sizes))
    full_bytes = 2 * full * wide[0] * wide[1] * each
    sliding_bytes = 2 * (layers - full) * narrow[0] * narrow[1] * each
    running = options.max_batch * options.context
    # A long context takes less than this: its sliding layers forget.
    cache = (options.cache_tokens + running) * (full_bytes + sliding_bytes)
    rows = options.chunk + options.max_batch * canvas
    chosen = int(text.get("top_k_experts") or 0)
    row = 12 * size + 3 * inner + 3 * chosen * expert + heads * wide[1] * 3
    logits = canvas * vocabulary
    widest = experts * 2 * expert * size if small else 0
    work = widest * _WIDENING + rows * row * each + options.max_batch * logits * (_FORWARD + each) + logits * _DRAWING
    return Estimate(weights=weights, cache=cache, work=work)


def _wide(text: Mapping[str, Any]) -> tuple[int, int]:
    """Heads of keys, and their width, in a layer that sees the whole context, in either notation."""
    layers = text.get("per_layer_config")
    said: Mapping[str, Any] = next(iter(layers.values()), {}) if isinstance(layers, Mapping) else {}
    heads = said.get("num_key_value_heads") or text.get("num_global_key_value_heads") or text["num_key_value_heads"]
    return int(heads), int(said.get("head_dim") or text.get("global_head_dim") or 512)


def unread(name: str) -> bool:
    """Whether a published tensor is not loaded: those for pictures, and those that the encoder shares with the decoder.

    Each encoder layer has a buffer of its own; the rest of the encoder's language model is the decoder's too.
    """
    return name == "lm_head.weight" or (name.startswith("model.encoder.") and ".layer_scalar" not in name)


DIFFUSION_GEMMA: Final = Family(
    name="diffusion-gemma",
    recognises=_recognises,
    config=_config,
    open=_open,
    estimate=_estimate,
    prompts=PromptStyle(fim="left_to_right", edit="chat", mask=None, ends=("<eos>", "<turn|>"), begin="<bos>"),
    generation=Generation(
        policy=f"entropy_bound:{_BOUND}",
        max_steps=_STEPS,
        fill_canvases=(256,),
        edit_canvas=256,
        temperature=1.0,
        source=SOURCE,
    ),
    read_generation=_generation,
)
