"""One step of training: the loss and its gradients, the update of the weights, and that neither waits for a result."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from calomel.engine.transformer import Transformer
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.attention import branch_structure, causal
from calomel.training.batch import Batch, batches
from calomel.training.branch import head_rows, rows
from calomel.training.config import Losses, Optimization, TrainConfig
from calomel.training.examples import ExampleMaker
from calomel.training.loss import LossModel
from calomel.training.optimizer import Optimizer, orthogonalise
from calomel.training.rendered import TEXT, DocumentSampler, Shard


def a_batch(config: TrainConfig, tokenizer: Tokenizer, seed: int = 4) -> Batch:
    sampler = DocumentSampler(Shard(config.data / TEXT, tokenizer), {})
    return next(batches(sampler, ExampleMaker(tokenizer, config), config, random.Random(seed)))


def a_model(config: TrainConfig, tokenizer: Tokenizer) -> Transformer:
    torch.manual_seed(2)
    return Transformer(config.model.model_config(tokenizer))


@pytest.fixture(params=[False, True], ids=["plain", "shifted"])
def config(config: TrainConfig, request: pytest.FixtureRequest) -> TrainConfig:
    return replace(config, gap_share=0.5, model=replace(config.model, logit_shift=request.param))


@pytest.fixture
def model(config: TrainConfig, tokenizer: Tokenizer) -> Transformer:
    return a_model(config, tokenizer)


@pytest.fixture
def batch(config: TrainConfig, tokenizer: Tokenizer) -> Batch:
    return a_batch(config, tokenizer)


@pytest.fixture
def structure(config: TrainConfig, batch: Batch) -> Tensor:
    return branch_structure(batch.shape, logit_shift=config.model.logit_shift)


def gradients(model: Transformer) -> dict[str, Tensor]:
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    return {name: gradient for name, gradient in found.items() if gradient is not None}


def reference(model: Transformer, batch: Batch) -> Tensor:
    """The cross-entropy of the scored rows: every document by itself, every pair of rows judged by itself."""
    config, shape, total = model.config, batch.shape, batch.ids.shape[1]
    begin, size = head_rows(shape), shape.canvas
    hidden = []
    for document in range(shape.documents):
        limit, valid = batch.limit[document].tolist(), batch.valid[document].tolist()
        positions = batch.positions[document].tolist()

        def sees(q: int, k: int, window: int | None, *, at: Any = (limit, valid, positions)) -> bool:
            limit, valid, positions = at
            if k < shape.front:
                place = q if q < shape.front else limit[q] - 1 + positions[q] - positions[limit[q] - 1]
                return valid[k] and k < limit[q] and (window is None or place - k < window)
            branch, row = divmod(k - shape.front, rows(shape))
            asking, own = divmod(q - shape.front, rows(shape))
            if not valid[k] or q < shape.front or asking != branch:
                return False
            if row < begin:  # the head: its last row is the mark that a shifted canvas has itself
                seen = own >= begin or row <= own
                return seen and not (config.diffusion.logit_shift and row == begin - 1 and own >= begin + size)
            part, other = (row - begin) // size, (own - begin) // size
            return own >= begin and part == other and (part > 0 or row <= own)

        windows = {config.window(layer) for layer in range(config.num_hidden_layers)}
        masks = {
            window: torch.tensor([[sees(q, k, window) for k in range(total)] for q in range(total)])
            for window in windows
        }

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor, masks: Any = masks) -> Tensor:
            group = config.num_attention_heads // config.num_key_value_heads
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
            scores = torch.einsum("qhd,khd->hqk", q, k) * config.head_dim**-0.5
            weights = scores.masked_fill(~masks[config.window(layer)], -1e9).softmax(-1)
            return torch.einsum("hqk,khd->qhd", weights, v)

        hidden.append(model(batch.ids[document], batch.positions[document], attend))
    logits = model.logits(torch.cat(hidden)[batch.scored])
    return F.cross_entropy(logits, batch.targets, reduction="none")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_loss_and_gradients_are_those_of_dense_attention_and_the_whole_softmax(
    model: Transformer, batch: Batch, structure: Tensor, *, compiled: bool
) -> None:
    expected = reference(model, batch)
    (expected * batch.weights).sum().backward()
    wanted = gradients(model)

    loss, nats = LossModel(model, compiled=compiled)(batch, structure)
    (3 * loss).backward()

    scored = batch.weights > 0
    torch.testing.assert_close(nats[scored], expected.detach()[scored], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(loss, (expected * batch.weights).sum(), atol=1e-5, rtol=1e-5)
    found = gradients(model)
    assert found.keys() == wanted.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, 3 * wanted[name], atol=1e-5, rtol=1e-4)


def sampling(config: TrainConfig, tokenizer: Tokenizer, classes: int, seed: int = 4) -> Batch:
    return a_batch(replace(config, losses=Losses(classes=classes)), tokenizer, seed)


def test_a_sample_of_nearly_all_tokens_is_nearly_the_whole_softmax(
    config: TrainConfig, model: Transformer, tokenizer: Tokenizer, structure: Tensor
) -> None:
    batch = sampling(config, tokenizer, model.config.vocab_size - 1)
    loss_model = LossModel(model)
    scored = batch.weights > 0
    found, whole = loss_model(batch, structure)[1], loss_model.measure(batch, structure)
    torch.testing.assert_close(found[scored], whole[scored], atol=0.05, rtol=0.01)


def test_samples_of_other_tokens_are_right_on_average(
    config: TrainConfig, model: Transformer, tokenizer: Tokenizer, structure: Tensor
) -> None:
    model.lm_head.weight.data *= 0.05  # as calm as a model is that has learned something
    loss_model = LossModel(model)
    pairs = []
    for seed in range(30):
        batch = sampling(config, tokenizer, 240, seed)
        pairs.append(
            [float(each.mean()) for each in (loss_model(batch, structure)[1], loss_model.measure(batch, structure))]
        )
    few, whole = (sum(each) / len(each) for each in zip(*pairs, strict=True))
    assert few == pytest.approx(whole, rel=0.01)
    assert any(one != other for one, other in pairs)


def test_rows_whose_token_finds_no_room_are_not_scored(config: TrainConfig, tokenizer: Tokenizer) -> None:
    whole, few = (sampling(config, tokenizer, classes) for classes in (0, 30))

    kept = few.weights > 0
    assert 0 < int(kept.sum()) < int((whole.weights > 0).sum())
    assert torch.equal(few.tokens.long()[few.targets[kept]], whole.targets[kept])
    assert bool((few.groups[~kept] == -1).all())


OPTIONS = Optimization(muon_lr=0.05, adam_lr=0.01, weight_decay=0.1, max_grad_norm=0.5, average=0.9)


def updated(model: Transformer, slopes: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The weights after an update by each of the `slopes`, a matrix at a time."""
    weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    others = {name: weight for name, weight in weights.items() if "_proj." not in name}
    adam = torch.optim.AdamW(others.values(), lr=OPTIONS.adam_lr, betas=(0.9, 0.95), weight_decay=0.0, eps=1e-10)
    momenta = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    for gradient in slopes:
        norm = torch.stack([each.norm() for each in gradient.values()]).norm()
        factor = min(1.0, float(OPTIONS.max_grad_norm / (norm + 1e-6)))
        for name, weight in weights.items():
            slope = gradient[name] * factor
            weight.grad = slope
            if name in others:
                continue
            momenta[name].lerp_(slope, 0.05)
            change = slope.lerp(momenta[name], 0.95)
            parts = [len(change)]
            if "qkv" in name:
                heads, width = model.config.num_attention_heads, model.config.head_dim
                keys = model.config.num_key_value_heads * width
                parts = [heads * width, keys, keys]
            elif "gate_up" in name:
                parts = [len(change) // 2] * 2
            turned = torch.cat([orthogonalise(part[None])[0] for part in change.split(parts)])
            weight.mul_(1 - OPTIONS.muon_lr * OPTIONS.weight_decay).sub_(turned, alpha=OPTIONS.muon_lr)
        adam.step()
    return weights


def test_an_update_is_that_of_muon_and_adam_by_the_matrix(model: Transformer) -> None:
    torch.manual_seed(5)
    slopes = [{name: torch.randn_like(parameter) for name, parameter in model.named_parameters()} for _ in range(3)]
    expected = updated(model, slopes)
    optimizer = Optimizer(model, OPTIONS)

    for each in slopes:
        for name, parameter in model.named_parameters():
            parameter.grad = each[name].clone()
        optimizer.step(1.0)

    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.detach(), expected[name], atol=2e-3, rtol=1e-2)
        if "_proj." not in name:
            torch.testing.assert_close(parameter.detach(), expected[name], atol=1e-5, rtol=1e-4)


