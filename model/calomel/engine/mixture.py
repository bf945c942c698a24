"""The shape of a mixture of experts: which layers have one, and how tokens are routed.

Two published routers are covered by one description. Qwen3-MoE: a softmax over all experts, the best few, normalised
(`transformers.models.qwen3_moe`). LLaDA2 (BailingMoeV2): a sigmoid, a bias that only chooses, the best groups of
experts first, the best experts of these, normalised and scaled; and experts that every token goes through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from calomel.engine.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class MoeConfig:
    """A mixture of experts in the place of an MLP.

    Attributes:
        experts: of every layer that has some.
        chosen: so many of them see a token.
        intermediate_size: width of one expert.
        score: how the router's logits become scores.
        normalised: the scores of the chosen experts are divided by their sum.
        bias: a bias per expert is added to the scores that choose; the weights are without it.
        groups: the experts are in so many groups of one size, ...
        chosen_groups: ... and a token's experts are in so many of them: those whose best two scores have the largest
            sums.
        scaling: the weights are multiplied by it.
        shared: so many experts of `intermediate_size` see every token, as one wider MLP.
        dense: layers that have an ordinary MLP instead, by number.
    """

    experts: int
    chosen: int
    intermediate_size: int
    score: Literal["softmax", "sigmoid"] = "softmax"
    normalised: bool = True
    bias: bool = False
    groups: int = 1
    chosen_groups: int = 1
    scaling: float = 1.0
    shared: int = 0
    dense: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.score not in {"softmax", "sigmoid"}:
            raise CheckpointError(f"a router's scores are softmax or sigmoid, not {self.score!r}")
        if self.groups < 1 or self.experts % self.groups:
            raise CheckpointError(f"{self.experts} experts are not {self.groups} groups of one size")
        if not 1 <= self.chosen_groups <= self.groups:
            raise CheckpointError(f"{self.chosen_groups} of {self.groups} groups cannot be chosen")
        if not 1 <= self.chosen <= self.experts // self.groups * self.chosen_groups:
            raise CheckpointError(
                f"{self.chosen} experts cannot be chosen out of {self.chosen_groups} groups of "
                f"{self.experts // self.groups}"
            )

    def to_dict(self) -> dict[str, Any]:
        """As it is in `config.json`; `from_dict` reads it back."""
        return {**asdict(self), "dense": list(self.dense)}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> MoeConfig:
        """Read what `to_dict` gave; raises TypeError for a field of the wrong type or name."""
        return cls(**{**raw, "dense": tuple(raw.get("dense", ()))})
