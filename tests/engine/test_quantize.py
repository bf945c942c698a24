"""Weights in eight bits against the same product in plain steps."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.families.published import llada2 as published
from torch import nn

from calomel.engine import BlockCausal, DiffusionConfig, Engine, ModelConfig, Request, Transformer
from calomel.engine.config import MoeConfig
from calomel.engine.transformer import (
    Experts,
    QuantizedLinear,
    QuantizedStack,
    multiply,
    quantize_tensor,
    rounded,
    widened,
)
from calomel.families.block_causal import LLADA2, llada2_places
from calomel.families.configuration import read_config
from calomel.families.family import OpenOptions
from calomel.families.loading import load_decoder
from calomel.families.plan import plan_of


def quantize(model: Transformer, bits: int = 8) -> Transformer:
    for name in list(model.state_dict()):
        quantize_tensor(model, name, bits)
    return model


MOE = MoeConfig(experts=6, chosen=2, intermediate_size=10, shared=1)
CONFIG = ModelConfig(
    vocab_size=67,
    hidden_size=24,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    max_position_embeddings=256,
    diffusion=DiffusionConfig(65, 66, verifiable=False),
    attention_bias=True,
    moe=MOE,
)


def model(config: ModelConfig = CONFIG) -> Transformer:
    torch.manual_seed(0)
    made = Transformer(config)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.3)
    return made.requires_grad_(requires_grad=False)


def test_a_row_is_rounded_to_its_own_scale() -> None:
    x = torch.randn(5, 33) * torch.tensor([1e-3, 1.0, 7.0, 1e4, 0.0])[:, None]

    small, scale = rounded(x)

    largest = x.abs().amax(dim=-1, keepdim=True)
    assert small.dtype == torch.int8
    assert ((small.float() * scale - x).abs() <= largest / 127 / 2 + 1e-9).all()
    torch.testing.assert_close((small.float() * scale).abs().amax(dim=-1, keepdim=True), largest)


def test_the_product_is_that_of_the_rounded_numbers() -> None:
    whole = nn.Linear(37, 29)
    x = torch.randn(3, 4, 37)
    made = QuantizedLinear(whole)

    small, by_row = rounded(x)
    weight = made.weight.float() * made.scale
    expected = (small.float() * by_row) @ weight.T + whole.bias

    torch.testing.assert_close(made(x), expected, atol=1e-5, rtol=1e-5)


def test_a_tokens_result_does_not_depend_on_those_beside_it() -> None:
    weight, scale = rounded(torch.randn(40, 64))
    x = torch.randn(9, 64)

    together = multiply(x, weight, scale)

    for row in range(9):
        assert torch.equal(multiply(x[row : row + 1], weight, scale)[0], together[row])


def test_experts_are_rounded_as_each_would_be_alone() -> None:
    torch.manual_seed(2)
    whole = Experts(MOE, 24)
    expected = [QuantizedLinear(_expert(whole, expert)) for expert in range(MOE.experts)]
    stack = QuantizedStack(whole.gate_up_proj)
    x = torch.randn(4, 24)

    for expert in range(MOE.experts):
        assert torch.equal(stack.part(expert, x), expected[expert](x))


def _expert(whole: Experts, expert: int) -> nn.Linear:
    made = nn.Linear(24, 20, bias=False)
    with torch.no_grad():
        made.weight.copy_(whole.gate_up_proj.weight[expert * 20 : (expert + 1) * 20])
    return made


def test_four_bits_are_rounded_in_groups_and_multiplied_as_the_rounded_numbers() -> None:
    whole = nn.Linear(192, 29)
    with torch.no_grad():
        whole.weight[:, :64] *= 100  # a group of its own: the others keep their small steps
    x = torch.randn(3, 4, 192)
    made = QuantizedLinear(whole, bits=4)

    weight = widened(made.weight, made.scale, torch.float32)
    largest = whole.weight.view(29, 3, 64).abs().amax(dim=-1, keepdim=True)

    assert made.weight.nbytes == whole.weight.nbytes // 8
    assert ((weight - whole.weight).view(29, 3, 64).abs() <= largest / 7 / 2 + 1e-6).all()
    torch.testing.assert_close(made(x), x @ weight.T + whole.bias, atol=1e-5, rtol=1e-5)


def test_embeddings_the_head_norms_and_routers_stay_whole() -> None:
    made = quantize(model())

    small = {name for name, tensor in made.named_parameters() if tensor.element_size() == 1}

    assert {name.split(".", 2)[2] for name in small} == {
        "self_attn.qkv_proj.weight",
        "self_attn.o_proj.weight",
        "mlp.experts.gate_up_proj.weight",
        "mlp.experts.down_proj.weight",
        "mlp.shared_experts.gate_up_proj.weight",
        "mlp.shared_experts.down_proj.weight",
    }
    assert made.embed_tokens.weight.dtype == torch.float32


@pytest.mark.parametrize("bits", [8, 4])
def test_a_request_is_answered_with_rounded_weights(bits: int) -> None:
    request = Request(tuple(range(2, 40)), max_new_tokens=8, canvas_lengths=(8,))

    with Engine(BlockCausal(quantize(model(), bits), cache_tokens=256)) as engine:
        first, second = engine.submit(request).result(), engine.submit(request).result()

    assert first.ids == second.ids


def test_weights_that_are_rounded_while_they_load_are_those_rounded_behind(tmp_path: Path) -> None:
    published.write(tmp_path)
    config = LLADA2.config(read_config(tmp_path), tmp_path)
    assert isinstance(config, ModelConfig)

    loaded = load_decoder(tmp_path, config, llada2_places(config), dtype=torch.float32, quantize="int8")
    expected = quantize(load_decoder(tmp_path, config, llada2_places(config), dtype=torch.float32))

    for name, tensor in expected.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


def test_the_memory_of_rounded_weights_is_what_was_estimated(tmp_path: Path) -> None:
    published.write(tmp_path)
    config = LLADA2.config(read_config(tmp_path), tmp_path)
    assert isinstance(config, ModelConfig)

    made = load_decoder(tmp_path, config, llada2_places(config), dtype=torch.float32, quantize="int8")
    held = sum(tensor.nbytes for tensor in made.parameters())

    options = OpenOptions(dtype="float32", quantize="int8")
    # A scale of four bytes a row is much for rows of 48.
    assert held == pytest.approx(plan_of(tmp_path, options).estimate.weights, rel=0.1)
