"""Answers that end within a canvas, since their beginning has all that is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calomel.bench.holes import SEVERAL_LINES, make_holes
from calomel.prompts.parts import PromptParts
from calomel.report.heldout import read_heldout
from calomel.suggest.completer import FillRequest, cut_at_stop
from calomel.suggest.filler import Filler
from calomel.suggest.in_process import open_filler


@pytest.fixture(scope="module")
def filler() -> Iterator[Filler]:
    """The shipped model."""
    opened = open_filler(threads=1, dtype="float32")  # in bfloat16 a sum depends on what else is in its forward
    yield opened
    opened.close()


@pytest.mark.slow
def test_held_out_holes_are_filled_alike_where_an_answer_ends_early(filler: Filler) -> None:
    made = make_holes(read_heldout(), lambda text: len(filler.tokenizer.encode(text)), per_kind=24, seed=3)
    holes = [hole for hole in made if hole.row == SEVERAL_LINES]
    assert len(holes) >= 20
    early = 0
    for hole in holes:
        for stop in ("\n", " ", "("):
            # Thresholds that reveal little at a time give an answer many chances to end.
            request = FillRequest(
                "fill",
                PromptParts(path=hole.path, prefix=hole.prefix, suffix=hole.suffix),
                max_tokens=24,
                policy="threshold:0.3",
                max_steps=6,
                max_context=256,
                whole_word=False,
            )
            whole = filler.fill(request)
            ended = filler.fill(
                FillRequest(
                    "fill",
                    PromptParts(path=hole.path, prefix=hole.prefix, suffix=hole.suffix),
                    max_tokens=24,
                    stop=(stop,),
                    policy="threshold:0.3",
                    max_steps=6,
                    max_context=256,
                    whole_word=False,
                )
            )
            assert ended.text == cut_at_stop(whole.text, (stop,))[0]
            assert ended.forwards <= whole.forwards
            kept = len(ended.result.ids)
            assert ended.result.ids == whole.result.ids[:kept]
            assert ended.result.log_probs == pytest.approx(whole.result.log_probs[:kept], abs=1e-4)
            early += ended.forwards < whole.forwards
    assert early
