"""DiffusionGemma's network from transformers: its weights, its caches, and encoder and decoder as a `Backbone`.

Nothing here is imported before such a checkpoint is opened: transformers is an optional dependency.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from transformers.cache_utils import Cache, DynamicLayer
from transformers.models.diffusion_gemma.configuration_diffusion_gemma import DiffusionGemmaConfig
from transformers.models.diffusion_gemma.modeling_diffusion_gemma import (
    DiffusionGemmaForBlockDiffusion,
    DiffusionGemmaTextRotaryEmbedding,
)

from calomel.engine import CheckpointError, NoiseShape
from calomel.engine.transformer import packed, rounded, widened
from calomel.families.family import Quantization
from calomel.families.loading import Places, load_into
from calomel.families.memory import is_quantized
from calomel.families.shards import Shards

# Tokens kept before a sliding window: a settled edit moves the near window by at most this much.
SLACK: Final = 2048


class _Layer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values of all tokens."""

    def reaches(self, length: int) -> bool:
        """Whether `cut` can go back to the first `length` tokens."""
        return length <= self.get_seq_length()

    def cut(self, length: int) -> None:
        """Forget what comes after the first `length` tokens."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[..., :length, :], self.values[..., :length, :]


class _Window(_Layer):
    """Keys and values of the last tokens.

    `keys` and `values` are those of the window, as the decoder reads them; `kept` [2, 1, H, N, D] reaches further back.
    """

    is_sliding = True

    def __init__(self, window: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._before = window - 1
        self._length = 0
        self._kept: Tensor | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append, and return what the appended tokens see."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        added = torch.stack((key_states, value_states))
        kept = added if self._kept is None else torch.cat((self._kept, added), dim=-2)
        count = key_states.shape[-2]
        self._length += count
        seen = kept[..., max(0, kept.shape[-2] - self._before - count) :, :]
        self._keep(kept[..., max(0, kept.shape[-2] - self._before - SLACK) :, :])
        return seen[0], seen[1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length and offset of what `query_length` further tokens see."""
        seen = min(self._length, self._before)
        return seen + query_length, self._length - seen

    def get_seq_length(self) -> int:
        """Tokens that were appended."""
        return self._length

    def get_max_length(self) -> int:
        """The window."""
        return self._before + 1

    def reaches(self, length: int) -> bool:
        """Whether `cut` can go back to the first `length` tokens."""
        start = self._length - (0 if self._kept is None else self._kept.shape[-2])
        return length <= self._length and start <= max(0, length - self._before)

    def cut(self, length: int) -> None:
        """Forget what comes after the first `length` tokens."""
        if self._kept is not None:
            kept = self._kept[..., : self._kept.shape[-2] - (self._length - length), :]
            self._length = length
            self._keep(kept)

    def _keep(self, kept: Tensor) -> None:
        self._kept = kept
        self.keys, self.values = kept[..., max(0, kept.shape[-2] - self._before) :, :]


def _layer(window: int | None) -> _Layer:
    return _Layer() if window is None else _Window(window)  # type: ignore[no-untyped-call]


class Context:
    """One encoded context.

    Attributes:
        cache: as the model's encoder fills it and its decoder reads it.
        length: tokens that are encoded.
    """

    def __init__(self, windows: Sequence[int | None]) -> None:
        self._layers = [_layer(window) for window in windows]
        self.cache = Cache(layers=list(self._layers))
        self.length = 0

    @property
    def capacity(self) -> int:
        """The number of encoded tokens."""
        return self.length

    def reaches(self, length: int) -> bool:
        """Whether it can go back to its first `length` tokens."""
        return all(layer.reaches(length) for layer in self._layers)

    def cut(self, length: int) -> None:
        """Go back to the first `length` tokens."""
        for layer in self._layers:
            layer.cut(length)
        self.length = length


_ENCODER = "model.encoder.language_model."
_DECODER = "model.decoder."
# Each encoder layer has a buffer of its own; everything else of the encoder is the decoder's too.
_OWN = ".layer_scalar"


def load(
    folder: Path,
    raw: Mapping[str, Any],
    *,
    dtype: torch.dtype,
    device: torch.device | str,
    ignored: Callable[[str], bool],
    quantize: Quantization | None = None,
) -> DiffusionGemmaForBlockDiffusion:
    """The network of `folder`, whose `config.json` is `raw`, in evaluation mode, without its part for pictures.

    Published tensors that are `ignored` are not read. With `quantize`, every matrix of a layer is rounded as soon as it
    is loaded, and widened whenever it is used.

    Raises:
        CheckpointError: config.json is not of this class, or the tensors don't fit it.
    """
    try:
        config = DiffusionGemmaConfig.from_dict(dict(raw))
    except Exception as error:
        raise CheckpointError(f"config.json is not one that transformers' DiffusionGemma reads: {error}") from error
    config._attn_implementation = "sdpa"  # noqa: SLF001  (the only way to choose it before the model exists)
    with torch.device("meta"):
        model = DiffusionGemmaForBlockDiffusion(config)
    shards = Shards(folder)
    try:
        _share(model)
        load_into(
            model,
            _places(model, shards),
            shards,
            dtype=dtype,
            device=device,
            ignored=ignored,
            placed=None if quantize is None else lambda name: _quantize(model, name, quantize),
        )
    finally:
        shards.close()
    _compute(model, device)
    model.requires_grad_(requires_grad=False)
    model.train(mode=False)
    return model


