"""What the model sees: within a budget, and so that its beginning stays as long as it can."""

from __future__ import annotations

import random
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calomel.weights
from calomel.context.builder import BuiltContext, ContextBuilder
from calomel.context.window import EstimateCounter, ExactCounter, TokenCounter
from calomel.prompts.own import ContextRenderer
from calomel.prompts.parts import Excerpt, Hunk
from calomel.prompts.tokenizer import Tokenizer
from calomel.workspace.workspace import Situation

LIBRARY = Path(sysconfig.get_path("stdlib"))
TOKENIZER = Tokenizer.from_file(Path(calomel.weights.nano_path()) / "tokenizer.json")
TEXT = (LIBRARY / "argparse.py").read_text(encoding="utf-8")
TYPED = (LIBRARY / "textwrap.py").read_text(encoding="utf-8")
MIDDLE = TEXT.index("def add_argument(")


def excerpts(name: str, lines: int = 600) -> tuple[Excerpt, ...]:
    text = (LIBRARY / f"{name}.py").read_text(encoding="utf-8").splitlines(keepends=True)[:lines]
    return tuple(Excerpt(f"lib/{name}.py", at, "".join(text[at : at + 40])) for at in range(0, len(text), 40))


AST, INSPECT = excerpts("ast"), excerpts("inspect")
START = Situation("file:///w/argparse.py", "argparse.py", "python", TEXT, MIDDLE, related=AST)


def situation(text: str, offset: int, hunks: tuple[Hunk, ...] = (), related: tuple[Excerpt, ...] = ()) -> Situation:
    return replace(START, text=text, offset=offset, hunks=hunks, related=related)


class Reader:
    """A builder, and the token ids that a model would get."""

    def __init__(self, budget: int, counter: TokenCounter | None = None) -> None:
        self.budget = budget
        self.builder = ContextBuilder(counter or ExactCounter(TOKENIZER))
        self.renderer = ContextRenderer(TOKENIZER)

    def read(self, found: Situation) -> tuple[BuiltContext, tuple[int, ...]]:
        built = self.builder.build(found, self.budget)
        return built, self.renderer.render(built.parts, self.budget).context


