"""When the beginning of a prompt stays, and when it is chosen anew."""

from __future__ import annotations

import sysconfig
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import calomel.weights
from calomel.context.budget import EstimateCounter, ExactCounter
from calomel.context.builder import BuiltContext, ContextBuilder
from calomel.prompts.own import ContextRenderer
from calomel.prompts.parts import Excerpt, Hunk
from calomel.prompts.tokenizer import Tokenizer
from calomel.workspace.workspace import Situation

LIBRARY = Path(sysconfig.get_path("stdlib"))
TOKENIZER = Tokenizer.from_file(Path(calomel.weights.nano_path()) / "tokenizer.json")
TEXT = (LIBRARY / "argparse.py").read_text(encoding="utf-8")
TYPED = (LIBRARY / "textwrap.py").read_text(encoding="utf-8")
MIDDLE = TEXT.index("def add_argument(")


def excerpts(name: str) -> tuple[Excerpt, ...]:
    lines = (LIBRARY / f"{name}.py").read_text(encoding="utf-8").splitlines(keepends=True)
    return tuple(Excerpt(f"lib/{name}.py", at, "".join(lines[at : at + 40])) for at in range(0, 600, 40))


AST, INSPECT = excerpts("ast"), excerpts("inspect")
START = Situation("file:///w/argparse.py", "argparse.py", "python", TEXT, MIDDLE, 0, related=AST)


def typing(start: Situation, text: str) -> list[Situation]:
    """What is known after each character of `text`."""
    before, after = start.text[: start.offset], start.text[start.offset :]
    return [
        replace(start, text=before + text[:count] + after, offset=start.offset + count)
        for count in range(1, len(text) + 1)
    ]


