"""What the engine computes at a hole is what the trainer computed for it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from calomel.engine.buffer import KeyValueBuffer
from calomel.engine.forward import Piece, forward
from calomel.engine.transformer import Transformer
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.attention import TreeAttention, branch_structure
from calomel.training.batch import batches
from calomel.training.branch import head_rows, rows
from calomel.training.config import TrainConfig
from calomel.training.documents import DocumentSampler, read_documents
from calomel.training.example import ExampleMaker


@pytest.mark.parametrize("shift", [False, True])
def test_the_engine_gives_the_logits_that_training_gave(
    config: TrainConfig, tokenizer: Tokenizer, *, shift: bool
) -> None:
    config = replace(config, gap_share=0.0, model=replace(config.model, logit_shift=shift))
    torch.manual_seed(2)
    model = Transformer(config.model.model_config(mask_token_id=tokenizer.mask, end_token_id=tokenizer.end))
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
        trained = model.logits(model(batch.ids.flatten(), batch.positions.flatten(), attend)).unflatten(0, (2, -1))
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
            forward(model, [Piece(context[:known], buffer, 0, causal=True)])
            buffer.length = known
            ids = batch.ids[0, canvas]
            live = forward(model, [Piece(ids, buffer, known, causal=False, read=range(len(ids)))])

        torch.testing.assert_close(live, trained[0, canvas], atol=1e-4, rtol=1e-4)
