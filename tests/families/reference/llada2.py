"""LLaDA2 as its published configuration and code describe it, in plain steps: one token and one expert at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from tests.families.reference.dense import block_causal_mask
from torch import Tensor


class Llada2:
    """A forward over whole sequences with the tensors `weights`, in float32."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
        self.config = config
        self.weights = weights

    def logits(self, ids: Sequence[int], block: int = 32) -> Tensor:
        """[T, V] under a block-causal mask."""
        x = self.weights["model.word_embeddings.weight"][torch.tensor(ids)]
        mask = block_causal_mask(len(ids), block)
        for layer in range(self.config["num_hidden_layers"]):
            name = f"model.layers.{layer}"
            x = x + self._attention(f"{name}.attention", self._norm(f"{name}.input_layernorm", x), mask)
            inner = self._norm(f"{name}.post_attention_layernorm", x)
            dense = layer < self.config["first_k_dense_replace"]
            x = x + torch.stack(
                [self._mlp(f"{name}.mlp", row) if dense else self._moe(f"{name}.mlp", row) for row in inner]
            )
        logits: Tensor = self._norm("model.norm", x) @ self.weights["lm_head.weight"].T
        return logits

    def _norm(self, name: str, x: Tensor) -> Tensor:
        scale: Tensor = (x.pow(2).mean(dim=-1, keepdim=True) + float(self.config["rms_norm_eps"])).rsqrt()
        return x * scale * self.weights[f"{name}.weight"]

    def _attention(self, name: str, x: Tensor, mask: Tensor) -> Tensor:
        heads, key_heads, width = (
            self.config[key] for key in ("num_attention_heads", "num_key_value_heads", "head_dim")
        )
        both = (x @ self.weights[f"{name}.query_key_value.weight"].T).view(len(x), heads + 2 * key_heads, width)
        q = self._turn(self._norm(f"{name}.query_layernorm", both[:, :heads]))
        k = self._turn(self._norm(f"{name}.key_layernorm", both[:, heads : heads + key_heads]))
        v = both[:, heads + key_heads :]
        outs = []
        for head in range(heads):
            group = head // (heads // key_heads)
            scores = (q[:, head] @ k[:, group].T) / math.sqrt(width)
            outs.append(scores.masked_fill(~mask, -torch.inf).softmax(dim=-1) @ v[:, group])
        return torch.cat(outs, dim=-1) @ self.weights[f"{name}.dense.weight"].T

    def _turn(self, x: Tensor) -> Tensor:
        """RoPE on the first half of each head's dimensions (`partial_rotary_factor` 0.5), of x [T, H, D]."""
        turning = int(self.config["head_dim"] * self.config["partial_rotary_factor"])
        out = x.clone()
        for position in range(len(x)):
            for pair in range(turning // 2):
                angle = position * self.config["rope_theta"] ** (-2 * pair / turning)
                a, b = x[position, :, pair], x[position, :, pair + turning // 2]
                out[position, :, pair] = a * math.cos(angle) - b * math.sin(angle)
                out[position, :, pair + turning // 2] = b * math.cos(angle) + a * math.sin(angle)
        return out

    def _mlp(self, name: str, x: Tensor) -> Tensor:
        gate, up = (self.weights[f"{name}.{part}_proj.weight"] @ x for part in ("gate", "up"))
        return self.weights[f"{name}.down_proj.weight"] @ (gate / (1 + (-gate).exp()) * up)

    def _moe(self, name: str, x: Tensor) -> Tensor:
        scores = 1 / (1 + (-(self.weights[f"{name}.gate.weight"] @ x)).exp())
        choosing = (scores + self.weights[f"{name}.gate.expert_bias"]).tolist()
        size = self.config["num_experts"] // self.config["n_group"]
        best = {
            group: sum(sorted(choosing[group * size : (group + 1) * size])[-2:])
            for group in range(self.config["n_group"])
        }
        groups = sorted(best, key=lambda group: -best[group])[: self.config["topk_group"]]
        experts = sorted(
            (expert for expert in range(len(choosing)) if expert // size in groups),
            key=lambda expert: -choosing[expert],
        )[: self.config["num_experts_per_tok"]]
        total = sum(float(scores[expert]) for expert in experts)
        out = self._mlp(f"{name}.shared_experts", x)
        for expert in experts:
            weight = float(scores[expert]) / total * self.config["routed_scaling_factor"]
            out = out + weight * self._mlp(f"{name}.experts.{expert}", x)
        return out


@dataclass
class Decoded:
    """What a published loop did: the answer (from the end token on cut off), and what it and its block were by step."""

    answer: list[int] = field(default_factory=list)
    states: list[list[int]] = field(default_factory=list)


def decode(
    logits_of: Callable[[Sequence[int]], Tensor],
    prompt: Sequence[int],
    *,
    mask: int,
    end: int,
    length: int,
    threshold: float,
    edit: float | None = None,
    after: int = 16,
    block: int = 32,
) -> Decoded:
    """The published `generate` at temperature 0: threshold (2.0), and with `edit` the joint threshold (2.1).

    `logits_of` forwards a whole sequence under the block-causal mask. Ours never predicts the mask token, so this does
    not either.
    """
    found = Decoded()
    tokens = list(prompt)
    while len(tokens) < len(prompt) + length:
        start = len(tokens) - len(tokens) % block
        fixed = len(tokens) - start
        current = tokens[start:] + [mask] * (block - fixed)
        whole_steps = 0
        while True:
            masked = [column for column in range(block) if current[column] == mask]
            if not masked:
                whole_steps += 1
                if edit is None or whole_steps > after:
                    break
            logits = logits_of(tokens[:start] + current)[-block:].clone()
            logits[:, mask] = -torch.inf
            probabilities = logits.softmax(dim=-1)
            best = probabilities.argmax(dim=-1).tolist()
            sure = [float(probabilities[column, best[column]]) for column in range(block)]
            chosen = [column for column in masked if sure[column] > threshold]
            if masked and not chosen:
                chosen = [max(masked, key=lambda column: sure[column])]
            edits = [
                column
                for column in range(fixed, block)
                if edit is not None and column not in masked and sure[column] > edit and best[column] != current[column]
            ]
            if not masked and not edits:
                break
            for column in chosen + edits:
                current[column] = best[column]
            found.states.append((tokens[:start] + current)[len(prompt) :])
        tokens = tokens[:start] + current
        if end in tokens[len(prompt) :]:
            found.answer = tokens[len(prompt) : tokens.index(end, len(prompt))]
            return found
    found.answer = tokens[len(prompt) :][:length]
    return found
