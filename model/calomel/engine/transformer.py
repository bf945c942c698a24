"""The decoder: token ids and positions in, hidden states and logits out.

One network serves both modes. It computes everything that is per token (embedding, norms, projections, MLP) over one
flat row of tokens, and leaves attention to its caller: the engine attends over cached keys, the trainer with the mask
of a whole training batch. So there is no padding, no mask and no cache in this file.

Weights have the names of the Hugging Face Qwen3 implementation; fused projections are split when a checkpoint is saved.
"""

from __future__ import annotations

import math
from typing import Final, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calomel.engine.config import ModelConfig, MoeConfig

# How many scores rate a group of experts (BailingMoeV2, DeepSeek-V3).
_GROUP_SCORES: Final = 2
# Avoids a division by a sum of zero, as in the published routers.
_TINY: Final = 1e-20
# Of int8, and of the scale of a row of zeros.
_LARGEST: Final = 127.0
_SMALLEST_SCALE: Final = 1e-12
# A weight is packed for products with this many rows, those of a canvas; others find it in order, too.
_PACKED_ROWS: Final = 8
# Numbers of an embedding that may exist twice, the second time as the head.
_COPIED: Final = 1 << 24
# How many logits of a row are computed in float32, and the columns that are searched together.
_SHARPENED, _BLOCK = 3, 64
_ROWS: Final = 4096


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
        """`scores` [T, E], with minus infinity outside of a token's best groups."""
        grouped = scores.unflatten(-1, (self.config.groups, -1))  # [T, G, E/G]
        best = grouped.topk(min(_GROUP_SCORES, grouped.shape[-1]), dim=-1).values.sum(dim=-1)
        groups = best.topk(self.config.chosen_groups, dim=-1).indices
        outside = torch.ones_like(best, dtype=torch.bool).scatter(-1, groups, value=False)
        allowed: Tensor = grouped.masked_fill(outside[..., None], -torch.inf)
        return allowed.flatten(-2)


class Stack(nn.Module):
    """One linear map per expert, without bias: `weight` [E * out, in], expert after expert."""

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
        # One kernel without a host synchronisation; it exists for bfloat16 on a GPU.
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
    """A router, its experts and the shared ones, in place of an MLP."""

    def __init__(self, config: MoeConfig, size: int, shared: nn.Module | None) -> None:
        super().__init__()
        self.gate = Router(config, size)
        self.experts = Experts(config, size)
        self.shared_experts = shared

    def forward(self, x: Tensor) -> Tensor:
        """X [T, C] to [T, C]."""
        out: Tensor = self.experts(x, *self.gate(x))
        return out if self.shared_experts is None else out + self.shared_experts(x)


class Attend(Protocol):
    """How the tokens of one forward attend in one layer."""

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend with q [T, Hq, D] over k, v [T, Hkv, D] of the same tokens and whatever the caller has cached.

        Returns [T, Hq, D]. RoPE and QK-norm are already applied.
        """
        ...


class Attention(nn.Module):
    """The projections of grouped-query attention, with RoPE and optional QK-norm; `Attend` does the rest."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        self.q_heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        width = config.head_dim
        self.qkv_proj = nn.Linear(
            config.hidden_size, (self.q_heads + 2 * self.kv_heads) * width, bias=config.attention_bias
        )
        self.o_proj = nn.Linear(self.q_heads * width, config.hidden_size, bias=config.output_bias)
        self.q_norm = nn.RMSNorm(config.head_dim, eps=config.rms_norm_eps) if config.qk_norm else nn.Identity()
        self.k_norm = nn.RMSNorm(config.head_dim, eps=config.rms_norm_eps) if config.qk_norm else nn.Identity()
        self._kept: Tensor | None = None

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """X [T, C], cos and sin [T, 1, R] to q [T, Hq, D], k and v [T, Hkv, D]."""
        heads = self.qkv_proj(x).unflatten(-1, (-1, self.head_dim))
        both, v = heads.split((self.q_heads + self.kv_heads, self.kv_heads), dim=-2)
        # Queries and keys at once: for the few rows of a canvas an operation's overhead exceeds its arithmetic.
        if isinstance(self.q_norm, nn.RMSNorm):
            both = F.rms_norm(both, (self.head_dim,), None, self.q_norm.eps) * self._norms()
        q, k = rotate(both, cos, sin).split((self.q_heads, self.kv_heads), dim=-2)
        return q, k, v

    def _norms(self) -> Tensor:
        """The weights of the norms of queries and keys [Hq + Hkv, D], kept once they are no longer trained."""
        if self._kept is not None:
            return self._kept
        queries, keys = cast("Tensor", self.q_norm.weight), cast("Tensor", self.k_norm.weight)
        found = torch.cat((queries.expand(self.q_heads, -1), keys.expand(self.kv_heads, -1)))
        self._kept = None if queries.requires_grad else found
        return found


