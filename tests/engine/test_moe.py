"""The mixture of experts against a loop over tokens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine import CheckpointError, DiffusionConfig, ModelConfig
from calomel.engine.checkpoint import save_checkpoint
from calomel.engine.config import MoeConfig
from calomel.engine.transformer import Experts, Mixture, Mlp, Transformer, rotate, rotation
from calomel.families.loading import load_checkpoint

QWEN = MoeConfig(experts=6, chosen=2, intermediate_size=10)
LLADA = MoeConfig(
    experts=8,
    chosen=3,
    intermediate_size=10,
    score="sigmoid",
    bias=True,
    groups=4,
    chosen_groups=2,
    scaling=2.5,
    shared=2,
    dense=(0,),
)
CONFIG = ModelConfig(
    vocab_size=67,
    hidden_size=24,
    intermediate_size=40,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    max_position_embeddings=128,
    diffusion=DiffusionConfig(65, 66, verifiable=False),
)


def mixture(config: MoeConfig, size: int = 24) -> Mixture:
    torch.manual_seed(1)
    shared = Mlp(size, config.shared * config.intermediate_size) if config.shared else None
    made = Mixture(config, size, shared)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.4)
    return made


def one_token(made: Mixture, config: MoeConfig, x: Tensor) -> Tensor:
    """What `made` makes of x [C], in plain steps."""
    logits = [float(made.gate.weight[expert] @ x) for expert in range(config.experts)]
    scores = (
        torch.tensor(logits).softmax(0).tolist()
        if config.score == "softmax"
        else [1 / (1 + torch.exp(torch.tensor(-logit)).item()) for logit in logits]
    )
    choosing = [score + (float(made.gate.expert_bias[i]) if config.bias else 0) for i, score in enumerate(scores)]
    size = config.experts // config.groups
    groups = sorted(
        range(config.groups), key=lambda g: -sum(sorted(choosing[g * size : (g + 1) * size], reverse=True)[:2])
    )[: config.chosen_groups]
    allowed = [expert for expert in range(config.experts) if expert // size in groups]
    chosen = sorted(allowed, key=lambda expert: -choosing[expert])[: config.chosen]
    total = sum(scores[expert] for expert in chosen) if config.normalised else 1.0
    out = torch.zeros_like(x)
    for expert in chosen:
        width = config.intermediate_size
        both = made.experts.gate_up_proj.weight[expert * 2 * width : (expert + 1) * 2 * width] @ x
        down = made.experts.down_proj.weight[expert * len(x) : (expert + 1) * len(x)]
        out = out + (down @ (F.silu(both[:width]) * both[width:])) * (scores[expert] / total * config.scaling)
    return out if made.shared_experts is None else out + made.shared_experts(x)


@pytest.mark.parametrize("config", [QWEN, LLADA, replace(QWEN, normalised=False), replace(LLADA, chosen=1, groups=2)])
def test_tokens_sorted_by_expert_give_what_each_gives_alone(config: MoeConfig) -> None:
    made = mixture(config)
    x = torch.randn(17, 24)
    if config.chosen == 1:  # of one expert, the published routers normalise nothing
        config = replace(config, normalised=False)

    with torch.no_grad():
        actual = made(x)
        expected = torch.stack([one_token(made, config, row) for row in x])

    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


def test_an_expert_that_nobody_chose_costs_nothing_and_changes_nothing() -> None:
    made = mixture(QWEN)
    x = torch.randn(1, 24)
    with torch.no_grad():
        chosen = made.gate(x)[0][0].tolist()
        before = made(x)
        for expert in set(range(QWEN.experts)) - set(chosen):
            made.experts.down_proj.weight[expert * 24 : (expert + 1) * 24] = torch.nan
        assert torch.equal(made(x), before)


def test_a_mixture_survives_saving_and_loading(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Transformer(replace(CONFIG, moe=LLADA, rotary_dim=4, output_bias=True, attention_bias=True))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.2)

    save_checkpoint(model, tmp_path, dtype=torch.float32)
    loaded = load_checkpoint(tmp_path)

    assert loaded.config == model.config
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


def test_the_configuration_of_an_ordinary_decoder_does_not_mention_experts() -> None:
    assert not {"moe", "rotary_dim", "output_bias"} & CONFIG.to_dict().keys()
    assert ModelConfig.from_dict(CONFIG.to_dict()) == CONFIG


def test_only_the_first_dimensions_of_a_head_turn() -> None:
    x = torch.randn(5, 2, 8)
    factors = rotation(torch.rand(5, 2), x.dtype)

    turned = rotate(x, *factors)

    assert torch.equal(turned[..., 4:], x[..., 4:])
    assert torch.equal(turned[..., :4], rotate(x[..., :4], *factors))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"experts": 8, "chosen": 9}, "9 experts cannot be chosen out of 1 groups of 8"),
        ({"experts": 8, "chosen": 5, "groups": 4, "chosen_groups": 2}, "5 experts cannot be chosen"),
        ({"experts": 8, "chosen": 2, "groups": 3}, "8 experts are not 3 groups of one size"),
        ({"experts": 8, "chosen": 2, "groups": 2, "chosen_groups": 3}, "3 of 2 groups"),
        ({"experts": 8, "chosen": 2, "score": "relu"}, "softmax or sigmoid"),
    ],
)
def test_a_mixture_that_cannot_be_is_refused(wrong: dict[str, int | str], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        MoeConfig(**{"intermediate_size": 4, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_groups_at_once_give_what_experts_in_turn_give(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    made = mixture(replace(QWEN, intermediate_size=16), size=32).to(dtype)
    x = torch.randn(11, 32, dtype=dtype)
    with torch.no_grad():
        in_turn = made(x)
        monkeypatch.setattr(Experts, "_groups_at_once", lambda *_: True)
        at_once = made(x)

    torch.testing.assert_close(at_once, in_turn)
