"""One flat forward: the rows of all active requests side by side, without padding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.attention import Segment, SegmentAttention
from calomel.engine.buffer import KeyValueBuffer
from calomel.engine.config import ModelConfig
from calomel.engine.flash import FlashVarlen
from calomel.engine.memory import REACH, MemoryConfig, in_threes
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
        text: [n, REACH + 1], what the rows look up in a model's memory, see `text_of`; None to read `ids` as a text
            that begins there.
        first: of a canvas, the row that predicts its first position; -1 where the row before the piece did.
    """

    ids: Sequence[int] | Tensor
    buffer: KeyValueBuffer
    context: int
    causal: bool
    read: Sequence[int] = ()
    first: int = 0
    behind: int = 0
    text: Tensor | None = None


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
    texts = []
    if model.config.memory is not None:
        texts = [
            in_threes(F.pad(own, (REACH, 0))) if piece.text is None else piece.text
            for own, piece in zip(ids, pieces, strict=True)
        ]
    text = (torch.cat(texts),) if texts else ()
    hidden = model(torch.cat(ids), torch.tensor(positions, device=device), attend, *text)
    if len(read) < len(positions):
        hidden = hidden[torch.tensor(read, dtype=torch.int64, device=device)]
    return model.logits(hidden)


def text_of(piece: Piece, tokens: Sequence[int], memory: MemoryConfig, device: torch.device) -> Tensor:
    """`Piece.text` of rows of a request whose final tokens are `tokens`."""
    if piece.causal:
        rows = [*tokens[: piece.context], *torch.as_tensor(piece.ids).tolist()]
        return torch.cat(
            [
                in_threes(torch.tensor(run, dtype=torch.int64, device=device))
                for run in memory.text(rows, piece.context, len(rows))
            ]
        )
    # A canvas is on the device; what is known of its first rows is final.
    known = min(piece.context + 1, len(tokens))
    before = memory.before(tokens, known, REACH + known - piece.context)
    ids = torch.as_tensor(piece.ids, dtype=torch.int64, device=device)[known - piece.context :]
    return in_threes(torch.cat((torch.tensor(before, dtype=torch.int64, device=device), ids)))


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
