"""The published weights in transformers' class: the text part alone, strictly by name, from safetensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers.models.diffusion_gemma.configuration_diffusion_gemma import DiffusionGemmaConfig
from transformers.models.diffusion_gemma.modeling_diffusion_gemma import (
    DiffusionGemmaForBlockDiffusion,
    DiffusionGemmaTextRotaryEmbedding,
)

from calomel.engine import CheckpointError
from calomel.families.placing import Place, load_into
from calomel.families.shards import Shards

_ENCODER = "model.encoder.language_model."
_DECODER = "model.decoder."
_PICTURES = ("model.encoder.vision_tower.", "model.encoder.embed_vision.")
# A buffer of each encoder layer is its own; everything else of the encoder is the decoder's too.
_OWN = ".layer_scalar"


def unread(name: str) -> bool:
    """Whether a published tensor is not loaded: those for pictures, and what the encoder has of the decoder's."""
    return name.startswith(_PICTURES) or name == "lm_head.weight" or (name.startswith(_ENCODER) and _OWN not in name)


def load(
    folder: Path, raw: Mapping[str, Any], *, dtype: torch.dtype, device: torch.device | str
) -> DiffusionGemmaForBlockDiffusion:
    """The network of `folder`, whose `config.json` is `raw`, in evaluation mode, without its part for pictures.

    Raises:
        CheckpointError: config.json is not one of this class, or the tensors don't fit it.
    """
    try:
        config = DiffusionGemmaConfig.from_dict(dict(raw))
    except Exception as error:
        raise CheckpointError(f"config.json is not one that transformers' DiffusionGemma reads: {error}") from error
    config._attn_implementation = "sdpa"  # noqa: SLF001  (the one way to choose it before there is a model)
    with torch.device("meta"):
        model = DiffusionGemmaForBlockDiffusion(config)
    shards = Shards(folder)
    try:
        _share(model)
        load_into(model, _places(model, shards), shards, dtype=dtype, device=device, ignored=unread)
    finally:
        shards.close()
    _compute(model, device)
    model.requires_grad_(requires_grad=False)
    model.train(mode=False)
    return model


def _share(model: DiffusionGemmaForBlockDiffusion) -> None:
    """Leave the part for pictures away, and let the encoder and the head have the decoder's weights."""
    encoder, decoder = model.model.encoder, model.model.decoder
    del encoder.vision_tower, encoder.embed_vision
    for name, _ in list(encoder.language_model.named_parameters()):
        parent, _, leaf = name.rpartition(".")
        setattr(encoder.language_model.get_submodule(parent), leaf, decoder.get_parameter(name))
    model.lm_head.weight = decoder.embed_tokens.weight


def _places(model: nn.Module, shards: Shards) -> Iterator[Place]:
    """Every tensor once; where only the encoder's name of a shared one is published, by that."""
    for name in model.state_dict():
        if name.startswith(_ENCODER) and _OWN not in name:
            continue
        if name == "lm_head.weight":
            continue
        other = name.replace(_DECODER, _ENCODER, 1)
        yield Place(name, (other if name not in shards and other in shards and _OWN not in name else name,))


def _compute(model: DiffusionGemmaForBlockDiffusion, device: torch.device | str) -> None:
    """What no file holds: rotation frequencies, and the scale of embeddings."""
    text: Any = model.config.text_config
    for part in (model.model.encoder.language_model, model.model.decoder):
        part.rotary_emb = DiffusionGemmaTextRotaryEmbedding(text, device=device).to(device)
        part.embed_tokens.embed_scale = torch.tensor(part.embed_tokens.scalar_embed_scale, device=device)
    left = [name for name, held in (*model.named_parameters(), *model.named_buffers()) if held.is_meta]
    if left:
        raise CheckpointError(f"this version of transformers has tensors that no file holds: {', '.join(left)}")