def shared(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def front(built: BuiltContext) -> tuple[object, ...]:
    return built.parts.related, built.parts.far


def test_other_related_code_waits_until_the_window_moves() -> None:
    builder = ContextBuilder(ExactCounter(TOKENIZER))
    first = builder.build(START, 8192)
    typed = replace(typing(START, "x")[-1], related=INSPECT)
    assert front(builder.build(typed, 8192)) == front(first)

    moved = builder.build(replace(typed, offset=TEXT.index("class Action(")), 8192)

    assert {each.path for each in moved.parts.related} == {"lib/inspect.py"}
    assert "other code matters here" in moved.accounts[0].why


def test_related_code_that_is_found_later_is_taken_at_once() -> None:
    builder = ContextBuilder(ExactCounter(TOKENIZER))
    assert builder.build(replace(START, related=()), 8192).parts.related == ()
    assert builder.build(typing(START, "x")[-1], 8192).parts.related


def test_going_back_to_a_place_finds_the_tokens_of_before() -> None:
    builder, renderer = ContextBuilder(ExactCounter(TOKENIZER)), ContextRenderer(TOKENIZER)
    there = replace(START, offset=TEXT.index("class Action("), related=INSPECT)
    first = renderer.render(builder.build(START, 8192).parts, 8192)
    builder.build(there, 8192)

    again = builder.build(START, 8192)

    assert renderer.render(again.parts, 8192) == first
    assert not again.rebuilt


def test_a_long_stretch_of_typing_hardly_ever_changes_more_than_the_end() -> None:
    builder, renderer = ContextBuilder(ExactCounter(TOKENIZER)), ContextRenderer(TOKENIZER)
    steps = [
        # What an index finds may be another thing with every keystroke.
        replace(each, related=(AST, INSPECT)[at % 2])
        for at, each in enumerate(typing(START, TYPED[4000:5200]))
    ]
    ids = [renderer.render(builder.build(each, 8192).parts, 8192).context for each in steps]
    # Near suffix, marks and the last pre-token; a window that is full hops, and with it may come other code.
    kept = [shared(before, after) >= len(before) - 32 for before, after in pairwise(ids)]
    assert kept.count(False) <= 2


@pytest.mark.slow
def test_a_keystroke_in_a_context_of_8k_costs_less_than_five_milliseconds() -> None:
    builder, renderer = ContextBuilder(ExactCounter(TOKENIZER)), ContextRenderer(TOKENIZER)
    took = []
    for each in typing(START, TYPED[4000:5500]):
        began = time.perf_counter()
        renderer.render(builder.build(each, 8192).parts, 8192)
        took.append((time.perf_counter() - began) * 1e3)
    warm = sorted(took[1:])
    p50, p95 = warm[len(warm) // 2], warm[int(len(warm) * 0.95)]
    assert p95 < 5, f"p50 {p50:.2f} ms, p95 {p95:.2f} ms"


def test_typing_at_the_end_of_a_file_keeps_the_snapshot() -> None:
    builder = ContextBuilder(ExactCounter(TOKENIZER))
    at_end = replace(START, offset=len(TEXT))
    builder.build(at_end, 8192)
    assert not any(builder.build(each, 8192).rebuilt for each in typing(at_end, "\nvalue = 1\nother = value"))


def test_an_edit_above_does_not_push_the_window_out_of_the_snapshot() -> None:
    builder = ContextBuilder(ExactCounter(TOKENIZER))
    first = builder.build(START, 8192)
    added = "import something\n" * 20
    below = replace(START, text=added + TEXT, offset=MIDDLE + len(added))
    assert front(builder.build(below, 8192)) == front(first)


def test_a_quarter_of_changed_text_takes_a_new_snapshot_and_keeps_related_code() -> None:
    builder = ContextBuilder(ExactCounter(TOKENIZER))
    first = builder.build(START, 8192)
    size = sum(len(each.text) for each in first.parts.far)
    steps = typing(START, TYPED[: size // 4 + 40])[::40]

    built = [builder.build(each, 8192) for each in steps]

    assert [each.rebuilt for each in built].count(True) == 1
    assert "a quarter of the snapshot was rewritten" in built[-1].accounts[1].why
    assert built[-1].parts.related == first.parts.related


def test_a_stream_that_outgrows_its_room_starts_anew_with_the_snapshot() -> None:
    builder = ContextBuilder(ExactCounter(TOKENIZER))
    hunks: tuple[Hunk, ...] = ()
    for number in range(200):
        hunks = (*hunks, Hunk("argparse.py", number, f"old_value = {number}\n", f"new_value = {number}\n"))
        built = builder.build(replace(START, hunks=hunks), 8192)
        assert built.parts.edits == hunks[len(hunks) - len(built.parts.edits) :]
        if built.rebuilt and number:
            assert "the edits outgrew their room" in built.accounts[1].why
            break
    else:
        raise AssertionError("the stream never started anew")
    assert number > 20
    assert len(built.parts.edits) <= number * 0.6


def test_edits_that_the_history_let_go_start_the_stream_anew() -> None:
    builder = ContextBuilder(ExactCounter(TOKENIZER))
    hunks = tuple(Hunk("argparse.py", number, "", f"value = {number}\n") for number in range(20))
    builder.build(replace(START, hunks=hunks), 8192)
    built = builder.build(replace(START, hunks=hunks[10:], hops=1), 8192)
    assert built.rebuilt
    assert built.parts.edits == hunks[10:]


def test_rules_that_changed_make_it_forget_what_it_showed() -> None:
    builder = ContextBuilder(ExactCounter(TOKENIZER))
    builder.build(START, 8192)
    builder.clear()
    assert builder.build(replace(START, related=()), 8192).parts.related == ()


def test_pieces_of_a_snapshot_follow_one_another_and_are_its_lines() -> None:
    far = ContextBuilder(EstimateCounter()).build(START, 8192).parts.far
    assert len(far) > 1
    assert "".join(each.text for each in far) in TEXT
    assert all(one.start_line + one.text.count("\n") == two.start_line for one, two in pairwise(far))
    assert TEXT.splitlines(keepends=True)[far[0].start_line :][:1] == far[0].text.splitlines(keepends=True)[:1]
