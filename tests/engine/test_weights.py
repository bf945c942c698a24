"""Weights in eight bits against the product in plain steps; families compare experts with their makers'."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.engine.conftest import CONFIG, random
from tests.families.published import llada2 as published
from torch import nn

from calomel.engine import BlockCausal, Engine, ModelConfig, Request, Transformer, transformer
from calomel.engine.checkpoint import native_bfloat16
from calomel.engine.config import MoeConfig
from calomel.engine.transformer import (
    Experts,
    Mixture,
    Mlp,
    PackedLinear,
    QuantizedLinear,
    QuantizedStack,
    multiply,
    pack,
    quantize_tensor,
    rounded,
)
from calomel.families.block_causal import LLADA2, llada2_places
from calomel.families.configuration import read_config
from calomel.families.family import OpenOptions
from calomel.families.loading import load_decoder
from calomel.families.plan import plan_of

QWEN = MoeConfig(experts=6, chosen=2, intermediate_size=16)
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


def mixture(config: MoeConfig) -> Mixture:
    shared = Mlp(32, config.shared * config.intermediate_size) if config.shared else None
    made = random(Mixture(config, 32, shared))
    if config.bias:
        made.gate.expert_bias.data.normal_(std=0.4)
    return made


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_groups_at_once_give_what_experts_in_turn_give(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    made, x = mixture(QWEN).to(dtype), torch.randn(11, 32, dtype=dtype)
    in_turn = made(x)

    monkeypatch.setattr(Experts, "_groups_at_once", lambda *_: True)

    torch.testing.assert_close(made(x), in_turn)


def quantize(model: Transformer) -> Transformer:
    for name in list(model.state_dict()):
        quantize_tensor(model, name)
    return model


def test_a_row_is_rounded_to_its_own_scale() -> None:
    x = torch.randn(5, 33) * torch.tensor([1e-3, 1.0, 7.0, 1e4, 0.0])[:, None]

    small, scale = rounded(x)

    largest = x.abs().amax(dim=-1, keepdim=True)
    assert small.dtype == torch.int8
    assert ((small.float() * scale - x).abs() <= largest / 127 / 2 + 1e-9).all()
    torch.testing.assert_close((small.float() * scale).abs().amax(dim=-1, keepdim=True), largest)


def test_the_product_is_that_of_the_rounded_numbers() -> None:
    whole, x = nn.Linear(37, 29), torch.randn(3, 4, 37)
    made = QuantizedLinear(whole)

    small, by_row = rounded(x)
    expected = (small.float() * by_row) @ (made.weight.float() * made.scale).T + whole.bias

    torch.testing.assert_close(made(x), expected, atol=1e-5, rtol=1e-5)


def test_a_tokens_result_does_not_depend_on_those_beside_it() -> None:
    weight, scale = rounded(torch.randn(40, 64))
    x = torch.randn(9, 64)

    alone = torch.cat([multiply(x[row : row + 1], weight, scale) for row in range(9)])

    assert torch.equal(multiply(x, weight, scale), alone)


@pytest.mark.skipif(not native_bfloat16(), reason="packed only where the processor multiplies bfloat16")
def test_packed_weights_give_the_same_results_and_a_large_tied_head_is_not_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made() -> Transformer:
        return random(Transformer(replace(CONFIG, attention_bias=True))).to(torch.bfloat16)

    whole, packed, tied = made(), made(), made()
    pack(packed)
    monkeypatch.setattr(transformer, "_COPIED", 1)
    pack(tied)

    for rows in (0, 1, 9, 300):
        x = torch.randn(rows, CONFIG.hidden_size, dtype=torch.bfloat16)
        assert torch.equal(packed.logits(x), whole.logits(x))
        mlps = [model.get_submodule("layers.0.mlp") for model in (packed, whole)]
        assert torch.equal(mlps[0](x), mlps[1](x))
    assert isinstance(packed.lm_head, PackedLinear)
    assert tied.lm_head.weight is tied.embed_tokens.weight


def test_where_pytorch_can_not_pack_weights_they_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    monkeypatch.setattr(torch.ops, "mkldnn", object())
    monkeypatch.setattr("calomel.engine.decoder.native_bfloat16", lambda: True)
    model = random(Transformer(CONFIG)).to(torch.bfloat16).requires_grad_(requires_grad=False)

    assert type(BlockCausal(model).model.lm_head) is nn.Linear


def test_experts_are_rounded_as_each_would_be_alone() -> None:
    whole, x = random(Experts(QWEN, 24)).gate_up_proj, torch.randn(4, 24)
    stack = QuantizedStack(whole)

    for expert in range(QWEN.experts):
        alone = nn.Linear(24, 32, bias=False)
        alone.weight.data.copy_(whole.weight[expert * 32 : (expert + 1) * 32])
        assert torch.equal(stack.part(expert, x), QuantizedLinear(alone)(x))


def test_rounded_weights_answer_and_embeddings_the_head_norms_and_routers_stay_whole() -> None:
    made = quantize(random(Transformer(replace(CONFIG, moe=replace(QWEN, shared=1), attention_bias=True))))
    request = Request(tuple(range(2, 40)), max_new_tokens=8, canvas_length=8)

    small = {name.split(".", 2)[2] for name, tensor in made.named_parameters() if tensor.element_size() == 1}
    with Engine(BlockCausal(made, cache_tokens=256)) as engine:
        first, second = engine.submit(request).result(), engine.submit(request).result()

    assert first.ids == second.ids
    mlps = {f"mlp.{who}.{which}_proj" for who in ("experts", "shared_experts") for which in ("gate_up", "down")}
    assert small == {f"{part}.weight" for part in mlps | {"self_attn.qkv_proj", "self_attn.o_proj"}}


def test_weights_that_are_rounded_while_they_load_are_those_rounded_behind(tmp_path: Path) -> None:
    published.write(tmp_path)
    config = LLADA2.config(read_config(tmp_path), tmp_path)
    assert isinstance(config, ModelConfig)

    loaded = load_decoder(tmp_path, config, llada2_places(config), dtype=torch.float32, quantize="int8")
    expected = quantize(load_decoder(tmp_path, config, llada2_places(config), dtype=torch.float32))
    estimate = plan_of(tmp_path, OpenOptions(dtype="float32", quantize="int8")).estimate

    for name, tensor in expected.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    # A scale of four bytes a row is much for rows of 48.
    assert sum(tensor.nbytes for tensor in loaded.parameters()) == pytest.approx(estimate.weights, rel=0.1)
