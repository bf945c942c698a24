"""The training loss of a batch: how its rows attend, and the cross-entropy of the scored rows of all parts at once.

Every row sees the front of its document up to its limit; a row of a branch also sees the branch's own head, and, in the
causal answer, what precedes it, or, on a canvas, all of that canvas. The causal answer is the clean copy of what the
canvases hide: no canvas row ever sees it.

The head takes a third of a small model's multiplications. In training it covers the tokens that a batch asks for and a
sample of the others, which represents all of them (sampled softmax, Jean et al. 2015): for about 6,000 rows over 8,192
tokens that is a quarter. Logits exist for a few rows at a time, and their gradient is computed while they are in the
cache.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

import torch
from torch import Tensor, nn

from calomel.engine.checkpoint import native_bfloat16
from calomel.engine.config import ModelConfig
from calomel.engine.transformer import Transformer
from calomel.training.batch import Batch
from calomel.training.branch import head_rows, rows
from calomel.training.config import BatchShape


def rate_factor(step: int, progress: float, *, warmup_steps: int, decay_share: float) -> float:
    """The factor of the learning rates at `step`, when the share `progress` of the run is over."""
    warm = min(1.0, (step + 1) / max(1, warmup_steps))
    if decay_share <= 0:
        return warm
    return warm * min(1.0, max(0.0, 1.0 - progress) / decay_share)


# Quintic Newton-Schulz coefficients of the Muon reference implementation.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS: Final = 5
_MOMENTUM: Final = 0.95


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised. Every parameter is a matrix; `parts` are the row counts of its fused pieces."""

    def __init__(self, parameters: Iterable[tuple[Tensor, tuple[int, ...]]], lr: float, weight_decay: float) -> None:
        groups = [{"params": [parameter], "parts": parts} for parameter, parts in parameters]
        super().__init__(groups, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update; `closure` is not supported and must be None."""
        if closure is not None:
            raise ValueError("Muon takes no closure")
        # Matrices of one shape at once: on a GPU a small product takes less time than its launch.
        alike: defaultdict[tuple[int, ...], list[tuple[Tensor, Tensor, float]]] = defaultdict(list)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state: dict[str, Any] = self.state[parameter]
                momentum = state.setdefault("momentum", torch.zeros_like(parameter))
                momentum.lerp_(parameter.grad, 1 - _MOMENTUM)
                update = parameter.grad.lerp(momentum, _MOMENTUM)
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parts = list(group["parts"])
                for piece, change in zip(parameter.split(parts), update.split(parts), strict=True):
                    alike[tuple(piece.shape)].append((piece, change, group["lr"]))
        for each in alike.values():
            changes = orthogonalise(torch.stack([change for _, change, _ in each]))
            for (piece, _, rate), change in zip(each, changes, strict=True):
                piece.add_(change, alpha=-rate)


def orthogonalise(matrices: Tensor) -> Tensor:
    """The nearest semi-orthogonal matrices, roughly, scaled by sqrt(max(1, rows / columns)); matrices [N, R, C]."""
    x = matrices.to(torch.bfloat16 if matrices.is_cuda or native_bfloat16() else torch.float32)
    rows, columns = matrices.shape[-2:]
    x = x.mT if rows > columns else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(_ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C), x, beta=_A)
    x = x.mT if rows > columns else x
    scale: float = max(1.0, rows / columns) ** 0.5
    return x.to(matrices.dtype) * scale


def make_optimizers(
    model: nn.Module, *, muon_lr: float, adam_lr: float, weight_decay: float
) -> tuple[Muon, torch.optim.AdamW]:
    """Split the parameters of a `Transformer`: matrices of the layers to Muon, the rest to AdamW."""
    matrices: list[tuple[Tensor, tuple[int, ...]]] = []
    others: list[Tensor] = []
    seen: set[int] = set()
    for name, module in model.named_modules():
        for parameter in module.parameters(recurse=False):
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            if isinstance(module, nn.Linear) and "layers." in name and parameter.ndim > 1:
                matrices.append((parameter, _parts(name, model, parameter.shape[0])))
            else:
                others.append(parameter)
    adam = torch.optim.AdamW(others, lr=adam_lr, betas=(0.9, 0.95), weight_decay=0.0, eps=1e-10, fused=True)
    return Muon(matrices, lr=muon_lr, weight_decay=weight_decay), adam


def _parts(name: str, model: nn.Module, count: int) -> tuple[int, ...]:
    if name.endswith("gate_up_proj"):
        return (count // 2, count // 2)
    if name.endswith("qkv_proj"):
        attention: Any = model.get_submodule(name.rpartition(".")[0])
        heads = (attention.q_heads, attention.kv_heads, attention.kv_heads)
        return tuple(each * attention.head_dim for each in heads)
    return (count,)


# The front attends in this many blocks: more of them save less and compile longer.
_BLOCKS: Final = 4
# Not infinite: a padding row that sees nothing must not become NaN.
_UNSEEN: Final = -1e9


def branch_structure(shape: BatchShape, *, logit_shift: bool) -> Tensor:
    """[R, R] bool: whether branch row q may see branch row k, if all of them are valid.

    With shifted logits a canvas has the middle mark as its own first row, so it does not see the head's.
    """
    count, begin = rows(shape), head_rows(shape)
    index = torch.arange(count)
    part = torch.where(index < begin, 0, 1 + (index - begin) // shape.canvas)  # 0 head, 1 causal, 2 and 3 canvases
    query, key = part[:, None], part[None, :]
    causal = index[:, None] >= index[None, :]
    head = (key == 0) & ((query > 0) | causal)
    if logit_shift:
        head &= ~((query > 1) & (index[None, :] == begin - 1))
    own = (query == key) & (query > 0)
    return head | (own & ((query > 1) | causal))


class TreeAttention:
    """Dense attention over front and branches.

    The scores of all rows against the front are one matrix product per head, without copies of the front for its
    branches. The front attends to itself in blocks of rows, each up to its own end: half of what comes after a row is
    not computed, and a block's scores stay in the cache. Masks are added: a conditional fill is not vectorised.
    """

    def __init__(
        self, config: ModelConfig, shape: BatchShape, positions: Tensor, limit: Tensor, valid: Tensor, structure: Tensor
    ) -> None:
        self._config = config
        self._shape = shape
        self._documents = positions.shape[0]
        front = shape.front
        key = torch.arange(front, device=positions.device)
        seen = (key < limit[..., None]) & valid[:, None, :front]  # [B, T, F]
        distance = positions[..., None] - positions[:, None, :front]
        window = config.sliding_window or config.max_position_embeddings
        self._front_masks = {None: _added(seen), config.sliding_window: _added(seen & (distance < window))}
        branches = valid[:, front:].unflatten(1, (shape.holes, -1))  # [B, K, R]
        self._branch_mask = _added(structure & branches[:, :, None, :])[:, None]  # [B, 1, K, R, R]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q [B * T, Hq, D], k and v [B * T, Hkv, D] to [B * T, Hq, D]."""
        shape, config = self._shape, self._config
        group = config.num_attention_heads // config.num_key_value_heads
        q = q.unflatten(0, (self._documents, -1)).transpose(1, 2) * config.head_dim**-0.5  # [B, Hq, T, D]
        k = k.unflatten(0, (self._documents, -1)).transpose(1, 2).repeat_interleave(group, dim=1)
        v = v.unflatten(0, (self._documents, -1)).transpose(1, 2).repeat_interleave(group, dim=1)
        front, holes = shape.front, shape.holes
        mask = self._front_masks[config.window(layer)][:, None]  # [B, 1, T, F]
        alone = []
        size = -(-front // _BLOCKS)
        for begin in range(0, front, size):
            end = min(front, begin + size)
            scores = q[:, :, begin:end] @ k[:, :, :end].transpose(-1, -2) + mask[:, :, begin:end, :end]
            alone.append(scores.softmax(-1) @ v[:, :, :end])
        inner_q = q[:, :, front:].unflatten(2, (holes, -1))  # [B, H, K, R, D]
        inner_k = k[:, :, front:].unflatten(2, (holes, -1))
        inner_v = v[:, :, front:].unflatten(2, (holes, -1))
        inner = inner_q @ inner_k.transpose(-1, -2) + self._branch_mask
        outer = q[:, :, front:] @ k[:, :, :front].transpose(-1, -2) + mask[:, :, front:]
        weights = torch.cat((outer.unflatten(2, (holes, -1)), inner), dim=-1).softmax(-1)
        branch = (weights[..., :front].flatten(2, 3) @ v[:, :, :front]) + (weights[..., front:] @ inner_v).flatten(2, 3)
        return torch.cat((*alone, branch), dim=2).transpose(1, 2).flatten(0, 1)


def _added(seen: Tensor) -> Tensor:
    """What is added to scores: zero where a row sees, elsewhere a number that makes their weight vanish.

    In the scores' own precision: adding float32 to bfloat16 would make a sum twice as wide, without benefit.
    """
    device = seen.device.type
    precision = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else torch.float32
    return torch.zeros(seen.shape, dtype=precision, device=seen.device).masked_fill(~seen, _UNSEEN)


# Rows whose logits exist at a time: on a CPU they fit its cache.
_CPU_ROWS: Final = 256
_GPU_ROWS: Final = 8192


class LossModel(nn.Module):
    """A transformer with its training loss.

    Args:
        transformer: the model to train.
        negatives: how many tokens that no row asks for represent all of those; 0 for all tokens.
        compiled: whether to compile everything up to the head.
    """

    def __init__(self, transformer: Transformer, *, negatives: int = 0, compiled: bool = False) -> None:
        super().__init__()
        self.transformer = transformer
        self._negatives = negatives
        self._read: Any = torch.compile(self._hidden, dynamic=False) if compiled else self._hidden

    def forward(self, batch: Batch, structure: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of `batch`, and the cross-entropy [N] of each scored row in nats.

        Args:
            batch: see `Batch`.
            structure: `branch_structure` of the batch's shape.
        """
        hidden = self._read(batch, structure).index_select(0, batch.scored)
        head = self.transformer.lm_head.weight
        targets, shift = batch.targets, None
        if self._negatives:
            classes, targets, shift = sampled(batch, head.shape[0], self._negatives)
            head = head[classes]
        loss, cross_entropy = _CrossEntropy.apply(hidden, head, targets, batch.weights, shift)  # type: ignore[no-untyped-call]
        return loss, cross_entropy

    def measure(self, batch: Batch, structure: Tensor) -> Tensor:
        """The cross-entropy [N] of each scored row over all tokens, in nats; see `forward`."""
        # With gradients, since the compiled step is reused as it is.
        hidden = self._read(batch, structure).detach()[batch.scored]
        with torch.no_grad():
            found = _CrossEntropy.apply(hidden, self.transformer.lm_head.weight, batch.targets, batch.weights, None)  # type: ignore[no-untyped-call]
        return cast("Tensor", found[1])

    def likeliest(self, batch: Batch, wanted: Tensor, structure: Tensor) -> Tensor:
        """The likeliest tokens [N] that the rows `wanted` [N] of the flattened batch predict."""
        hidden = self._read(batch, structure).detach()[wanted]
        with torch.no_grad():
            found: Tensor = self.transformer.logits(hidden).argmax(dim=-1)
        return found

    def _hidden(self, batch: Batch, structure: Tensor) -> Tensor:
        """The hidden states [B * T, C] of all rows."""
        config = self.transformer.config
        attend = TreeAttention(config, batch.shape, batch.positions, batch.limit, batch.valid, structure)
        hidden: Tensor = self.transformer(batch.ids.flatten(), batch.positions.flatten(), attend)
        return hidden


def sampled(batch: Batch, vocab: int, negatives: int) -> tuple[Tensor, Tensor, Tensor]:
    """Which tokens a batch is scored over.

    Returns `classes` [K], the tokens that some row asks for and `negatives` of the others; the targets [N] as indices
    of them; and [K] what is added to a logit, so that the sampled ones represent all that were left out.
    """
    asked = torch.zeros(vocab, dtype=torch.bool, device=batch.targets.device)
    asked[batch.targets] = True
    others = (~asked).nonzero()[:, 0]
    kept = others[torch.randperm(len(others), device=others.device)[:negatives]]
    classes = torch.cat((asked.nonzero()[:, 0], kept))
    shift = torch.zeros(len(classes), device=classes.device)
    if len(kept):
        shift[-len(kept) :] = torch.log(torch.tensor(len(others) / len(kept)))
    place = torch.empty(vocab, dtype=torch.int64, device=classes.device)
    place[classes] = torch.arange(len(classes), device=classes.device)
    return classes, place[batch.targets], shift


class _CrossEntropy(torch.autograd.Function):
    """The weighted sum of the rows' cross-entropies, a few rows at a time, gradients included."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, head: Tensor, targets: Tensor, weights: Tensor, shift: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Hidden [N, C], head [K, C], targets [N] in [0, K), weights [N], shift [K] to the loss and [N] nats."""
        wanted = ctx.needs_input_grad[0]
        by_hidden = torch.empty_like(hidden) if wanted else None
        by_head = torch.zeros_like(head) if wanted else None
        found = torch.empty(len(hidden), dtype=torch.float32, device=hidden.device)
        for at in range(0, len(hidden), rows := _GPU_ROWS if hidden.is_cuda else _CPU_ROWS):
            part, index = hidden[at : at + rows], targets[at : at + rows, None]
            logits = (part @ head.T).float()
            if shift is not None:
                logits += shift
            total = logits.logsumexp(-1, keepdim=True)
            found[at : at + rows] = (total - logits.gather(-1, index))[:, 0]
            if by_hidden is None or by_head is None:
                continue
            weight = weights[at : at + rows, None]
            slope = logits.sub_(total).exp_().mul_(weight)
            slope.scatter_add_(-1, index, -weight)
            by_hidden[at : at + rows] = slope @ head
            by_head += slope.T @ part
        if wanted:
            ctx.save_for_backward(by_hidden, by_head)
        ctx.mark_non_differentiable(found)
        return (found * weights).sum(), found

    @staticmethod
    def backward(ctx: Any, loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the loss with respect to hidden and head."""
        by_hidden, by_head = ctx.saved_tensors
        return loss * by_hidden, loss * by_head, None, None, None
