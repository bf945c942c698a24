"""The likelier one of the model's own answer and what stands elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from calomel.engine import CheckpointError, SamplingParams
from calomel.prompts.parts import PromptParts
from calomel.suggest.completer import Fill, FillRequest
from calomel.suggest.filler import Filler
from calomel.suggest.recall import DRAFT, OWN, PRIOR, CopyScorer, recall

ABOVE = "total = reader.count()\nprint(total)\n"
HOLE = FillRequest(
    "fill", PromptParts(path="one.py", prefix=ABOVE + "total = rea", suffix="\nprint(total)\n"), max_tokens=24
)
RIGHT = "der.count()"


def worth(draft: float, own: float, sure: float = 1.1) -> CopyScorer:
    """One in which nothing counts but the two biases."""
    return CopyScorer(
        {name: draft if name == "bias" else 0.0 for name in PRIOR},
        {name: draft if name == "bias" else 0.0 for name in DRAFT},
        {name: own if name == "bias" else 0.0 for name in OWN},
        sure,
    )


def recalling(filler: Filler, found: CopyScorer) -> Filler:
    return Filler(filler.engine, filler.tokenizer, copies=found)


def test_the_likelier_one_is_the_answer(filler: Filler) -> None:
    own = filler.fill(HOLE)

    recalled = recalling(filler, worth(draft=1.0, own=-1.0)).fill(HOLE)
    kept = recalling(filler, worth(draft=-1.0, own=1.0)).fill(HOLE)

    assert (recalled.text, recalled.finish_reason) == (RIGHT, "stop")
    assert recalled.confidence == pytest.approx(0.731, abs=1e-3)
    assert recalled.steps == own.steps
    assert kept.text == own.text
    assert kept.confidence == pytest.approx(own.confidence)


def test_where_much_agrees_the_model_reads_the_text_and_denoises_nothing(filler: Filler) -> None:
    sure = recalling(filler, worth(draft=1.0, own=5.0, sure=0.7)).fill(HOLE)

    assert (sure.text, sure.steps, sure.forwards) == (RIGHT, 0, 1)
    assert sure.completion_tokens == len(filler.tokenizer.encode(RIGHT)) == len(sure.result.log_probs)


@pytest.mark.parametrize(
    "request_",
    [
        replace(HOLE, recall=False),
        replace(HOLE, policy="left_to_right"),
        replace(HOLE, sampling=SamplingParams(temperature=0.7, seed=1)),
        replace(HOLE, sampling=SamplingParams(presence_penalty=0.5)),
        replace(HOLE, max_tokens=2),
        replace(HOLE, parts=replace(HOLE.parts, prefix="total = rea")),
    ],
    ids=["asked not to", "a policy", "drawn", "penalties", "too long", "nothing to recall"],
)
def test_otherwise_the_answer_is_the_models_own(filler: Filler, request_: FillRequest) -> None:
    assert recalling(filler, worth(draft=9.0, own=-9.0)).fill(request_).text == filler.fill(request_).text


def test_greedy_sampling_that_says_so_recalls_too(filler: Filler) -> None:
    greedy = replace(HOLE, sampling=SamplingParams(temperature=0.0))

    assert recalling(filler, worth(draft=9.0, own=-9.0)).fill(greedy).text == RIGHT


def test_a_stop_string_cuts_what_is_recalled(filler: Filler) -> None:
    assert recalling(filler, worth(draft=9.0, own=-9.0)).fill(replace(HOLE, stop=("(",))).text == "der.count"


def test_excerpts_of_other_files_are_looked_through(filler: Filler) -> None:
    from calomel.prompts.parts import Excerpt, PromptParts

    parts = PromptParts(
        path="one.py",
        prefix="result = compute_all(",
        suffix="\n",
        related=(Excerpt(path="two.py", start_line=0, text="result = compute_all(rows)\n"),),
    )

    found = recalling(filler, worth(draft=9.0, own=-9.0)).fill(FillRequest("fill", parts))

    assert found.text == "rows)"


async def test_every_way_to_ask_gives_the_same_answer(filler: Filler) -> None:
    for found in (worth(9.0, -9.0), worth(-9.0, 9.0), worth(9.0, -9.0, sure=0.5)):
        ours = recalling(filler, found)
        wanted = ours.fill(HOLE).text

        pieces = [item async for item in ours.stream(HOLE)]
        canvases = [item async for item in ours.canvases(HOLE)]

        assert (await ours.afill(HOLE)).text == wanted
        assert "".join(piece for piece in pieces if isinstance(piece, str)) == wanted
        assert isinstance(pieces[-1], Fill)
        assert isinstance(canvases[-1], Fill)
        assert canvases[-1].text == wanted


async def test_a_deadline_leaves_what_is_known(filler: Filler) -> None:
    late = replace(HOLE, deadline=-1.0)
    ours = recalling(filler, worth(9.0, -9.0))

    with pytest.raises(Exception, match="deadline"):
        ours.fill(late)
    with pytest.raises(Exception, match="deadline"):
        await ours.afill(late)


def test_what_is_written_is_read_and_damage_is_named(tmp_path: Path) -> None:
    assert CopyScorer.read(tmp_path) is None
    wanted = worth(0.5, -0.5, 0.3)

    wanted.write(tmp_path)

    assert CopyScorer.read(tmp_path) == wanted
    place = tmp_path / "recall.json"
    raw = json.loads(place.read_text(encoding="utf-8"))
    for damage, said in (
        (raw | {"format": 7}, "format"),
        (raw | {"own": {"bias": 1.0}}, "own must have just"),
        (raw | {"sure": "much"}, "sure: Expected `float`"),
    ):
        place.write_text(json.dumps(damage), encoding="utf-8")
        with pytest.raises(CheckpointError, match=said):
            CopyScorer.read(tmp_path)
    place.write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"recall\.json"):
        CopyScorer.read(tmp_path)


def test_more_that_agrees_is_worth_more(filler: Filler) -> None:
    near = recall("x = reader.count()\n\ny = rea", "\n")
    far = recall(ABOVE + "total = rea", "\nprint(total)\n")
    assert near is not None
    assert far is not None
    weights = dict.fromkeys(PRIOR, 0.0) | {"before": 1.0, "behind": 1.0, "bias": -5.0}
    found = replace(worth(0.0, 0.0), prior=weights, sure=0.5)

    assert not found.is_sure(near, 4)
    assert found.is_sure(far, 4)
