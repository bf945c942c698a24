"""One table of answers and of what is inserted, in many languages; its head explains its marks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.suggest.editor import editing
from tests.suggest.rule import TEXTS, Case, broken, errors, hostile
from tests.suggest.scripted_engine import ScriptedEngine

from calomel.infer.cleaning import clean, hole_of
from calomel.infer.completer import Fill, FillRequest
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import Tokenizer
from calomel.suggest.edit import Suggestion
from calomel.suggest.silence import Silence
from calomel.workspace.edits import apply
from calomel.workspace.syntax import SyntaxTrees

_TABLE = Path(__file__).with_name("cleaning.txt")
_CASES = {
    f"{cells[0][2:].strip()}, {cells[1].strip()}": (
        cells[1].strip() or None,
        cells[2],
        cells[3][1:] if row[0] == "+" else None,
    )
    for row in _TABLE.read_text(encoding="utf-8").splitlines()
    if row[:2] in {"+ ", "- "}
    for cells in [[cell.removesuffix(" ") for cell in row.split("│")]]
}


def read(case: str, made: str | None, line_end: str = "\n") -> tuple[str, str, str, str]:
    """The text before the cursor, the answer, the text after the cursor and what is inserted."""
    before, _, rest = case[1:].partition("├")
    answer, _, after = rest.partition("┤")
    texts = [each.replace("↵", line_end).replace("⇥", "\t") for each in (before, answer, after, made or "")]
    return texts[0], texts[1], texts[2], texts[1] if made is None else texts[3]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(("path", "case", "made"), _CASES.values(), ids=_CASES)
def test_an_answer_is_inserted_as_it_fits_the_text_before_it(
    path: str | None, case: str, made: str | None, line_end: str
) -> None:
    before, answer, after, wanted = read(case, made, line_end)
    assert clean(answer, hole_of(before, after, path)) == wanted


@pytest.mark.parametrize(("path", "case", "made"), _CASES.values(), ids=_CASES)
async def test_what_is_streamed_of_an_answer_is_what_is_inserted(
    path: str | None, case: str, made: str | None, tokenizer: Tokenizer
) -> None:
    before, answer, after, wanted = read(case, made)
    parts = PromptParts(path=path, prefix=before, suffix=after)
    asked = FillRequest("fill", parts, max_tokens=200, fitted=True, recall=False, whole_word=False)
    *pieces, last = [piece async for piece in ScriptedEngine(tokenizer, answer).filler().stream(asked)]
    assert "".join(map(str, pieces)) == wanted
    assert getattr(last, "text", None) == wanted


_IN_AN_EDITOR = ("a function, a.py", "a statement, a.py", "a value, a.py", "statements, a.py", "a method, a.ts")


@pytest.mark.parametrize("name", [*_IN_AN_EDITOR, "a comment, a.py", "one of Python, a.py"])
async def test_an_editor_is_offered_the_same(name: str) -> None:
    path, case, made = _CASES[name]
    before, answer, after, wanted = read(case, made)
    async with editing("|", answer) as editor:
        editor.workspace.syntax = SyntaxTrees(parse_seconds=60.0)
        editor.open(before + after, "python" if (path or "").endswith(".py") else "typescript", len(before))
        assert editor.after(await editor.inline()) == before + wanted + after


# Answers of any kind, cut back to what fits their hole, streamed as plain.
@pytest.mark.parametrize(
    ("before", "answer", "left"),
    [
        ("def area(width, height):\n    return ", "width * hei", "width"),
        ("def add(a, b):\n    ", "c = a + b\n    ret", "c = a + b"),
        ("def add(a, b):\n    return ", "f(a) ", "f(a) "),
    ],
)
def test_an_answer_that_was_cut_ends_with_a_whole_word(before: str, answer: str, left: str) -> None:
    assert clean(answer, hole_of(before, "\n", "a.py"), ended=False) == left


async def test_what_may_yet_repeat_the_text_behind_is_not_streamed(tokenizer: Tokenizer) -> None:
    hole = FillRequest(
        "fill",
        PromptParts(path="a.rs", prefix="/// As many as it ever held", suffix=".\npub struct Stack<T> {\n}\n"),
        max_tokens=64,
        fitted=True,
    )
    filler = ScriptedEngine(tokenizer, " in all.\npub struct Stack<T").filler()
    pieces = [piece async for piece in filler.stream(hole)]
    last = pieces.pop()
    assert isinstance(last, Fill)
    assert "".join(map(str, pieces)) == last.text == " in all"


@settings(deadline=None, max_examples=100)
@given(case=hostile())
async def test_whatever_a_model_says_an_editor_is_offered_nothing_that_breaks_the_rule(case: Case) -> None:
    async with editing("|", case.says) as editor:
        editor.workspace.syntax = SyntaxTrees(parse_seconds=60.0)
        editor.open(case.prefix + case.suffix, case.language_id, len(case.prefix))
        answer = await editor.inline()
        if isinstance(answer, Silence):
            return
        assert isinstance(answer, Suggestion)
        made = apply(case.prefix + case.suffix, answer.edits)
        assert broken(case, made[len(case.prefix) : len(made) - len(case.suffix)]) == ""


_ROOT = Path(__file__).parents[2]
FILES = {
    path: (_ROOT / path).read_text(encoding="utf-8")
    for path in (
        *("editors/neovim/lua/calomel/render.lua", "editors/vscode/src/inline.ts", "editors/zed/src/lib.rs"),
        *("eval/calomel/replay/page.css", "eval/calomel/replay/page.js", "eval/calomel/replay/page.html"),
        *("lsp/calomel/infer/fitting.py", "model/calomel/code/languages.toml", "tests/editors/agent.el"),
        *("tests/tools/from-debian.bash", "editors/vscode/package.json", "Makefile", "docs/zed.md"),
    )
} | {path: text for path, text in TEXTS.items() if path.endswith((".go", ".rs"))}
_LONGEST_FILE = 60_000


@st.composite
def holes(draw: st.DrawFn) -> tuple[str, str, str, str]:
    """Some words and marks of a real file, with the file's path and what stands around them."""
    path = draw(st.sampled_from(sorted(FILES)))
    text = FILES[path][:_LONGEST_FILE]
    ends = [found.end() for found in re.finditer(r"\w+|[ \t]+|([^\w\s])\1*|\s", text)]
    first = draw(st.integers(0, len(ends) - 2))
    start, end = ends[first], ends[min(len(ends) - 1, first + draw(st.integers(1, 24)))]
    return path, text[:start], text[start:end], text[end:]


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hole=holes())
def test_what_an_author_of_any_language_wrote_is_cut_at_most(
    hole: tuple[str, str, str, str], tokenizer: Tokenizer
) -> None:
    path, prefix, middle, suffix = hole
    asked = FillRequest(
        "fill", PromptParts(path=path, prefix=prefix, suffix=suffix), max_tokens=400, fitted=True, whole_word=False
    )
    assert middle.startswith(ScriptedEngine(tokenizer, middle).filler().fill(asked).text)


@pytest.mark.parametrize(
    ("text", "says", "made"),
    [
        ("people = []\nfor person |people:\n    pass\n", "in ", "people = []\nfor person in people:\n    pass\n"),
        ("def f(x):\n    if x is |None:\n        pass\n", "not", "def f(x):\n    if x is not None:\n        pass\n"),
        ("def f(x):\n    |\n", "    return x", "def f(x):\n    return x\n"),
        ("def f(items):\n    if |items:\n        pass\n", "len(", ""),
    ],
)
async def test_an_editor_is_offered_text_that_joins_what_stands_around_it(text: str, says: str, made: str) -> None:
    async with editing(text, says) as editor:
        editor.workspace.syntax = SyntaxTrees(parse_seconds=60.0)
        assert editor.after(await editor.inline()) == made


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=hostile())
def test_what_the_author_wrote_is_not_touched(case: Case, tokenizer: Tokenizer) -> None:
    filler = ScriptedEngine(tokenizer, case.middle).filler()
    said = filler.fill(
        FillRequest(
            "fill", PromptParts(path=case.path, prefix=case.prefix, suffix=case.suffix), max_tokens=200, fitted=True
        )
    ).text
    assert said == case.middle
    assert errors(case, case.prefix + said + case.suffix) == 0
