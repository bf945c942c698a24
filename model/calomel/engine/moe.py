"""The mixture of experts: a router, the experts that it chooses, and those that every token goes through.

Tokens are sorted by expert, so that each expert that has any multiplies its own as one matrix. All experts of a layer
lie one below the other in two matrices, which is how a checkpoint's table places them and how they are quantised.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calomel.engine.mixture import MoeConfig

# Of a group of experts, so many scores say how good it is (BailingMoeV2, DeepSeek-V3).
_GROUP_SCORES: Final = 2
# Keeps a sum of zero from dividing, as the published routers do.
_TINY: Final = 1e-20


class Router(nn.Module):
    """Chooses the experts of every token, in float32 whatever the weights are."""

    expert_bias: Tensor

    def __init__(self, config: MoeConfig, size: int) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.empty(config.experts, size))
        nn.init.normal_(self.weight, std=0.02)
        if config.bias:
            self.expert_bias = nn.Parameter(torch.zeros(config.experts))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """X [T, C] to the chosen experts [T, K] int64 and their weights [T, K] float32."""
        config = self.config
        logits = F.linear(x.float(), self.weight.float())
        scores = logits.softmax(dim=-1) if config.score == "softmax" else logits.sigmoid()
        choosing = scores + self.expert_bias.float() if config.bias else scores
        if config.chosen_groups < config.groups:
            choosing = self._within_groups(choosing)
        chosen = choosing.topk(config.chosen, dim=-1).indices
        weights = scores.gather(-1, chosen)
        if config.normalised and config.chosen > 1:
            weights = weights / (weights.sum(dim=-1, keepdim=True) + _TINY)
        return chosen, weights * config.scaling

    def _within_groups(self, scores: Tensor) -> Tensor:
        """`scores` [T, E], those outside of a token's best groups at minus infinity."""
        grouped = scores.unflatten(-1, (self.config.groups, -1))  # [T, G, E/G]
        best = grouped.topk(min(_GROUP_SCORES, grouped.shape[-1]), dim=-1).values.sum(dim=-1)
        groups = best.topk(self.config.chosen_groups, dim=-1).indices
        outside = torch.ones_like(best, dtype=torch.bool).scatter(-1, groups, value=False)
        allowed: Tensor = grouped.masked_fill(outside[..., None], -torch.inf)
        return allowed.flatten(-2)


class Stack(nn.Module):
    """One linear map of every expert, without bias: `weight` [E * out, in], expert after expert."""

    def __init__(self, experts: int, size_in: int, size_out: int) -> None:
        super().__init__()
        self.experts = experts
        self.weight = nn.Parameter(torch.empty(experts * size_out, size_in))
        nn.init.normal_(self.weight, std=0.02)

    def part(self, expert: int, x: Tensor) -> Tensor:
        """X [N, in] through one expert: [N, out]."""
        size = self.weight.shape[0] // self.experts
        return F.linear(x, self.weight[expert * size : (expert + 1) * size])

    def grouped(self, x: Tensor, ends: Tensor) -> Tensor:
        """X [N, in], of which expert e has the rows before ends[e] and not before ends[e - 1]: [N, out]."""
        stacked = self.weight.view(self.experts, -1, self.weight.shape[-1])
        return F.grouped_mm(x, stacked.transpose(-2, -1), offs=ends)


class Experts(nn.Module):
    """SwiGLU, once per expert."""

    def __init__(self, config: MoeConfig, size: int) -> None:
        super().__init__()
        self.count = config.experts
        self.gate_up_proj = Stack(config.experts, size, 2 * config.intermediate_size)
        self.down_proj = Stack(config.experts, config.intermediate_size, size)

    def forward(self, x: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        """X [T, C] through the experts `chosen` [T, K], summed by `weights` [T, K] float32: [T, C]."""
        order = chosen.flatten().argsort(stable=True)
        sorted_x = x[order // chosen.shape[-1]]  # [T * K, C], expert after expert
        counts = torch.bincount(chosen.flatten(), minlength=self.count)
        out = self._grouped(sorted_x, counts) if self._groups_at_once(x) else self._in_turn(sorted_x, counts)
        back = torch.empty_like(out).index_copy(0, order, out).unflatten(0, chosen.shape)  # [T, K, C]
        summed: Tensor = (back * weights[..., None]).sum(dim=-2)
        return summed.to(x.dtype)

    def _groups_at_once(self, x: Tensor) -> bool:
        # One kernel, and no count is read by the host; it is there for bfloat16 on a GPU.
        return x.is_cuda and x.dtype == torch.bfloat16 and isinstance(self.gate_up_proj, Stack)

    def _grouped(self, x: Tensor, counts: Tensor) -> Tensor:
        ends = counts.cumsum(0, dtype=torch.int32)
        gate, up = self.gate_up_proj.grouped(x, ends).chunk(2, dim=-1)
        return self.down_proj.grouped(F.silu(gate) * up, ends)

    def _in_turn(self, x: Tensor, counts: Tensor) -> Tensor:
        out = torch.empty_like(x)
        start = 0
        for expert, count in enumerate(counts.tolist()):
            if count:
                gate, up = self.gate_up_proj.part(expert, x[start : start + count]).chunk(2, dim=-1)
                out[start : start + count] = self.down_proj.part(expert, F.silu(gate) * up)
            start += count
        return out


class Mixture(nn.Module):
    """A router, its experts, and the shared ones: what stands in the place of an MLP."""

    def __init__(self, config: MoeConfig, size: int, shared: nn.Module | None) -> None:
        super().__init__()
        self.gate = Router(config, size)
        self.experts = Experts(config, size)
        self.shared_experts = shared

    def forward(self, x: Tensor) -> Tensor:
        """X [T, C] to [T, C]."""
        out: Tensor = self.experts(x, *self.gate(x))
        return out if self.shared_experts is None else out + self.shared_experts(x)
