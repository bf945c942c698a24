"""How the rows of a batch attend, the loss of those that are scored, and what the engine computes at a hole."""

from __future__ import annotations

import random
import warnings
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from calomel.engine.attention import Piece, forward, text_of
from calomel.engine.cache import KeyValueBuffer
from calomel.engine.transformer import Attend, Transformer
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.batch import Batch, batches
from calomel.training.branch import head_rows, rows
from calomel.training.config import TrainConfig
from calomel.training.documents import DocumentSampler, read_documents
from calomel.training.examples import ExampleMaker
from calomel.training.loss import FlexTreeAttention, LossModel, TreeAttention, branch_structure, flex_masks


def a_batch(config: TrainConfig, tokenizer: Tokenizer) -> Batch:
    sampler = DocumentSampler(read_documents(config.corpus), {})
    return next(batches(sampler, ExampleMaker(tokenizer, config), config, random.Random(4)))


def a_model(config: TrainConfig, tokenizer: Tokenizer) -> Transformer:
    torch.manual_seed(2)
    return Transformer(config.model.model_config(tokenizer))


def trained(model: Transformer, batch: Batch, attend: Attend | None = None) -> Tensor:
    """What training reads of every row [B * T, D], under the dense mask if no other is given."""
    structure = branch_structure(batch.shape, logit_shift=model.config.diffusion.logit_shift)
    dense = TreeAttention(model.config, batch.shape, batch.positions, batch.limit, batch.valid, structure)
    found: Tensor = model(batch.ids.flatten(), batch.positions.flatten(), attend or dense, batch.text.flatten(0, 1))
    return found


@pytest.mark.parametrize("memory", [0, 64])
@pytest.mark.parametrize("shift", [False, True])
def test_the_engine_gives_the_logits_that_training_gave_of_answers_and_of_both_canvases(
    config: TrainConfig, tokenizer: Tokenizer, *, shift: bool, memory: int
) -> None:
    """So no row of training sees what the engine does not have: a canvas sees no clean answer and no other canvas."""
    config = replace(config, gap_share=0.0, model=replace(config.model, logit_shift=shift, memory_entries=memory))
    model, batch = a_model(config, tokenizer), a_batch(config, tokenizer)
    shape, tables, device = batch.shape, model.config.memory, torch.device("cpu")
    with torch.no_grad():
        expected = model.logits(trained(model, batch)).unflatten(0, (2, -1))[0]

    def rows_of(first: int, count: int) -> Tensor:
        found = torch.arange(first, first + count)
        return found[batch.valid[0, found]]

    def read(piece: Piece, tokens: list[int]) -> Piece:
        return piece if tables is None else replace(piece, text=text_of(piece, tokens, tables, device))

    for hole in range(shape.holes):
        start = shape.front + hole * rows(shape)
        answer = start + head_rows(shape)
        asked = torch.cat((torch.arange(int(batch.limit[0, start])), rows_of(start, head_rows(shape))))
        context = batch.ids[0, asked].tolist()
        known = len(context) - shift  # with shifted logits the canvas begins with the last token of the context
        buffer = KeyValueBuffer(model.config, len(context) + shape.canvas, dtype=torch.float32, device=device)
        with torch.inference_mode():
            for first, last in pairwise((0, known // 2, known)):  # in two chunks, as a long prompt is
                forward(model, [read(Piece(context[first:last], buffer, first, causal=True), context)])
                buffer.length = last
            for begin in (answer + shape.canvas, answer + 2 * shape.canvas):
                canvas = rows_of(begin, shape.canvas)
                ids = batch.ids[0, canvas].tolist()
                live = forward(model, [read(Piece(ids, buffer, known, causal=False, read=range(len(ids))), context)])
                torch.testing.assert_close(live, expected[canvas], atol=1e-4, rtol=1e-4)
            causal = torch.cat((asked, rows_of(answer, shape.canvas)))
            ids = batch.ids[0, causal].tolist()
            live = forward(model, [read(Piece(ids, None, 0, causal=True, read=range(len(ids))), ids)])
            torch.testing.assert_close(live, expected[causal], atol=1e-4, rtol=1e-4)


def test_the_block_sparse_mask_of_gpus_gives_what_the_dense_one_gives(
    config: TrainConfig, tokenizer: Tokenizer
) -> None:
    config = replace(config, gap_share=1.0)
    model, batch = a_model(config, tokenizer), a_batch(config, tokenizer)
    structure = branch_structure(batch.shape, logit_shift=False)
    masks = flex_masks(model.config, batch.shape, batch.positions, batch.limit, batch.valid, structure)

    with torch.no_grad(), warnings.catch_warnings():
        # Uncompiled it materialises the scores, which is all that this comparison needs.
        warnings.simplefilter("ignore")
        sparse = trained(model, batch, FlexTreeAttention(model.config, batch.shape.documents, masks))

    valid = batch.valid.flatten()
    torch.testing.assert_close(sparse[valid], trained(model, batch)[valid], atol=1e-5, rtol=1e-4)


@pytest.fixture
def model(config: TrainConfig, tokenizer: Tokenizer) -> Transformer:
    return a_model(replace(config, model=replace(config.model, memory_entries=64)), tokenizer)


@pytest.fixture
def batch(config: TrainConfig, tokenizer: Tokenizer) -> Batch:
    return a_batch(config, tokenizer)


def gradients(model: Transformer) -> dict[str, Tensor]:
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    return {name: gradient for name, gradient in found.items() if gradient is not None}


def test_loss_and_gradients_are_those_of_the_whole_softmax(model: Transformer, batch: Batch) -> None:
    structure = branch_structure(batch.shape, logit_shift=False)
    logits = model.logits(trained(model, batch)[batch.scored])
    expected = F.cross_entropy(logits, batch.targets, reduction="none")
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