def shared(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def line_start(text: str, line: int) -> int:
    return sum(map(len, text.splitlines(keepends=True)[:line]))


RELATED = tuple(Excerpt(f"pkg/other{number}.py", 0, TEXT[number * 900 : number * 900 + 900]) for number in range(8))


@pytest.mark.parametrize("budget", [512, 2048, 8192, 32768])
def test_a_context_fits_its_budget_and_says_what_became_of_each_part(budget: int) -> None:
    built, ids = Reader(budget).read(situation(TEXT, line_start(TEXT, 1400), related=RELATED))
    assert len(ids) <= budget
    assert [account.part for account in built.accounts] == ["related", "far", "edits", "suffix", "prefix"]
    assert all(account.why for account in built.accounts)
    assert sum(account.tokens for account in built.accounts) <= budget
    assert budget != 8192 or len(ids) > 6000
    # Nothing that was built is left out when it is rendered.
    assert shared(ids, Reader(32768).renderer.render(built.parts, 32768).context) == len(ids)


@pytest.mark.parametrize("budget", [1024, 2048, 8192])
@settings(max_examples=25, deadline=None)
@given(line=st.integers(0, 2300), typed=st.text(st.sampled_from(list('abc =(.\n"')), min_size=1, max_size=12))
def test_one_more_typed_character_changes_only_the_end(budget: int, line: int, typed: str) -> None:
    reader = Reader(budget)
    at = line_start(TEXT, line)
    _, before = reader.read(situation(TEXT, at))
    kept = []
    for count in range(1, len(typed) + 1):
        text = TEXT[:at] + typed[:count] + TEXT[at:]
        _, after = reader.read(situation(text, at + count))
        # Near suffix, marks and the last pre-token change; a window that is full moves by a hop, once.
        kept.append(shared(before, after) >= len(before) - 32)
        before = after
    assert kept.count(False) <= 1


def test_a_jump_in_the_same_file_keeps_related_code_and_snapshot() -> None:
    reader = Reader(32768)
    built, before = reader.read(situation(TEXT, line_start(TEXT, 1400), related=RELATED))
    after_built, after = reader.read(situation(TEXT, line_start(TEXT, 1000), related=RELATED))
    front = sum(account.tokens for account in built.accounts[:3])
    assert not after_built.rebuilt
    assert shared(before, after) >= front > 8000


def test_who_only_looks_around_elsewhere_keeps_the_snapshot() -> None:
    reader = Reader(8192)
    near = (Hunk("argparse.py", 1390, "", "x = 1\n"),)
    for hunks in ((), near):
        _, before = reader.read(situation(TEXT, line_start(TEXT, 1400), hunks=hunks, related=RELATED))
        built, after = reader.read(situation(TEXT, line_start(TEXT, 100), hunks=hunks, related=RELATED))
        assert not built.rebuilt
        assert shared(before, after) > 0.7 * len(after)


def test_an_edit_outside_of_the_snapshot_takes_another_one_and_keeps_related_code() -> None:
    reader = Reader(8192)
    built, before = reader.read(situation(TEXT, line_start(TEXT, 1400), related=RELATED))
    there = (Hunk("argparse.py", 90, "", "x = 1\n"),)
    after_built, after = reader.read(situation(TEXT, line_start(TEXT, 100), hunks=there, related=RELATED))
    assert after_built.rebuilt
    assert shared(before, after) >= built.accounts[0].tokens > 1000


def test_the_best_excerpts_are_kept() -> None:
    small = Reader(2048).read(situation(TEXT, 40_000, related=RELATED))[0]
    assert small.parts.related == RELATED[len(RELATED) - len(small.parts.related) :]
    assert "left out" in small.accounts[0].why


def test_a_small_file_is_seen_whole() -> None:
    text = "def f(a):\n    return a\n"
    built, _ = Reader(2048).read(situation(text, 10))
    assert (built.parts.prefix, built.parts.suffix, built.parts.far) == (text[:10], text[10:], ())


def test_a_line_longer_than_the_room_is_cut() -> None:
    text = "x = [" + "1234, " * 20_000
    built, ids = Reader(1024).read(situation(text, 60_000))
    assert len(ids) <= 1024
    assert text[:60_000].endswith(built.parts.prefix)
    assert len(built.parts.prefix) > 500


def test_an_estimate_serves_while_there_is_no_tokenizer() -> None:
    built, ids = Reader(2048, EstimateCounter()).read(situation(TEXT, line_start(TEXT, 1400), related=RELATED))
    assert len(ids) <= 2048
    assert len(built.parts.prefix) > 1000


def test_a_long_session_stays_within_its_budget() -> None:
    rng = random.Random(7)
    reader, text, at = Reader(4096), TEXT, 20_000
    for _ in range(60):
        if rng.random() < 0.2:
            at = rng.randrange(len(text))
        else:
            piece = rng.choice(["x", "\n", "value", "    return self._x\n" * rng.randrange(1, 40)])
            text = text[:at] + piece + text[at:]
            at += len(piece)
        built, ids = reader.read(situation(text, at))
        assert len(ids) <= 4096
        assert text[:at].endswith(built.parts.prefix)
        assert text[at:].startswith(built.parts.suffix)


def typing(start: Situation, text: str) -> list[Situation]:
    """What is known after each character of `text`."""
    before, after = start.text[: start.offset], start.text[start.offset :]
    return [
        replace(start, text=before + text[:count] + after, offset=start.offset + count)
        for count in range(1, len(text) + 1)
    ]


def front(built: BuiltContext) -> tuple[object, ...]:
    return built.parts.related, built.parts.far


def test_other_related_code_waits_until_the_window_moves() -> None:
    builder = ContextBuilder(ExactCounter(TOKENIZER))
    first = builder.build(START, 8192)
    typed = replace(typing(START, "x")[-1], related=INSPECT)
    assert front(builder.build(typed, 8192)) == front(first)

    there = TEXT.index("class Action(")
    edited = (Hunk("argparse.py", TEXT.count("\n", 0, there), "", "x = 1\n"),)
    moved = builder.build(replace(typed, offset=there, hunks=edited), 8192)

    assert {each.path for each in moved.parts.related} == {"lib/inspect.py"}
    assert "other code matters here" in moved.accounts[0].why


@pytest.mark.parametrize("budget", [1024, 8192])
def test_related_code_that_is_found_between_keys_waits_until_the_typing_pauses(budget: int) -> None:
    builder = ContextBuilder(ExactCounter(TOKENIZER))
    text = TEXT[:1200]
    first, *typed = typing(replace(START, text=text, offset=len(text), related=(), pauses=1), "x = 1")
    parts = [builder.build(first, budget).parts]
    builder.renew()
    parts += [builder.build(replace(each, related=INSPECT), budget).parts for each in typed]
    assert {each.related for each in parts} == {()}
    assert [each.prefix for each in parts] == [parts[0].prefix + "x = 1"[1:count] for count in range(1, 6)]
    paused = builder.build(replace(typed[-1], related=INSPECT, pauses=2), budget)
    assert {each.path for each in paused.parts.related} == {"lib/inspect.py"}


def test_better_related_code_takes_the_place_of_the_first_one_once_the_typing_pauses() -> None:
    builder = ContextBuilder(ExactCounter(TOKENIZER))
    first = builder.build(START, 8192)
    builder.renew()
    typed = replace(typing(START, "x")[-1], related=INSPECT)
    assert front(builder.build(typed, 8192)) == front(first)
    paused = builder.build(replace(typed, pauses=1), 8192)
    assert {each.path for each in paused.parts.related} == {"lib/inspect.py"}


def test_a_quarter_of_changed_text_takes_a_new_snapshot_and_keeps_related_code() -> None:
    builder = ContextBuilder(ExactCounter(TOKENIZER))
    first = builder.build(START, 8192)
    size = sum(len(each.text) for each in first.parts.far)
    steps = typing(START, TYPED[: size // 4 + 40])[::40]

    built = [builder.build(each, 8192) for each in steps]

    assert [each.rebuilt for each in built].count(True) == 1
    assert "a quarter of the snapshot was rewritten" in built[-1].accounts[1].why
    assert built[-1].parts.related == first.parts.related


def test_lines_that_are_typed_and_deleted_again_change_no_snapshot() -> None:
    builder = ContextBuilder(ExactCounter(TOKENIZER))
    builder.build(START, 8192)
    there = [*typing(START, TYPED[:900]), START] * 6

    assert not any(builder.build(each, 8192).rebuilt for each in there[::60])


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
