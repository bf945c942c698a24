"""Examples of text and of edits: what the model meets in training is what it meets at the cursor."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import calomel.weights
from calomel.prompts.own import ContextRenderer, assemble_front, assemble_tail, split_suffix
from calomel.prompts.parts import Edit, EditRegion, Hunk, PromptParts, RegionBounds, line_start
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.branch import CANVAS, CAUSAL, FILL, KEPT, REST, Example, head_rows, rows
from calomel.training.config import BatchShape, HoleMix, TrainConfig
from calomel.training.corpus.shards import Document
from calomel.training.edits.scene import Focus, Scene, Step, is_silent, stream
from calomel.training.edits.scenes import continued, half_done, silence_finished, silence_undo, silence_unrelated
from calomel.training.edits.story import Story, sequential
from calomel.training.examples import EditExampleMaker, ExampleMaker, Hole, cut, rewriting
from calomel.workspace.documents import RangeChange
from calomel.workspace.workspace import Workspace

SHAPE = BatchShape(documents=1, front=128, holes=4, canvas=16)


def make(config: TrainConfig, tokenizer: Tokenizer, document: Document, seed: int) -> Example:
    return ExampleMaker(tokenizer, config).make(document, SHAPE, 0.3, random.Random(seed))


def branch(example: Example, index: int) -> slice:
    start = SHAPE.front + index * rows(SHAPE)
    return slice(start, start + rows(SHAPE))


def test_front_and_branch_have_the_ids_that_a_live_prompt_of_the_same_text_has(
    config: TrainConfig, tokenizer: Tokenizer, documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(config, far_suffix_share=0.0, path_share=0.0, gap_share=0.0, holes=HoleMix(aligned=0.0))
    text = documents[0].text
    holes: list[Hole] = []

    def remember(*arguments: Any) -> Hole:
        holes.append(cut(*arguments))
        return holes[-1]

    monkeypatch.setattr("calomel.training.examples.cut", remember)
    checked = 0
    for seed in range(20):
        holes.clear()
        example = make(config, tokenizer, documents[0], seed)
        begin = text.find(tokenizer.decode(example.ids[1 : SHAPE.front - 20].tolist()))
        for index, hole in enumerate(holes):
            part = branch(example, index)
            prefix = text[begin : hole.start]
            if len(tokenizer.encode(prefix[tokenizer.boundary(prefix) :])) > REST:
                continue  # deeper inside a pre-token than a branch has room for: moved to its start
            near, _ = split_suffix(text[hole.end :], tokenizer)
            live = assemble_front((), (), tokenizer.encode(prefix), tokenizer) + assemble_tail((), near, tokenizer)
            head = example.ids[part][: head_rows(SHAPE)][example.valid[part][: head_rows(SHAPE)]]

            assert [*example.ids[: example.limit[part][0]], *head] == live
            checked += 1
    assert checked > 60


TEXT = """def total(rows):
    sum = 0
    for row in rows:
        sum += row.size
    return sum