def test_masters_keep_what_the_precision_of_the_weights_loses(model: Transformer) -> None:
    model.norm.weight.data.fill_(1.0)
    optimizer = Optimizer(model, replace(OPTIONS, adam_lr=1e-3), torch.bfloat16)

    for _ in range(12):
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step(1.0)

    assert model.norm.weight.dtype == torch.bfloat16
    torch.testing.assert_close(float(model.norm.weight[0].detach()), 0.988, atol=0.003, rtol=0)


class Waits(TorchDispatchMode):
    """Raises where an operation's result, or the size of its result, would have to be known on the host."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        by_truth = name in {"index", "index_put", "index_put_"} and any(
            each is not None and each.dtype in {torch.bool, torch.uint8} for each in args[1]
        )
        if by_truth or name in {"_local_scalar_dense", "nonzero", "masked_select", "item", "unique", "_unique2"}:
            raise AssertionError(f"{func} waits for the device")
        return func(*args, **(kwargs or {}))


@pytest.fixture
def step(model: Transformer, structure: Tensor) -> Callable[[Batch], None]:
    loss, optimizer = LossModel(model), Optimizer(model, OPTIONS)

    def once(batch: Batch) -> None:
        loss(batch, structure)[0].backward()
        optimizer.step(0.5)

    return once


def test_a_step_waits_for_nothing(config: TrainConfig, tokenizer: Tokenizer, step: Callable[[Batch], None]) -> None:
    batch = sampling(config, tokenizer, 240)
    with Waits():  # type: ignore[no-untyped-call]
        step(batch)
    with pytest.raises(AssertionError, match="waits"), Waits():  # type: ignore[no-untyped-call]
        batch.ids.max().item()


def test_a_step_is_recorded_without_its_numbers(batch: Batch, structure: Tensor, model: Transformer) -> None:
    loss, optimizer = LossModel(model), Optimizer(model, OPTIONS)

    def gradient(numbers: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad(loss(replace(batch, numbers=numbers), structure)[0], list(model.parameters())))

    traced = make_fx(gradient, tracing_mode="fake", _allow_non_fake_inputs=True)(batch.numbers)
    updates = make_fx(lambda _: optimizer.update(), tracing_mode="fake", _allow_non_fake_inputs=True)(batch.numbers)

    for one, other in zip(traced(batch.numbers), gradient(batch.numbers), strict=True):
        torch.testing.assert_close(one, other)
    assert len(updates.graph.nodes) < 400


def test_flash_attention_gets_what_it_takes() -> None:
    """No GPU is needed to see whether the operation and its gradient have the shapes that they should have."""
    q, k, v = (torch.empty(2, 64, heads, 64, device="meta", requires_grad=True) for heads in (9, 3, 3))
    for window in (None, 16):
        out = causal(q, k, v, window, flash=True)
        assert out.shape == q.shape
        found = torch.autograd.grad(out.sum(), (q, k, v))
        assert [each.shape for each in found] == [q.shape, k.shape, v.shape]


@pytest.mark.parametrize("window", [None, 16, 64])
def test_a_front_sees_what_is_before_and_near(window: int | None) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 64, 1, 8) for _ in "qkv")
    row = torch.arange(64)
    seen = (row <= row[:, None]) & (row[:, None] - row < (window or 64))
    scores = (q[0, :, 0] @ k[0, :, 0].T * 8**-0.5).masked_fill(~seen, -torch.inf)
    torch.testing.assert_close(causal(q, k, v, window, flash=False)[0, :, 0], scores.softmax(-1) @ v[0, :, 0])
