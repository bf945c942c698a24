"""How the rows of a question attend: the prompt to itself, causally, and everything else to the prompt and its own."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.config import ModelConfig
from calomel.training.preference.layout import Layout


class QuestionAttention:
    """The `Attend` of one layout: two products a layer, as the prompt never sees an answer."""

    def __init__(self, config: ModelConfig, layout: Layout, device: torch.device) -> None:
        self._config = config
        self._context = layout.context
        windows = {config.window(layer) for layer in range(config.num_hidden_layers)}
        self._masks = {window: _masks(layout, window, device) for window in windows}

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [T, Hq, D], k and v [T, Hkv, D] to [T, Hq, D]."""
        inner, outer = self._masks[self._config.window(layer)]
        q, k, v = (each.transpose(0, 1)[None] for each in (q, k, v))
        count = self._context
        prompt = _attend(q[:, :, :count], k[:, :, :count], v[:, :, :count], inner)
        answers = _attend(q[:, :, count:], k, v, outer)
        return torch.cat((prompt, answers), dim=2)[0].transpose(0, 1)


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None, enable_gqa=True)


def _masks(layout: Layout, window: int | None, device: torch.device) -> tuple[Tensor | None, Tensor]:
    """What a row of the prompt sees of the prompt (None: all before it), and any other row of all rows: [T - C, T]."""
    columns = {
        name: torch.from_numpy(getattr(layout, name)).to(device)
        for name in ("positions", "canvas", "owner", "sees", "causal", "order")
    }
    count = layout.context
    key = torch.arange(len(layout.ids), device=device)
    row = {name: column[count:, None] for name, column in columns.items()}
    prompt = (key < count) & (key < row["sees"])
    same = row["owner"] == columns["owner"]
    before = same & (columns["order"] >= 0) & (columns["order"] < row["causal"])
    beside = (row["canvas"] > 0) & (row["canvas"] == columns["canvas"])
    visible = prompt | before
    inner = None
    if window is not None:
        visible &= row["positions"] - columns["positions"] < window
        if count > window:
            index = torch.arange(count, device=device)
            distance = index[:, None] - index
            inner = (distance >= 0) & (distance < window)
    return inner, visible | beside