print(total([]))
"""
BOUNDS = RegionBounds(above=1, below=2, characters=140)
SHAPE_edits = BatchShape(documents=1, front=160, holes=3, canvas=48, region=48)


def scene(changes: tuple[Edit, ...], *focuses: Focus, hunks: tuple[Hunk, ...] = ()) -> Scene:
    return Scene("python", "a.py", TEXT, hunks, changes, focuses)


def rename(old: str, new: str, text: str = TEXT) -> tuple[Edit, ...]:
    found, at = [], text.find(old)
    while at >= 0:
        found.append(Edit(at, at + len(old), new))
        at = text.find(old, at + 1)
    return tuple(found)


@pytest.fixture(scope="module")
def shipped() -> Tokenizer:
    return Tokenizer.from_file(Path(calomel.weights.nano_path()) / "tokenizer.json")


@pytest.fixture
def maker(shipped: Tokenizer, config: TrainConfig) -> EditExampleMaker:
    plain = replace(config, path_share=1.0, far_suffix_share=0.0, gap_share=0.0, region=BOUNDS)
    return EditExampleMaker(shipped, plain)


def parts_of(example: Example, index: int) -> tuple[list[int], list[int]]:
    """What the branch sees, and the answer with its end, as ids."""
    start = SHAPE_edits.front + index * rows(SHAPE_edits)
    begin = start + head_rows(SHAPE_edits)
    head = example.ids[start:begin][example.valid[start:begin]]
    answer = slice(begin - 1, begin + SHAPE_edits.canvas)
    scored = (example.groups[answer] == CAUSAL) & (example.weights[answer] > 0)
    return [*example.ids[: example.limit[start]].tolist(), *head.tolist()], example.targets[answer][scored].tolist()


def test_the_ids_are_those_of_the_live_prompt(maker: EditExampleMaker, shipped: Tokenizer) -> None:
    hunks = (Hunk("a.py", 1, "    count = 0\n", "    sum = 0\n"),)
    focus = Focus(TEXT.index("sum += "), "rename", cursor=True)
    checked = 0
    for seed in range(30):
        example = maker.make(scene(rename("sum", "size"), focus, hunks=hunks), SHAPE_edits, 0.3, random.Random(seed))
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


def canvases(index: int) -> tuple[slice, slice]:
    start = SHAPE.front + index * rows(SHAPE) + head_rows(SHAPE) + SHAPE.canvas
    return slice(start, start + 16), slice(start + 16, start + 32)


def test_canvases_hide_the_answer_and_always_what_follows_it(
    config: TrainConfig, tokenizer: Tokenizer, documents: list[Document]
) -> None:
    seen, lengths = 0, set()
    for seed in range(30):
        example = make(config, tokenizer, documents[seed % 10], seed)
        for index in range(SHAPE.holes):
            pair = first, second = canvases(index)
            for canvas in pair:
                masked = example.ids[canvas] == tokenizer.mask
                answers = example.groups[canvas] == CANVAS
                seen += int((masked & answers).sum())
                assert (example.targets[canvas][masked & answers] != tokenizer.mask).all()
                kept = example.groups[canvas] == KEPT
                assert (example.ids[canvas][kept] == example.targets[canvas][kept]).all()
            # Every answer token is masked in one of the two.
            answer = example.valid[first] & (example.targets[first] != tokenizer.end)
            assert ((example.ids[first] == tokenizer.mask) | (example.ids[second] == tokenizer.mask))[answer].all()
            lengths.add(int(example.valid[first].sum()))
            # The middle mark predicts the first token of the answer.
            last = branch(example, index).start + head_rows(SHAPE) - 1
            assert (example.ids[last], example.groups[last]) == (tokenizer.middle, CAUSAL)
            assert example.targets[last] == (example.ids[last + 1] if example.valid[last + 1] else tokenizer.end)
        fill = (example.groups == FILL) & (example.weights > 0)
        assert (example.ids[fill] == tokenizer.mask).all()
        assert (example.targets[fill] == tokenizer.end).all()
    assert seen > 300
    assert len(lengths) > 5


def applied(text: str, changes: tuple[Edit, ...]) -> str:
    for change in changes:
        text = change.apply(text)
    return text


SCENES_TEXT = "".join(f"line {number} = total({number}, größe)\n" for number in range(60))
URI = "file:///project/a.py"


def recorded(text: str, steps: list[Step]) -> tuple[object, ...]:
    """What a workspace says of the same steps, 0.2 seconds apart, 3 seconds where the person paused."""
    now = 0.0
    workspace = Workspace([Path("/project")], lambda: now)
    document = workspace.open(URI, "python", 0, text)
    for number, step in enumerate(steps, start=1):
        now += 3.0 if step.paused else 0.2
        start, end = document.position_at(step.change.start), document.position_at(step.change.end)
        workspace.change(URI, number, [RangeChange(start, end, step.change.text)])
    return (*workspace.history.settled(), *workspace.history.open_edit())


def test_steps_give_the_hunks_of_a_live_session() -> None:
    for seed in range(40):
        rng = random.Random(seed)
        text, steps, at = SCENES_TEXT, [], rng.randrange(len(SCENES_TEXT))
        for _ in range(rng.randint(1, 8)):
            if rng.random() < 0.4:
                at = rng.randrange(len(text))
            start = max(0, min(len(text), at + rng.randint(-80, 80)))
            end = min(len(text), start + rng.choice((0, 0, 3, 12, 60)))
            new = rng.choice(("", "x", "sum", "one\ntwo\n", " ", "a = b\n", "\n    return", "größe"))
            if text[start:end] == new:
                continue
            steps.append(Step(Edit(start, end, new), paused=rng.random() < 0.6))
            text = steps[-1].change.apply(text)
            at = start
        assert stream("a.py", SCENES_TEXT, steps) == recorded(SCENES_TEXT, steps)


TEXT_of_scenes = '''"""Adds up."""

import os

LIMIT = 20


def total(rows, scale):
    # Keep the running result in a local variable.
    result = 0
    for row in rows:
        result += row.size * scale
    return min(result, LIMIT)


def average(rows):
    if not rows:
        return 0
    return total(rows, 1) / len(rows)


def report(rows, name):
    # Every report starts with the name of the place it came from.
    head = name.upper()
    count = len(rows)
    print(head, count, total(rows, 1))
    return head


def main():
    rows = list(os.scandir("."))
    print(average(rows), total(rows, 2))
    print(report(rows, "here"))
    for row in rows:
        print(row.name, row.stat().st_size)
'''


def renamed() -> Story:
    edits = [Edit(match.start(), match.end(), "total_size") for match in re.finditer(r"\btotal\b", TEXT_of_scenes)]
    return Story("rename", "python", "a.py", TEXT_of_scenes, sequential(edits))


def many(maker: Callable[[Story, random.Random], Scene | None], story: Story, count: int = 40) -> list[Scene]:
    found = [maker(story, random.Random(seed)) for seed in range(count)]
    return [scene for scene in found if scene is not None]


@pytest.mark.parametrize("maker", [continued, half_done, silence_finished, silence_unrelated, silence_undo])
def test_scenes_lead_to_the_end_of_their_story_or_ask_for_silence(maker: Callable[..., Scene | None]) -> None:
    story = renamed()
    scenes = many(maker, story)
    silent = maker not in {continued, half_done}
    assert len(scenes) == 40 or (silent and len(scenes) >= 30)
    for scene in scenes:
        if silent:
            assert scene.changes == ()
            assert scene.focuses[0].cursor
            assert all(focus.silent and 0 <= focus.offset <= len(scene.text) for focus in scene.focuses)
        else:
            assert applied(scene.text, scene.changes[::-1]) == story.states()[-1]
            assert scene.changes
            assert scene.hunks[-1].after in scene.text
            assert not scene.focuses[0].silent
        assert 1 <= len(scene.focuses) <= 6
        for focus in scene.focuses:
            assert focus.silent == is_silent(scene.text, scene.changes, focus.offset)
            assert focus.cursor or focus.offset == line_start(scene.text, focus.offset)
        assert len({focus.offset for focus in scene.focuses}) == len(scene.focuses)
        assert sum(focus.cursor for focus in scene.focuses) <= 1
