from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import calomel.weights
from calomel.prompts.context import ContextRenderer, diff_text
from calomel.prompts.fim import FimPrompt, render
from calomel.prompts.parts import EditRegion, Excerpt, Hunk, PromptParts
from calomel.prompts.tokenizer import Tokenizer

TEXTS = st.text(st.sampled_from(list("abc x=()\n\t<|end|>file😀")), max_size=80)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(Path(calomel.weights.nano_path()) / "tokenizer.json")


@pytest.fixture(scope="module")
def renderer(tokenizer: Tokenizer) -> ContextRenderer:
    return ContextRenderer(tokenizer)


def ids(tokenizer: Tokenizer, *pieces: str | int) -> list[int]:
    return [token for piece in pieces for token in ([piece] if isinstance(piece, int) else tokenizer.encode(piece))]


@given(prefix=TEXTS, suffix=TEXTS, path=st.none() | st.just("a/b.py"), room=st.integers(8, 300))
def test_a_bare_window_is_the_fill_in_the_middle_prompt(
    tokenizer: Tokenizer, renderer: ContextRenderer, prefix: str, suffix: str, path: str | None, room: int
) -> None:
    parts = PromptParts(path=path, prefix=prefix, suffix=suffix)
    assert renderer.render(parts, room) == render(FimPrompt(prefix, suffix, path, room), tokenizer)


def test_parts_stand_in_their_order_with_their_names(tokenizer: Tokenizer, renderer: ContextRenderer) -> None:
    parts = PromptParts(
        related=(Excerpt("b.py", 3, "import b\n"),),
        far=(Excerpt("a.py", 0, "import a\n"),),
        edits=(Hunk("a.py", 4, "x = 1\n", "x = 2\n"), Hunk("a.py", 9, "", "y\n"), Hunk("b.py", 1, "z\n", "")),
        path="a.py",
        prefix="def f",
        suffix="():\n",
    )
    t = tokenizer
    expected = ids(t, t.file, "b.py", t.prefix, "import b\n", t.file, "a.py", t.prefix, "import a\n")
    expected += ids(t, t.file, "a.py", t.prefix, "-x = 1\n+x = 2\n", "+y\n", t.file, "b.py", t.prefix, "-z\n")
    window = render(FimPrompt("def f", "():\n", "a.py", 512), t)
    found = renderer.render(parts, 512)
    assert found.context == (*expected, *window.context)
    assert found.reuse == len(expected) + window.reuse


def test_a_line_without_an_end_gets_one_in_an_edit() -> None:
    assert diff_text(Hunk("a", 0, "a\nb", "c\r\n")) == "-a\n-b\n+c\n"


def test_what_does_not_fit_is_left_out_from_the_least_useful_on(
    tokenizer: Tokenizer, renderer: ContextRenderer
) -> None:
    related = tuple(Excerpt(f"r{number}.py", 0, "value = 1\n" * 5) for number in range(3))
    edits = tuple(Hunk("a.py", number, "old\n", "new\n") for number in range(3))
    parts = PromptParts(related=related, edits=edits, path="a.py", prefix="x = ", suffix="\n")
    whole = len(renderer.render(parts, 4096).context)
    sizes = [len(renderer.render(parts, room).context) for room in range(whole, 20, -1)]
    assert all(size <= room for size, room in zip(sizes, range(whole, 20, -1), strict=True))
    without_one = renderer.render(parts, whole - 1)
    assert without_one == renderer.render(PromptParts(related[1:], (), edits, "a.py", "x = ", "\n"), 4096)
    bare = len(render(FimPrompt("x = ", "\n", "a.py", 4096), tokenizer).context)
    newest = renderer.render(PromptParts((), (), edits[2:], "a.py", "x = ", "\n"), 4096)
    assert renderer.render(parts, len(newest.context)) == newest
    assert len(renderer.render(parts, bare).context) <= bare


@given(
    sizes=st.lists(st.tuples(st.sampled_from(["a.py", "b.py"]), st.integers(0, 3), st.booleans()), max_size=8),
    room=st.integers(0, 120),
)
def test_as_many_of_the_last_excerpts_are_taken_as_fit_with_the_headings_that_they_need(
    renderer: ContextRenderer, sizes: list[tuple[str, int, bool]], room: int
) -> None:
    excerpts: list[Excerpt] = []
    for path, lines, goes_on in sizes:
        last = excerpts[-1] if excerpts and goes_on else Excerpt(path, 100 * len(excerpts), "")
        start = last.start_line + last.text.count("\n")
        excerpts.append(Excerpt(last.path, start, "x = 1\n" * lines))
    firsts = range(len(excerpts) + 1)
    expected = next(first for first in firsts if renderer.excerpts_tokens(excerpts[first:]) <= room)

    assert renderer._last_excerpts(excerpts, room) == [
        token for piece in renderer._pieces(excerpts[expected:]) for token in piece
    ]


@given(TEXTS)
def test_no_text_forges_a_marker(tokenizer: Tokenizer, renderer: ContextRenderer, text: str) -> None:
    parts = PromptParts((Excerpt(text, 0, text),), (Excerpt("a", 0, text),), (Hunk(text, 0, text, text),), "a", "", "")
    found = renderer.render(parts, 4096).context
    special = {tokenizer.file, tokenizer.prefix, tokenizer.near, tokenizer.middle, tokenizer.suffix, tokenizer.end}
    marks = [token for token in found if token in special]
    heading = [tokenizer.file, tokenizer.prefix]
    # One heading for each: related, far, edits, window.
    assert marks == [*heading * 4, tokenizer.near, tokenizer.middle]


def test_edits_take_half_of_a_small_prompt_about_a_region_before_the_window(
    tokenizer: Tokenizer, renderer: ContextRenderer
) -> None:
    edits = tuple(Hunk("a.py", line, f"x{line} = 1\n", f"x{line} = 2\n") for line in range(40))
    parts = PromptParts(path="a.py", edits=edits, prefix="y = 3\n" * 300, region=EditRegion("z = 4\n", 0))
    found = renderer.render(parts, 200)
    assert len(found.context) <= 200
    text = tokenizer.decode(found.context)
    assert "-x39 = 1\n+x39 = 2\n" in text
    assert "x0 = 1" not in text
    assert text.count("y = 3\n") > 8
