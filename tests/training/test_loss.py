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
from calomel.engine.transformer import Transformer
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.batch import Batch, batches
from calomel.training.branch import head_rows, rows
from calomel.training.config import TrainConfig
from calomel.training.documents import DocumentSampler, read_documents
from calomel.training.examples import ExampleMaker
from calomel.training.loss import FlexTreeAttention, LossModel, TreeAttention, branch_structure, flex_masks


@pytest.mark.parametrize("memory", [0, 64])
@pytest.mark.parametrize("shift", [False, True])
def test_the_engine_gives_the_logits_that_training_gave(
    config: TrainConfig, tokenizer: Tokenizer, *, shift: bool, memory: int
) -> None:
    config = replace(config, gap_share=0.0, model=replace(config.model, logit_shift=shift, memory_entries=memory))
    torch.manual_seed(2)
    model = Transformer(config.model.model_config(tokenizer))
    tables = model.config.memory
    maker = ExampleMaker(tokenizer, config)
    sampler = DocumentSampler(read_documents(config.corpus), {})
    batch = next(batches(sampler, maker, config, random.Random(4)))
    shape = batch.shape
    attend = TreeAttention(
        model.config,
        shape,
        batch.positions,
        batch.limit,
        batch.valid,
        branch_structure(shape, logit_shift=shift),
    )
    with torch.no_grad():
        hidden = model(batch.ids.flatten(), batch.positions.flatten(), attend, batch.text.flatten(0, 1))
    trained = model.logits(hidden).detach().unflatten(0, (2, -1))

    def read(piece: Piece, tokens: list[int]) -> Piece:
        return piece if tables is None else replace(piece, text=text_of(piece, tokens, tables, torch.device("cpu")))

    for hole in range(shape.holes):
        start = shape.front + hole * rows(shape)
        head = torch.arange(start, start + head_rows(shape))
        context = [
            *batch.ids[0, : int(batch.limit[0, start])].tolist(),
            *batch.ids[0, head[batch.valid[0, head]]].tolist(),
        ]
        canvas = torch.arange(start + head_rows(shape) + shape.canvas, start + head_rows(shape) + 2 * shape.canvas)
        canvas = canvas[batch.valid[0, canvas]]
        known = len(context) - shift  # with shifted logits the canvas begins with the last token of the context
        buffer = KeyValueBuffer(
            model.config, len(context) + shape.canvas, dtype=torch.float32, device=torch.device("cpu")
        )
        with torch.inference_mode():
            for first, last in pairwise((0, known // 2, known)):  # in two chunks, as a long prompt is
                forward(model, [read(Piece(context[first:last], buffer, first, causal=True), context)])
                buffer.length = last
            ids = batch.ids[0, canvas].tolist()
            live = forward(model, [read(Piece(ids, buffer, known, causal=False, read=range(len(ids))), context)])

        torch.testing.assert_close(live, trained[0, canvas], atol=1e-4, rtol=1e-4)


def a_batch(config: TrainConfig, tokenizer: Tokenizer) -> Batch:
    sampler = DocumentSampler(read_documents(config.corpus), {})
    return next(batches(sampler, ExampleMaker(tokenizer, config), config, random.Random(1)))


def a_model(config: TrainConfig, tokenizer: Tokenizer) -> Transformer:
    torch.manual_seed(0)
    return Transformer(config.model.model_config(tokenizer))


def tree(model: Transformer, batch: Batch) -> TreeAttention:
    structure = branch_structure(batch.shape, logit_shift=model.config.diffusion.logit_shift)
    return TreeAttention(model.config, batch.shape, batch.positions, batch.limit, batch.valid, structure)


@pytest.mark.parametrize("shift", [False, True])
def test_rows_of_a_branch_are_what_a_plain_forward_of_the_same_sequence_gives(
    config: TrainConfig, tokenizer: Tokenizer, *, shift: bool
) -> None:
    config = replace(config, model=replace(config.model, logit_shift=shift))
    model, batch = a_model(config, tokenizer), a_batch(config, tokenizer)
    shape = batch.shape
    hidden = model(batch.ids.flatten(), batch.positions.flatten(), tree(model, batch)).unflatten(0, (2, -1))
    start = shape.front + rows(shape)  # the second hole of the first document
    seen = int(batch.limit[0, start])
    chosen = torch.arange(start, start + head_rows(shape) + 3 * shape.canvas)
    chosen = chosen[batch.valid[0, chosen]]
    canvas = start + head_rows(shape) + shape.canvas
    causal = torch.cat((torch.arange(seen), chosen[chosen < canvas]))
    context = causal[(causal < start + head_rows(shape)) & ~((causal == start + head_rows(shape) - 1) & shift)]
    drawn = torch.cat((context, chosen[(chosen >= canvas) & (chosen < canvas + shape.canvas)]))

    for sequence, free in ((causal, 0), (drawn, len(drawn) - len(context))):
        expected = model(batch.ids[0, sequence], batch.positions[0, sequence], Plain(model, batch, sequence, free))
        torch.testing.assert_close(hidden[0, sequence], expected, atol=1e-5, rtol=1e-4)


class Plain:
    """Attention over one sequence with an explicit mask: causal, but its last `free` rows see each other."""

    def __init__(self, model: Transformer, batch: Batch, sequence: Tensor, free: int) -> None:
        count = len(sequence)
        index = torch.arange(count)
        canvas = index >= count - free
        self.mask = (index[:, None] >= index) | (canvas[:, None] & canvas)
        positions = batch.positions[0, sequence]
        self.near = positions[:, None] - positions < (model.config.sliding_window or 0)
        self.config = model.config

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mask = self.mask & self.near if self.config.window(layer) else self.mask
        out: Tensor = torch.nn.functional.scaled_dot_product_attention(
            q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), attn_mask=mask, enable_gqa=True
        )
        return out.transpose(0, 1)


@pytest.mark.parametrize("shift", [False, True])
def test_no_canvas_sees_the_clean_answer_and_no_context_sees_a_branch(
    config: TrainConfig, tokenizer: Tokenizer, *, shift: bool
) -> None:
    config = replace(config, model=replace(config.model, logit_shift=shift))
    model, batch = a_model(config, tokenizer), a_batch(config, tokenizer)
    shape = batch.shape
    embedded = model.embed_tokens(batch.ids.flatten()).detach().requires_grad_()
    model.embed_tokens.forward = lambda _: embedded  # type: ignore[assignment,method-assign]
    hidden = model(batch.ids.flatten(), batch.positions.flatten(), tree(model, batch)).unflatten(0, (2, -1))
    start = shape.front
    answer = slice(start + head_rows(shape), start + head_rows(shape) + shape.canvas)
    canvases = slice(answer.stop, answer.stop + 2 * shape.canvas)

    def influence(rows_from: slice, rows_to: slice) -> float:
        (gradient,) = torch.autograd.grad(hidden[0, rows_to].abs().sum(), embedded, retain_graph=True)
        return float(gradient.unflatten(0, (2, -1))[0, rows_from].abs().sum())

    assert influence(answer, canvases) == 0
    assert influence(slice(start, None), slice(0, start)) == 0
    first = slice(canvases.start, canvases.start + shape.canvas)
    assert influence(first, slice(first.stop, first.stop + shape.canvas)) == 0
    assert influence(slice(first.start + 1, first.start + 3), slice(first.start, first.start + 1)) > 0


def test_the_block_sparse_mask_of_gpus_gives_what_the_dense_one_gives(
    config: TrainConfig, tokenizer: Tokenizer
) -> None:
    config = replace(config, gap_share=1.0)
    model, batch = a_model(config, tokenizer), a_batch(config, tokenizer)
    structure = branch_structure(batch.shape, logit_shift=False)
    masks = flex_masks(model.config, batch.shape, batch.positions, batch.limit, batch.valid, structure)
    ids, positions = batch.ids.flatten(), batch.positions.flatten()

    with torch.no_grad(), warnings.catch_warnings():
        # Uncompiled it materialises the scores, which is all that this comparison needs.
        warnings.simplefilter("ignore")
        sparse = model(ids, positions, FlexTreeAttention(model.config, batch.shape.documents, masks))
    dense = model(ids, positions, tree(model, batch))

    torch.testing.assert_close(sparse[batch.valid.flatten()], dense[batch.valid.flatten()], atol=1e-5, rtol=1e-4)


@pytest.fixture
def model(config: TrainConfig, tokenizer: Tokenizer) -> Transformer:
    torch.manual_seed(2)
    return Transformer(replace(config.model, memory_entries=64).model_config(tokenizer))


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


@pytest.fixture
def batch(config: TrainConfig, tokenizer: Tokenizer) -> Batch:
    return a_batch(config, tokenizer)
