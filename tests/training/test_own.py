"""What a canvas learns of the model's own answers is what the causal mode writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.training.test_run import a_batch, a_model, entries

from calomel.prompts.tokenizer import Tokenizer
from calomel.training.branch import head_rows, rows
from calomel.training.config import OwnAnswers, TrainConfig
from calomel.training.loss import LossModel, branch_structure
from calomel.training.own import with_own_answers
from calomel.training.run import train

COUNT = 3


@pytest.mark.parametrize("shift", [False, True], ids=["plain", "shifted"])
def test_a_canvas_learns_how_the_causal_mode_continues_what_it_shows(
    config: TrainConfig, tokenizer: Tokenizer, *, shift: bool
) -> None:
    config = replace(config, beginnings=1.0, model=replace(config.model, logit_shift=shift))
    model, batch = a_model(config, tokenizer), a_batch(config, tokenizer)
    loss, structure = LossModel(model), branch_structure(batch.shape, logit_shift=shift)
    mask, end, size = tokenizer.mask, tokenizer.end, batch.shape.canvas

    made = with_own_answers(
        batch,
        lambda draft, wanted: loss.likeliest(draft, wanted, structure),
        COUNT,
        mask=mask,
        end=end,
        shift=shift,
    )

    total, compared = batch.ids.shape[1], 0
    before, after = (dict(zip(each.scored.tolist(), each.targets.tolist(), strict=True)) for each in (batch, made))
    weights = dict(zip(made.scored.tolist(), made.weights.tolist(), strict=True))
    for document in range(batch.ids.shape[0]):
        for hole in range(batch.shape.holes):
            begin = batch.shape.front + hole * rows(batch.shape) + head_rows(batch.shape)
            if not batch.valid[document, begin - 1]:
                continue
            canvas = batch.ids[document, begin + size : begin + 2 * size].tolist()[int(shift) :]
            shown = next((at for at, token in enumerate(canvas) if token == mask), len(canvas))
            if any(token not in {mask, tokenizer.pad} for token in canvas[shown:]):
                continue
            # Token by token, in a batch that has the answer so far and nothing behind it.
            own, written = list[int](), batch.ids[document, begin : begin + shown].tolist()
            while len(own) < min(COUNT, size - shown) and end not in own:
                draft = replace(
                    batch, ids=batch.ids.clone(), positions=batch.positions.clone(), valid=batch.valid.clone()
                )
                for at, token in enumerate(written):
                    draft.ids[document, begin + at] = token
                    draft.positions[document, begin + at] = batch.positions[document, begin - 1] + 1 + at
                    draft.valid[document, begin + at] = True
                wanted = torch.tensor([document * total + begin + len(written) - 1])
                own.append(int(loss.likeliest(draft, wanted, structure)))
                written.append(own[-1])
            for step in range(min(COUNT, size - shown)):
                row = document * total + begin + size + shown + step
                if row in after:
                    compared += 1
                    assert (after[row] == own[step]) if step < len(own) else weights[row] == 0.0
    assert compared > COUNT
    assert before.keys() == after.keys()


def test_a_run_whose_canvases_learn_own_answers_goes_on_learning(config: TrainConfig, tmp_path: Path) -> None:
    config = replace(config, rows=30_000, beginnings=0.5, own_answers=OwnAnswers(tokens=2, share=1.0, since=0.3))

    train(config, tmp_path)

    log = entries(tmp_path)
    assert log[-1]["context"] < log[0]["context"] - 0.2
