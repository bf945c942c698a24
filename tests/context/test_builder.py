from __future__ import annotations

import random
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calomel.weights
from calomel.context.budget import MAX_BUDGET, EstimateCounter, ExactCounter, TokenCounter, default_budget
from calomel.context.builder import BuiltContext, ContextBuilder
from calomel.prompts.own import ContextRenderer
from calomel.prompts.parts import Excerpt, Hunk
from calomel.prompts.tokenizer import Tokenizer
from calomel.workspace.workspace import Situation

TOKENIZER = Tokenizer.from_file(Path(calomel.weights.nano_path()) / "tokenizer.json")
TEXT = Path(sysconfig.get_path("stdlib"), "argparse.py").read_text(encoding="utf-8")
URI = "file:///w/argparse.py"


def situation(
    text: str, offset: int, *, hunks: tuple[Hunk, ...] = (), related: tuple[Excerpt, ...] = (), hops: int = 0
) -> Situation:
    return Situation(URI, "argparse.py", "python", text, offset, 0, hunks, hops, related)


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
    assert built.tokens <= budget
    # Nothing that was built is left out when it is rendered.
    assert shared(ids, Reader(32768).renderer.render(built.parts, 32768).context) == len(ids)


def test_a_large_budget_is_used() -> None:
    _, ids = Reader(8192).read(situation(TEXT, line_start(TEXT, 1400), related=RELATED))
    assert len(ids) > 6000


@pytest.mark.parametrize("budget", [2048, 8192])
def test_the_same_calls_give_the_same_bytes(budget: int) -> None:
    offsets = [line_start(TEXT, line) for line in (100, 900, 120, 2000)]
    one, other = Reader(budget), Reader(budget)
    assert [one.read(situation(TEXT, at)) for at in offsets] == [other.read(situation(TEXT, at)) for at in offsets]


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


def test_a_settled_edit_changes_the_window_alone() -> None:
    reader = Reader(8192)
    at = line_start(TEXT, 1400)
    hunks = (Hunk("argparse.py", 900, "old\n", "new\n"),)
    built, before = reader.read(situation(TEXT, at, related=RELATED, hunks=hunks))
    text = TEXT[: at - 2000] + "x = 1\n" + TEXT[at - 2000 :]
    more = (*hunks, Hunk("argparse.py", 1380, "", "x = 1\n"))
    after_built, after = reader.read(situation(text, at + 6, related=RELATED, hunks=more))
    front = sum(account.tokens for account in built.accounts[:3])
    assert not after_built.rebuilt
    assert shared(before, after) >= front


def test_a_jump_in_the_same_file_keeps_related_code_and_snapshot() -> None:
    reader = Reader(32768)
    built, before = reader.read(situation(TEXT, line_start(TEXT, 1400), related=RELATED))
    after_built, after = reader.read(situation(TEXT, line_start(TEXT, 1000), related=RELATED))
    front = sum(account.tokens for account in built.accounts[:3])
    assert not after_built.rebuilt
    assert shared(before, after) >= front > 8000


def test_a_jump_out_of_the_snapshot_takes_another_one_and_keeps_related_code() -> None:
    reader = Reader(8192)
    built, before = reader.read(situation(TEXT, line_start(TEXT, 1400), related=RELATED))
    after_built, after = reader.read(situation(TEXT, line_start(TEXT, 100), related=RELATED))
    assert after_built.rebuilt
    assert shared(before, after) >= built.accounts[0].tokens > 1000


def test_a_file_that_was_rewritten_gets_a_new_snapshot() -> None:
    reader = Reader(32768)
    at = line_start(TEXT, 1400)
    reader.read(situation(TEXT, at))
    other = TEXT.replace("    ", "  ")
    built, _ = reader.read(situation(other, line_start(other, 1400)))
    assert built.rebuilt


def test_the_stream_of_edits_grows_until_its_older_half_goes() -> None:
    reader = Reader(2048)
    hunks: tuple[Hunk, ...] = ()
    starts = []
    for step in range(40):
        hunks = (*hunks, Hunk("argparse.py", step, f"old value {step}\n", f"new value {step}\n"))
        built, _ = reader.read(situation(TEXT, 5000, hunks=hunks))
        starts.append(len(hunks) - len(built.parts.edits))
        assert built.parts.edits == hunks[starts[-1] :]
    assert starts == sorted(starts)
    assert len(set(starts)) <= 8
    assert starts[-1] > 0


def test_the_best_excerpts_are_kept() -> None:
    small = Reader(2048).read(situation(TEXT, 40_000, related=RELATED))[0]
    assert small.parts.related == RELATED[len(RELATED) - len(small.parts.related) :]
    assert "left out" in small.accounts[0].why


def test_a_small_file_is_seen_whole() -> None:
    text = "def f(a):\n    return a\n"
    built, _ = Reader(2048).read(situation(text, 10))
    assert (built.parts.prefix, built.parts.suffix, built.parts.far) == (text[:10], text[10:], ())


def test_windows_begin_and_end_at_lines() -> None:
    at = line_start(TEXT, 1400) + 7
    built, _ = Reader(1024).read(situation(TEXT, at))
    start, end = at - len(built.parts.prefix), at + len(built.parts.suffix)
    assert TEXT[start - 1] == "\n"
    assert TEXT[end - 1] == "\n"


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


def test_a_context_is_as_long_as_pays_for_the_model() -> None:
    limit = default_budget(positions=32_768, supported=2048, answer_tokens=64)
    assert limit.tokens == 2048
    assert "pays" in limit.why


def test_the_answer_needs_positions_too() -> None:
    limit = default_budget(positions=1024, supported=8192, answer_tokens=64)
    assert limit.tokens == 960
    assert "1,024 positions" in limit.why


def test_what_the_user_wants_goes_before_what_is_supported() -> None:
    limit = default_budget(positions=65_536, supported=2048, answer_tokens=64, wanted=16_000)
    assert (limit.tokens, limit.why) == (16_000, "asked for")
    assert default_budget(positions=65_536, supported=2048, answer_tokens=64, wanted=60_000).tokens == MAX_BUDGET
