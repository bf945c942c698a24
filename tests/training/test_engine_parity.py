"""What the engine computes at a hole is what the trainer computed for it."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from calomel.engine.attention import Piece, forward, text_of
from calomel.engine.cache import KeyValueBuffer
from calomel.engine.transformer import Transformer
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.batch import batches
from calomel.training.branch import head_rows, rows
from calomel.training.config import TrainConfig
from calomel.training.documents import DocumentSampler, read_documents
from calomel.training.examples import ExampleMaker
from calomel.training.loss import TreeAttention, branch_structure


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