def _share(model: DiffusionGemmaForBlockDiffusion) -> None:
    """Remove the part for pictures, and share the decoder's weights with the encoder and the head."""
    encoder, decoder = model.model.encoder, model.model.decoder
    del encoder.vision_tower, encoder.embed_vision
    for name, module in list(encoder.language_model.named_modules()):
        if is_quantized(f".{name}") and any(True for _ in module.parameters(recurse=False)):
            parent, _, leaf = name.rpartition(".")
            setattr(encoder.language_model.get_submodule(parent), leaf, decoder.get_submodule(name))
    for name, _ in list(encoder.language_model.named_parameters()):
        parent, _, leaf = name.rpartition(".")
        setattr(encoder.language_model.get_submodule(parent), leaf, decoder.get_parameter(name))
    model.lm_head.weight = decoder.embed_tokens.weight


class _Widened(nn.Module):
    """A tensor that is stored in eight or four bits, with its scale."""

    def __init__(self, whole: Tensor, quantize: Quantization) -> None:
        super().__init__()
        self._shape, self._dtype = whole.shape, whole.dtype
        self._make = rounded if quantize == "int8" else packed

    def forward(self, small: Tensor, scale: Tensor) -> Tensor:
        """An approximation of the original tensor."""
        whole = small.to(self._dtype) * scale if small.dtype == torch.int8 else widened(small, scale, self._dtype)
        return whole.view(self._shape)

    def right_inverse(self, whole: Tensor) -> tuple[Tensor, Tensor]:
        """What is stored of it."""
        return self._make(whole.flatten(0, -2))


def _quantize(model: nn.Module, name: str, quantize: Quantization) -> None:
    parent, _, leaf = name.rpartition(".")
    module = model.get_submodule(parent)
    whole = getattr(module, leaf)
    if is_quantized(name) and whole.dim() > 1:
        parametrize.register_parametrization(module, leaf, _Widened(whole, quantize), unsafe=True)


def _places(model: nn.Module, shards: Shards) -> Places:
    """Every tensor once; under the encoder's name if a shared one is published only under that."""
    for name in model.state_dict():
        if name.startswith(_ENCODER) and _OWN not in name:
            continue
        if name == "lm_head.weight":
            continue
        other = name.replace(_DECODER, _ENCODER, 1)
        yield name, (other if name not in shards and other in shards and _OWN not in name else name,)


def _compute(model: DiffusionGemmaForBlockDiffusion, device: torch.device | str) -> None:
    """Compute what no file contains: rotation frequencies, and the scale of embeddings."""
    text: Any = model.config.text_config
    for part in (model.model.encoder.language_model, model.model.decoder):
        part.rotary_emb = DiffusionGemmaTextRotaryEmbedding(text, device=device).to(device)
        part.embed_tokens.embed_scale = torch.tensor(part.embed_tokens.scalar_embed_scale, device=device)
    left = [name for name, held in (*model.named_parameters(), *model.named_buffers()) if held.is_meta]
    if left:
        raise CheckpointError(f"this version of transformers needs tensors that no file contains: {', '.join(left)}")


class Network:
    """A `Backbone` on the published network, in evaluation mode.

    Args:
        model: with its weights, on its device.
        shape: what its configuration says.
    """

    def __init__(self, model: DiffusionGemmaForBlockDiffusion, shape: NoiseShape) -> None:
        text: Any = model.config.text_config
        self._model = model
        self._kinds = tuple(text.layer_types)
        self._windows = tuple(text.sliding_window if kind == "sliding_attention" else None for kind in self._kinds)
        self.shape = shape
        self.device = model.device
        self.dtype = model.model.decoder.embed_tokens.weight.dtype

    @property
    def weights(self) -> Sequence[Tensor]:
        """Its parameters, each once."""
        return list({tensor.data_ptr(): tensor for tensor in self._model.state_dict().values()}.values())

    def empty(self) -> Context:
        """A context without tokens."""
        return Context(self._windows)

    def encode(self, ids: Sequence[int], behind: Context) -> None:
        """Append `ids` to what `behind` has encoded, causally."""
        start = behind.length
        self._model.model.encoder.language_model(
            input_ids=torch.tensor([ids], device=self.device),
            past_key_values=behind.cache,
            position_ids=torch.arange(start, start + len(ids), device=self.device)[None],
        )
        behind.length += len(ids)

    def denoise(self, canvases: Tensor, conditions: Sequence[Tensor | None], behind: Sequence[Context]) -> Tensor:
        """A forward for each of canvases [B, L], after its own context: logits [B, L, V] float32."""
        rows = zip(canvases, conditions, behind, strict=True)
        return torch.cat([self._denoised(*row) for row in rows])

    def _denoised(self, canvas: Tensor, condition: Tensor | None, context: Context) -> Tensor:
        places = torch.arange(context.length, context.length + len(canvas), device=self.device)
        found: Tensor = self._model(
            decoder_input_ids=canvas[None],
            past_key_values=context.cache,
            self_conditioning_logits=None if condition is None else condition[None],
            decoder_attention_mask=dict.fromkeys(self._kinds),
            decoder_position_ids=places[None],
        ).logits
        return found
