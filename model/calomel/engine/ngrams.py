"""What mostly follows the last tokens of a text, counted over more text than a small network can be trained on.

A network of a few million weights has no room for what a thousand files say alike. A table of contexts has: for up to
five last tokens, the one that followed them most often, how often, and in what share of all places. The longest context
that it knows proposes its token, and a gate weighs that against the network's own distribution: a cache or n-gram model
beside a neural one (Mikolov et al. 2011; "infini-gram", arXiv 2401.17377), looked up as in "Engram" (arXiv 2601.07372).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from calomel.engine.errors import CheckpointError
from calomel.engine.memory import TextOrder

NGRAMS_FILE: Final = "ngrams.table"
LONGEST: Final = 5
# Of a gate: one, an order each, then what `features` says.
GATE_WEIGHTS: Final = LONGEST + 6
_PARTS: Final = ("contexts", "tokens", "shares", "counts")
# The nearest odd number to 2 ** 64 / golden ratio (Knuth 6.4).
_MULTIPLIER: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1
_SHIFT: Final = 29
# Of a hash, what a table keeps.
KEPT_SHIFT: Final = 32
_COUNT_STEPS: Final = 8
# Keeps the logarithm of a probability that is 0 or 1 finite.
_TINY: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Following:
    """The token that followed a context of `order` tokens most often: in a `share` of `count` places."""

    token: int
    order: int
    share: float
    count: float


def extended(key: Any, token: Any) -> Any:
    """The key of a context with one more token before it: of integers, or of arrays of uint64."""
    if isinstance(key, int):
        mixed = ((key ^ (token + 1)) * _MULTIPLIER) & _MASK
        return mixed ^ (mixed >> _SHIFT)
    mixed = (key ^ (token + np.uint64(1))) * np.uint64(_MULTIPLIER)
    return mixed ^ (mixed >> np.uint64(_SHIFT))


def features(found: Following, own: float, best: float, *, same: bool) -> list[float]:
    """What the gate weighs.

    Args:
        found: what the table proposes.
        own: log-probability of its token by the network.
        best: that of the network's best token.
        same: they are one token.
    """
    orders = [float(found.order == order) for order in range(1, LONGEST + 1)]
    return [1.0, *orders, math.log(found.count), found.share, own, best, float(same)]


class NgramTable:
    """The contexts of each order, sorted, and the gate. Safe to share between engines.

    Args:
        orders: of each order from 1 on, the `contexts` [N] uint32 in rising order, and of each its best `tokens` [N]
            uint16, their `shares` [N] uint8 in 255ths and `counts` [N] uint8, eight steps for a power of two.
        gate: weights of `features`.
        order: how a prompt is read as text.
    """

    def __init__(self, orders: Sequence[Mapping[str, np.ndarray]], gate: Sequence[float], order: TextOrder) -> None:
        if len(orders) != LONGEST or len(gate) != GATE_WEIGHTS or not all(map(math.isfinite, gate)):
            raise CheckpointError(f"{NGRAMS_FILE}: {LONGEST} orders and {GATE_WEIGHTS} finite weights are needed")
        self._orders = [tuple(table[part] for part in _PARTS) for table in orders]
        self.gate = tuple(gate)
        self.order = order

    @classmethod
    def load(cls, folder: Path, vocab_size: int) -> NgramTable | None:
        """The table of the checkpoint in `folder`; None where it has none.

        Raises:
            CheckpointError: it is damaged, or of another vocabulary.
        """
        path = folder / NGRAMS_FILE
        if not path.is_file():
            return None
        try:
            with safe_open(path, framework="numpy") as file:
                said = file.metadata() or {}
                orders = [
                    {part: file.get_tensor(f"{part}.{order}") for part in _PARTS} for order in range(1, LONGEST + 1)
                ]
            order = TextOrder(tuple(json.loads(said["pauses"])), int(said["resumes"]))
            gate = [float(weight) for weight in json.loads(said["gate"])]
        except (SafetensorError, KeyError, ValueError, TypeError, OSError) as error:
            raise CheckpointError(f"{path} is damaged: {error!r}") from error
        for table in orders:
            if len({len(part) for part in table.values()}) > 1 or (table["tokens"] >= vocab_size).any():
                raise CheckpointError(f"{path} is damaged, or of another vocabulary")
        return cls(orders, gate, order)

    def following(self, tokens: Sequence[int], end: int) -> Following | None:
        """What follows the text in the rows [0, end) of a prompt and its answer; None where nothing of it is known."""
        text, key, found = self.order.before(tokens, end, LONGEST), 0, None
        for order, token in enumerate(reversed(text), 1):
            if not token:
                break
            key = extended(key, token)
            contexts, best, shares, counts = self._orders[order - 1]
            kept = np.uint32(key >> KEPT_SHIFT)
            at = int(contexts.searchsorted(kept))
            if at < len(contexts) and contexts[at] == kept:
                count = 2.0 ** (int(counts[at]) / _COUNT_STEPS)
                found = Following(int(best[at]), order, int(shares[at]) / 255, count)
        return found

    def raise_logits(self, logits: Tensor, found: Mapping[int, Following]) -> None:
        """Raise, in rows of `logits` [R, V] float32, the tokens that the table proposes for them.

        A token has then the probability (1 - g) p + g, where p is the network's own and g the gate's; what the network
        says of the others to each other stays.
        """
        if not found:
            return
        rows = torch.tensor(list(found), device=logits.device)
        tokens = torch.tensor([each.token for each in found.values()], device=logits.device)
        picked = logits[rows]
        whole = picked.logsumexp(dim=-1)
        best = picked.max(dim=-1)
        own = (picked.gather(-1, tokens[:, None])[:, 0] - whole).tolist()
        highest, same = (best.values - whole).tolist(), (best.indices == tokens).tolist()
        raised = []
        for each, mine, top, agrees in zip(found.values(), own, highest, same, strict=True):
            weighed = math.fsum(w * x for w, x in zip(self.gate, features(each, mine, top, same=agrees), strict=True))
            gate = 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, weighed))))
            before = min(max(math.exp(mine), _TINY), 1.0 - _TINY)
            behind = min((1.0 - gate) * before + gate, 1.0 - _TINY)
            raised.append(math.log(behind / (1.0 - behind)) - math.log(before / (1.0 - before)))
        logits[rows, tokens] += torch.tensor(raised, dtype=logits.dtype, device=logits.device)
