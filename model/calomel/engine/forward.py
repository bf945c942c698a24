"""One flat forward: the rows of all active requests side by side, without padding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from calomel.engine.attention import Segment, SegmentAttention
from calomel.engine.buffer import KeyValueBuffer
from calomel.engine.config import ModelConfig
from calomel.engine.flash import FlashVarlen
from calomel.engine.transformer import Transformer


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive rows of one request.

    Attributes:
        ids: token ids [n], on the host or on the device.
        buffer: the request's keys and values.
        context: position of the first row; so many tokens come before it.
        causal: how the rows see each other, see `Segment`.
        read: rows whose logits are wanted.
        behind: so many positions behind the last row are visible too, as an earlier forward left them in the buffer.
        first: of a canvas, the row that predicts its first position; -1 where the row before the piece did.
    """

    ids: Sequence[int] | Tensor
    buffer: KeyValueBuffer
    context: int
    causal: bool
    read: Sequence[int] = ()
    first: int = 0
    behind: int = 0


def forward(model: Transformer, pieces: Sequence[Piece], flash: FlashVarlen | None = None) -> Tensor:
    """The logits [R, V] float32 of the rows that `pieces` want read, in order.

    Every buffer has room for its pieces. Behind it they hold the keys and values of all rows from `context` on; their
    `length` is the caller's.
    """
    device = model.embed_tokens.weight.device
    ids: list[Tensor] = []
    positions: list[int] = []
    read: list[int] = []
    segments: list[Segment] = []
    for piece in pieces:
        start, size = len(positions), len(piece.ids)
        ids.append(torch.as_tensor(piece.ids, dtype=torch.int64, device=device))
        positions.extend(range(piece.context, piece.context + size))
        read.extend(start + row for row in piece.read)
        segments.append(Segment(start, start + size, piece.buffer, piece.context, piece.causal, piece.behind))
    attend = SegmentAttention(model.config, segments, flash)
    hidden = model(torch.cat(ids), torch.tensor(positions, device=device), attend)
    if len(read) < len(positions):
        hidden = hidden[torch.tensor(read, dtype=torch.int64, device=device)]
    return model.logits(hidden)


def attention_multiplications(config: ModelConfig, pieces: Sequence[Piece]) -> int:
    """How many multiplications the attention of `pieces` takes: two for each number of a key that a row sees."""
    windows = Counter(config.window(layer) for layer in range(config.num_hidden_layers))
    width = 2 * config.num_attention_heads * config.head_dim
    seen = 0
    for piece in pieces:
        rows = len(piece.ids)
        keys = piece.context + rows + piece.behind
        seen += rows * sum(
            layers * (keys if window is None else min(keys, window + rows)) for window, layers in windows.items()
        )
    return seen * width
