"""Examples of edits: what a moment of a story looks like to the model."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

import calomel.weights
from calomel.prompts.context import ContextRenderer
from calomel.prompts.parts import EditRegion, Hunk, PromptParts
from calomel.prompts.region import RegionBounds
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.branch import CANVAS, CAUSAL, Example, head_rows, rows
from calomel.training.config import BatchShape, TrainConfig
from calomel.training.edit_example import EditExampleMaker, changed_ids, rewriting
from calomel.training.edits.scene import Focus, Scene
from calomel.training.edits.story import Change

TEXT = """def total(rows):
    sum = 0
    for row in rows:
        sum += row.size
    return sum


print(total([]))
"""
BOUNDS = RegionBounds(above=1, below=2, characters=140)
SHAPE = BatchShape(documents=1, front=160, holes=3, canvas=48, region=48)


def scene(changes: tuple[Change, ...], *focuses: Focus, hunks: tuple[Hunk, ...] = ()) -> Scene:
    return Scene("python", "a.py", TEXT, hunks, changes, focuses)


def rename(old: str, new: str, text: str = TEXT) -> tuple[Change, ...]:
    found, at = [], text.find(old)
    while at >= 0:
        found.append(Change(at, at + len(old), new))
        at = text.find(old, at + 1)
    return tuple(found)


@pytest.fixture(scope="module")
def shipped() -> Tokenizer:
    return Tokenizer.from_file(Path(calomel.weights.nano_path()) / "tokenizer.json")


@pytest.fixture
def maker(shipped: Tokenizer, config: TrainConfig) -> EditExampleMaker:
    plain = replace(config, path_share=1.0, far_suffix_share=0.0, gap_share=0.0, region=BOUNDS)
    return EditExampleMaker(shipped, plain)


def test_a_region_becomes_what_all_changes_inside_it_make_of_it() -> None:
    at = TEXT.index("sum += ")
    place = rewriting(scene(rename("sum", "size")), Focus(at, "rename", cursor=True), BOUNDS)
    assert place is not None
    assert place.region.text == "    for row in rows:\n        sum += row.size\n    return sum\n\n"
    assert place.text == "    for row in rows:\n        size += row.size\n    return size\n\n"
    assert place.region.cursor == at - place.start


def test_silence_is_the_region_as_it_is() -> None:
    place = rewriting(scene(()), Focus(3, "silence:finished", cursor=False), BOUNDS)
    assert place is not None
    assert place.text == place.region.text
    assert place.region.cursor is None


def test_a_change_across_the_border_has_no_clear_answer() -> None:
    everything = Change(TEXT.index("sum"), TEXT.index("print"), "")
    assert rewriting(scene((everything,)), Focus(3, "x", cursor=False), BOUNDS) is None
    between = Change(TEXT.index("        sum"), TEXT.index("        sum"), "        pass\n")
    assert rewriting(scene((between,)), Focus(0, "x", cursor=False), BOUNDS) is None
    assert rewriting(scene((between,)), Focus(TEXT.index("for"), "x", cursor=False), BOUNDS) is not None


def test_a_line_that_is_too_long_is_no_region() -> None:
    long = Scene("python", "a.py", "x" * 200 + "\n", (), (), ())
    assert rewriting(long, Focus(5, "x", cursor=False), BOUNDS) is None


def parts_of(example: Example, index: int) -> tuple[list[int], list[int]]:
    """What the branch sees, and the answer with its end, as ids."""
    start = SHAPE.front + index * rows(SHAPE)
    begin = start + head_rows(SHAPE)
    head = example.ids[start:begin][example.valid[start:begin]]
    answer = slice(begin - 1, begin + SHAPE.canvas)
    scored = (example.groups[answer] == CAUSAL) & (example.weights[answer] > 0)
    return [*example.ids[: example.limit[start]].tolist(), *head.tolist()], example.targets[answer][scored].tolist()


def test_the_ids_are_those_of_the_live_prompt(maker: EditExampleMaker, shipped: Tokenizer) -> None:
    hunks = (Hunk("a.py", 1, "    count = 0\n", "    sum = 0\n"),)
    focus = Focus(TEXT.index("sum += "), "rename", cursor=True)
    checked = 0
    for seed in range(30):
        example = maker.make(scene(rename("sum", "size"), focus, hunks=hunks), SHAPE, 0.3, random.Random(seed))
        assert example is not None
        place = rewriting(scene(rename("sum", "size")), focus, BOUNDS)
        assert place is not None
        seen, answer = parts_of(example, 0)
        shown = shipped.decode(seen[len(ContextRenderer(shipped).stream(hunks)) :])
        prefix = TEXT[: place.start]
        live = PromptParts(
            path="a.py",
            edits=hunks,
            prefix=prefix,
            suffix="",
            region=EditRegion(place.region.text, place.region.cursor),
        )
        rendered = list(ContextRenderer(shipped).render(live, 512).context)
        near = shipped.encode(TEXT[place.end :])[:16]
        if not shown.startswith("a.py" + prefix):
            continue  # the window begins further below
        assert seen == [*rendered[:-2], shipped.near, *near, shipped.middle]
        assert shipped.decode(answer) == place.text
        assert answer[-1] == shipped.end
        checked += 1
    assert checked > 5


def test_a_seeded_canvas_hides_what_changes_and_shows_what_stays(maker: EditExampleMaker, shipped: Tokenizer) -> None:
    focus = Focus(TEXT.index("sum += "), "rename", cursor=True)
    seeded = 0
    for seed in range(60):
        example = maker.make(scene(rename("sum", "size"), focus), SHAPE, 0.3, random.Random(seed))
        assert example is not None
        begin = SHAPE.front + head_rows(SHAPE) + 2 * SHAPE.canvas
        canvas = slice(begin, begin + SHAPE.canvas)
        shown = shipped.decode([t for t in example.ids[canvas].tolist() if t != shipped.mask])
        hidden = example.targets[canvas][(example.ids[canvas] == shipped.mask) & (example.groups[canvas] == CANVAS)]
        text = shipped.decode(hidden.tolist())
        if text.replace("size", "").strip() == "" and text and "row" in shown:
            seeded += 1
    assert seeded > 5


def test_ids_that_moved_are_not_changed_ids() -> None:
    assert changed_ids([1, 2, 3, 4], [1, 9, 2, 3, 4]) == [False, True, False, False, False]
    assert changed_ids([1, 2], [1, 2]) == [False, False]
