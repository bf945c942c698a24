"""DiffusionGemma behind the worker of canvases of noise: its encoder, its decoder, and the head, by transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.models.diffusion_gemma.modeling_diffusion_gemma import DiffusionGemmaForBlockDiffusion

from calomel.engine.renoise import RenoiseShape
from calomel.families.gemma.cache import Context, Stack


class Network:
    """A `Backbone` on the published network, in evaluation mode.

    Args:
        model: with its weights, on its device.
        shape: what its configuration says.
    """

    def __init__(self, model: DiffusionGemmaForBlockDiffusion, shape: RenoiseShape) -> None:
        text: Any = model.config.text_config
        self._model = model
        self._kinds = tuple(text.layer_types)
        self._windows = tuple(text.sliding_window if kind == "sliding_attention" else None for kind in self._kinds)
        self._stack: Stack | None = None
        self.shape = shape
        self.device = model.device
        self.dtype = model.model.decoder.embed_tokens.weight.dtype

    @property
    def size(self) -> int:
        """Bytes of its weights."""
        held = {tensor.data_ptr(): tensor.nbytes for tensor in self._model.state_dict().values()}
        return sum(held.values())

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
        behind.grown(len(ids))

    def denoise(self, canvases: Tensor, conditions: Sequence[Tensor | None], behind: Sequence[Context]) -> Tensor:
        """One forward of canvases [B, L], each behind its own context: logits [B, L, V] float32."""
        width = canvases.shape[-1]
        starts = torch.tensor([context.length for context in behind], device=self.device)
        told = [condition for condition in conditions if condition is not None]
        signal, having = None, None
        if told:
            silent = torch.zeros((), dtype=self.dtype, device=self.device).expand_as(told[0])
            signal = torch.stack([silent if condition is None else condition for condition in conditions])
            if len(told) < len(conditions):
                having = torch.tensor([condition is not None for condition in conditions], device=self.device)
        cache = behind[0].cache if len(behind) == 1 else self._stacked(behind, width)
        masks = {} if len(behind) == 1 else self._stacked(behind, width).masks
        found: Tensor = self._model(
            decoder_input_ids=canvases,
            past_key_values=cache,
            self_conditioning_logits=signal,
            self_conditioning_mask=having,
            decoder_attention_mask={kind: masks.get(kind) for kind in self._kinds},
            decoder_position_ids=starts[:, None] + torch.arange(width, device=self.device),
        ).logits
        return found

    def _stacked(self, contexts: Sequence[Context], canvas: int) -> Stack:
        """The contexts side by side; laid out anew only when another request has come or gone."""
        if self._stack is None or not self._stack.holds(contexts):
            self._stack = None
            self._stack = Stack(contexts, self._kinds, canvas)
        return self._stack
