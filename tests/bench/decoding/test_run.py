from __future__ import annotations

import json
from pathlib import Path

import pytest

from calomel.bench.answer import matches
from calomel.bench.decoding.asker import open_asker
from calomel.bench.decoding.orders import Ordered
from calomel.bench.decoding.records import Answered, answers, begun, choices
from calomel.bench.decoding.run import DecodingOptions, chosen, measure_decoding, run_decoding
from calomel.bench.decoding.variants import CHOICES, SHIPPED, VARIANTS, Variant
from calomel.bench.heldout import HeldoutFile
from calomel.bench.holes import KINDS, REST_OF_LINE, Hole
from calomel.bench.model import PlainMeasure, open_model
from calomel.bench.progress import Progress
from calomel.prompts.context import ContextRenderer
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.tokenizer import train_tokenizer

HOLE = Hole("h", REST_OF_LINE, "python", "a.py", "def average(num", "\n    return 0\n", "bers):")


class Scripted:
    """Right where a variant is left to right; elsewhere it says the first half."""

    def __init__(self) -> None:
        self.scored: list[str] = []

    def ask(self, variant: Variant, hole: Hole) -> tuple[str, int]:
        return (hole.answer if variant.policy == "left_to_right" else hole.answer[:3], 2)

    def likelihood(self, hole: Hole, text: str) -> tuple[float, int]:
        self.scored.append(text)
        return (-float(len(text)), len(text))


def test_most_holes_are_rests_of_lines_and_every_kind_is_early(files: tuple[HeldoutFile, ...]) -> None:
    holes = chosen(files, PlainMeasure(), 16, 1)
    rows = [hole.row for hole in holes]
    assert rows.count(REST_OF_LINE) == 12
    assert set(rows) == set(KINDS)
    assert {hole.row for hole in holes[: len(holes) // 2 + 2]} == set(KINDS)


def test_each_text_is_scored_once_and_a_choice_takes_the_likeliest() -> None:
    asker = Scripted()
    found = answers(HOLE, asker)
    assert sorted(asker.scored) == sorted({"ber", "bers):"})
    chosen_of = choices(found)
    name = "shipped or left to right"
    assert chosen_of[f"{name}, likelier as a whole"].text == "ber"
    assert chosen_of[f"{name}, if one knew"].right
    # Both were asked, and two texts were read.
    assert chosen_of[f"{name}, if one knew"].forwards == 6
    assert len(chosen_of) == 3 * len(CHOICES)


def test_begun_is_the_share_of_the_truth_that_comes_first() -> None:
    assert begun("abcd", "ab x") == 0.5
    assert begun("a b", "ab and more") == 1.0
    assert begun("ab", "") == 0.0


def test_differences_are_paired_with_the_shipped_way(heldout: Path, tmp_path: Path) -> None:
    options = DecodingOptions(holes=8, heldout=heldout, cache=tmp_path)
    report = measure_decoding(options, Scripted(), PlainMeasure(), Progress(), weights="w")
    assert report.flat["left_to_right.exact"] == 1.0
    assert report.flat["left_to_right.difference"] == 1.0
    assert report.flat["shipped.exact"] == 0.0
    assert report.flat["canvas_of_8.begun"] == 0.0
    rows = {row[0]: row for row in report.tables[0].rows}
    assert rows["**shipped**"][2] == "-"
    assert rows["left to right"][2] == "+100.0 [+100.0, +100.0]"


def test_an_answer_survives_the_journal() -> None:
    answered = Answered("x", right=True, began=0.5, forwards=2, log_prob=-1.0, tokens=2)
    assert Answered.from_json(answered.to_json()) == answered


def test_shipped_is_what_every_door_does(checkpoint: Path, heldout: Path) -> None:
    hole = Hole("h", REST_OF_LINE, "python", "a.py", "def average(num", "\n    return 0\n", "bers):", max_tokens=8)
    with open_asker(checkpoint, threads=1) as asker, open_model(checkpoint, threads=1) as model:
        expected = model.fill(hole, policy=None, max_steps=None, max_tokens=8, as_doors=True).text
        assert asker.ask(SHIPPED, hole)[0] == expected
        # A model that ends at once says nothing, and one that never ends says all it may.
        ended = Variant("ended", "left_to_right", end_bias=1e4, from_boundary=False)
        assert asker.ask(ended, hole) == ("", 1)
        endless = Variant("endless", "left_to_right", end_bias=-1e4, from_boundary=False)
        assert asker.ask(endless, hole)[1] == 8
        # The bias of one variant is gone with the next.
        assert asker.ask(SHIPPED, hole)[0] == expected


def test_an_answer_from_the_words_beginning_goes_on_with_the_word(checkpoint: Path) -> None:
    with open_asker(checkpoint, threads=1) as asker:
        text, forwards = asker.ask(SHIPPED, HOLE)
        assert forwards > 0
        assert not text.startswith("num")
        assert not matches(HOLE, text)


def test_another_order_has_the_same_tokens(files: tuple[HeldoutFile, ...], tmp_path: Path) -> None:
    train_tokenizer([file.text for file in files], tmp_path / "tokenizer.json", vocab_size=400)
    tokenizer = Tokenizer.from_file(tmp_path / "tokenizer.json")
    text = files[0].text * 4
    parts = PromptParts(path="a.py", prefix=text[:300], suffix=text[300:])
    shipped = ContextRenderer(tokenizer).render(parts, 512)
    moved = Ordered(tokenizer, "prefix_first").render(parts, 512)
    assert sorted(moved.context) == sorted(shipped.context)
    assert moved.context.index(tokenizer.prefix) < moved.context.index(tokenizer.suffix)
    assert shipped.context.index(tokenizer.suffix) < shipped.context.index(tokenizer.prefix)
    assert tokenizer.suffix not in Ordered(tokenizer, "no_far_suffix").render(parts, 512).context
    assert Ordered(tokenizer, "shipped").render(parts, 512) == shipped


@pytest.mark.slow
def test_the_bench_measures_a_checkpoint(checkpoint: Path, heldout: Path, tmp_path: Path) -> None:
    options = DecodingOptions(
        model=checkpoint, threads=1, holes=8, heldout=heldout, cache=tmp_path, json=tmp_path / "d.json"
    )
    report = run_decoding(options)
    assert len(report.tables[0].rows) == len(VARIANTS) + 3 * len(CHOICES)
    assert json.loads((tmp_path / "d.json").read_text())["shipped.exact_n"] == 6
