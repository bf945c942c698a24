"""The loss of a batch, over all tokens and over a sample of them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.transformer import Transformer
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.attention import TreeAttention, branch_structure
from calomel.training.batch import Batch, batches
from calomel.training.config import TrainConfig
from calomel.training.documents import DocumentSampler, read_documents
from calomel.training.example import ExampleMaker
from calomel.training.loss import LossModel


@pytest.fixture
def batch(config: TrainConfig, tokenizer: Tokenizer) -> Batch:
    sampler = DocumentSampler(read_documents(config.corpus), {})
    return next(batches(sampler, ExampleMaker(tokenizer, config), config, random.Random(4)))


@pytest.fixture
def model(config: TrainConfig, tokenizer: Tokenizer) -> Transformer:
    torch.manual_seed(2)
    tables = replace(config.model, memory_entries=64).memory(tokenizer)
    return Transformer(
        config.model.model_config(mask_token_id=tokenizer.mask, end_token_id=tokenizer.end, memory=tables)
    )


def plain(model: Transformer, batch: Batch, structure: Tensor) -> Tensor:
    """The cross-entropy of the scored rows by PyTorch's own function."""
    attend = TreeAttention(model.config, batch.shape, batch.positions, batch.limit, batch.valid, structure)
    hidden = model(batch.ids.flatten(), batch.positions.flatten(), attend, batch.text.flatten(0, 1))
    return F.cross_entropy(model.logits(hidden[batch.scored]), batch.targets, reduction="none")


def gradients(model: Transformer) -> dict[str, Tensor]:
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    return {name: gradient for name, gradient in found.items() if gradient is not None}


def test_loss_and_gradients_are_those_of_the_whole_softmax(model: Transformer, batch: Batch) -> None:
    structure = branch_structure(batch.shape, logit_shift=False)
    expected = plain(model, batch, structure)
    (expected * batch.weights).sum().backward()
    wanted = gradients(model)

    loss, nats = LossModel(model)(batch, structure)
    (3 * loss).backward()

    torch.testing.assert_close(nats, expected.detach())
    torch.testing.assert_close(loss, (expected * batch.weights).sum())
    found = gradients(model)
    assert found.keys() == wanted.keys()
    assert "memory.tables.weight" in found
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, 3 * wanted[name], atol=1e-5, rtol=1e-4)


def test_a_sample_of_all_other_tokens_is_the_whole_softmax(model: Transformer, batch: Batch) -> None:
    structure = branch_structure(batch.shape, logit_shift=False)
    loss_model = LossModel(model, negatives=model.config.vocab_size)
    torch.testing.assert_close(loss_model(batch, structure)[1], loss_model.measure(batch, structure))


def test_samples_of_other_tokens_are_right_on_average(model: Transformer, batch: Batch) -> None:
    structure = branch_structure(batch.shape, logit_shift=False)
    model.lm_head.weight.data *= 0.05  # as calm as a model is that has learned something
    loss_model = LossModel(model, negatives=40)
    whole = float(loss_model.measure(batch, structure).mean())
    few = [float(loss_model(batch, structure)[1].mean()) for _ in range(50)]
    assert sum(few) / len(few) == pytest.approx(whole, rel=0.01)
    assert max(few) != min(few)