class Mlp(nn.Module):
    """SwiGLU."""

    def __init__(self, hidden_size: int, intermediate_size: int, *, bias: bool = False) -> None:
        super().__init__()
        self.gate_up_proj = nn.Linear(hidden_size, 2 * intermediate_size, bias=bias)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """X [T, C] to [T, C]."""
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        out: Tensor = self.down_proj(F.silu(gate) * up)
        return out


class Layer(nn.Module):
    """One pre-norm decoder layer."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.number = layer
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.mlp = _feed_forward(config, layer)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor:
        """X [T, C] to [T, C]."""
        return self.after(x, attend(self.number, *self.before(x, cos, sin)))

    def before(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The queries, keys and values of x [T, C]: q [T, Hq, D], k and v [T, Hkv, D]."""
        found: tuple[Tensor, Tensor, Tensor] = self.self_attn(self.input_layernorm(x), cos, sin)
        return found

    def after(self, x: Tensor, attended: Tensor) -> Tensor:
        """X [T, C] and the attention's output [T, Hq, D] to [T, C]."""
        x = x + self.self_attn.o_proj(attended.flatten(-2))
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class Transformer(nn.Module):
    """The whole decoder. Holds weights only; two engines can share one."""

    inverse_frequency: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, layer) for layer in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.embed_tokens.weight
        self.register_buffer("inverse_frequency", inverse_frequency(config), persistent=False)

    def forward(
        self,
        ids: Tensor,
        positions: Tensor,
        attend: Attend,
        wanted: Tensor | None = None,
    ) -> Tensor:
        """Ids [T] and positions [T] to hidden states [T, C] after the last norm.

        If `wanted` [R] is given, returns those rows alone, in this order: the other rows of the last layer are needed
        for keys and values only, and have no queries there.
        """
        angles = positions[:, None].float() * self.inverse_frequency  # [T, R/2]
        x = self.embed_tokens(ids)
        cos, sin = rotation(angles, x.dtype)
        *layers, last = cast("list[Layer]", list(self.layers))
        for layer in layers:
            x = layer(x, cos, sin, attend)
        q, k, v = last.before(x, cos, sin)
        if wanted is not None:
            x, q = x[wanted], q[wanted]
        found = attend(last.number, q, k, v)
        x = last.after(x, found) if len(x) else x
        out: Tensor = self.norm(x)
        return out

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states [N, C] to logits [N, V] in float32.

        A product of bfloat16 numbers is rounded to bfloat16: on CUDA it is not, elsewhere the best logits of each row
        are computed again, so that ties are broken and probabilities near 1 are right.
        """
        weight = self.embed_tokens.weight if self.config.tie_word_embeddings else None
        if hidden.is_cuda and weight is not None and hidden.dtype != torch.float32:
            return torch.mm(hidden, weight.t(), out_dtype=torch.float32)
        out: Tensor = self.lm_head(hidden)
        if out.dtype == torch.float32 or weight is None:
            return out.float()
        out = out.float()
        best = highest(out, _SHARPENED)
        exact = torch.bmm(weight[best].float(), hidden.float()[:, :, None])[..., 0].float()  # also in an autocast
        return out.scatter_(-1, best, exact)


def highest(logits: Tensor, count: int) -> Tensor:
    """The columns of the `count` highest of every row of logits [N, V]: [N, count].

    Looks for the highest blocks first, which is far faster on a CPU.
    """
    rows, vocab = logits.shape
    if vocab % _BLOCK or vocab < count * _BLOCK:
        return logits.topk(min(count, vocab), dim=-1).indices
    blocks = logits.view(rows, -1, _BLOCK)
    chosen = blocks.amax(dim=-1).topk(count, dim=-1).indices
    within = blocks.gather(1, chosen[..., None].expand(-1, -1, _BLOCK)).flatten(1).topk(count, dim=-1).indices
    return chosen.gather(1, within // _BLOCK) * _BLOCK + within % _BLOCK


def _feed_forward(config: ModelConfig, layer: int) -> Mlp | Mixture:
    moe = config.moe
    if moe is None or layer in moe.dense:
        return Mlp(config.hidden_size, config.intermediate_size, bias=config.mlp_bias)
    shared = Mlp(config.hidden_size, moe.shared * moe.intermediate_size) if moe.shared else None
    return Mixture(moe, config.hidden_size, shared)


def inverse_frequency(config: ModelConfig) -> Tensor:
    """The RoPE frequencies of `config`, in float32: [D/2], or fewer if only the first dimensions are rotated."""
    width = config.rotary_dim or config.head_dim
    exponent = torch.arange(0, width, 2, dtype=torch.float32, device="cpu") / width
    found, scaling = config.rope_theta**-exponent, config.rope_scaling
    if scaling is None:
        return found
    if scaling.positions is None:
        return found / scaling.factor
    # How many waves fit into the positions: few of a slow one, which is divided, many of a fast one, which stays.
    waves = scaling.positions * found / math.tau
    stays = ((waves - scaling.low) / (scaling.high - scaling.low)).clamp(0.0, 1.0)
    return found * (stays + (1.0 - stays) / scaling.factor)


def rotation(angles: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The factors of `rotate` for angles [T, R/2]: [T, 1, R] each, the sine of the first half negative."""
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), -1)[:, None].to(dtype), torch.cat((-sin, sin), -1)[:, None].to(dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply RoPE, half-split as in Qwen and Llama, to the first R dimensions of x [T, H, D] by its factors."""
    width = cos.shape[-1]
    if width < x.shape[-1]:
        return torch.cat((rotate(x[..., :width], cos, sin), x[..., width:]), dim=-1)
    half = width // 2
    turned = torch.cat((x[..., half:], x[..., :half]), dim=-1)
    return torch.addcmul(x * cos, turned, sin)


# Quantization to eight bits


def rounded(x: Tensor) -> tuple[Tensor, Tensor]:
    """X [N, K] as int8, and the float32 scale [N, 1] of every row that restores x."""
    x = x.float()
    scale = x.abs().amax(dim=-1, keepdim=True).clamp_(min=_SMALLEST_SCALE).div_(_LARGEST)
    return (x / scale).round_().to(torch.int8), scale


def multiply(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    """X [..., K] times the rounded `weight` [N, K] with its scale: [..., N] in the type of x.

    On a CPU each token's activations are rounded to eight bits too, and the product is one of
    integers, which is exact: a token's result does not depend on those beside it (docs/decisions/009). Otherwise the
    weights are widened for the product.
    """
    flat = x.reshape(-1, x.shape[-1])
    if x.device.type == "cpu":
        small, by_row = rounded(flat)
        product = torch._int_mm(small, weight.t())  # noqa: SLF001  (PyTorch's only product of int8 matrices)
        out = (product * by_row).mul_(scale.t())
    else:
        out = F.linear(flat, weight.to(x.dtype)) * scale.t().to(x.dtype)
    return out.to(x.dtype).view(*x.shape[:-1], weight.shape[0])


class _Quantized(nn.Module):
    """Rounded weights [N, K] and their scale."""

    def __init__(self, whole: nn.Linear | Stack) -> None:
        super().__init__()
        # A few rows at a time: an expert layer in float32 would take gigabytes.
        parts = [rounded(part) for part in whole.weight.detach().split(_ROWS)]
        self.weight = nn.Parameter(torch.cat([part for part, _ in parts]), requires_grad=False)
        self.scale = nn.Parameter(torch.cat([scale for _, scale in parts]), requires_grad=False)


class QuantizedLinear(_Quantized):
    """A linear map with rounded weights [N, K], in place of `whole`."""

    def __init__(self, whole: nn.Linear) -> None:
        super().__init__(whole)
        self.bias = whole.bias

    def forward(self, x: Tensor) -> Tensor:
        """X [..., K] to [..., N]."""
        out = multiply(x, self.weight, self.scale)
        return out if self.bias is None else out + self.bias


class QuantizedStack(_Quantized):
    """One linear map per expert with rounded weights, in place of `whole`."""

    def __init__(self, whole: Stack) -> None:
        super().__init__(whole)
        self.experts = whole.experts

    def part(self, expert: int, x: Tensor) -> Tensor:
        """X [N, in] through one expert: [N, out]."""
        size = self.weight.shape[0] // self.experts
        rows = slice(expert * size, (expert + 1) * size)
        return multiply(x, self.weight[rows], self.scale[rows])


class PackedLinear(nn.Module):
    """A linear map whose weight lies in the order in which a CPU multiplies it, in place of `whole`; the same result.

    Otherwise oneDNN reorders a bfloat16 weight at every call: for a few rows that takes as long as the product.
    """

    def __init__(self, whole: nn.Linear) -> None:
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(whole.weight.detach(), _PACKED_ROWS)  # noqa: SLF001
        self.bias = whole.bias

    def forward(self, x: Tensor) -> Tensor:
        """X [..., K] to [..., N]."""
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")  # noqa: SLF001
        return out


def pack(model: Transformer) -> None:
    """Put `PackedLinear` in the place of every linear map; a tied head only if the copy is small.

    Does nothing where PyTorch was built without oneDNN, as for some systems.
    """
    if not torch.backends.mkldnn.is_available():
        return
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is not nn.Linear or child.weight.requires_grad:
                continue
            if child.weight is not model.embed_tokens.weight or child.weight.numel() <= _COPIED:
                setattr(parent, name, PackedLinear(child))


def quantize_tensor(model: Transformer, name: str) -> None:
    """Round the parameter called `name` to eight bits, every row with a scale of its own, if it is a layer's matrix.

    Embeddings, the head, norms and routers stay as they are.
    """
    place, _, leaf = name.rpartition(".")
    if leaf != "weight" or not name.startswith("layers."):
        return
    module = model.get_submodule(place)
    parent, _, own = place.rpartition(".")
    if isinstance(module, nn.Linear):
        setattr(model.get_submodule(parent), own, QuantizedLinear(module))
    elif isinstance(module, Stack):
        setattr(model.get_submodule(parent), own, QuantizedStack(module))
