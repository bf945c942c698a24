"""Answers are cut back to what fits their hole, streamed as plain; `before├answer┤after`, and what is left of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.suggest.editor import editing
from tests.suggest.rule import TEXTS, Case, broken, errors, hostile
from tests.suggest.scripted_engine import ScriptedEngine

from calomel.infer.cleaning import Hole, clean, hole_of
from calomel.infer.completer import Fill, FillRequest
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import Tokenizer
from calomel.suggest.edit import Suggestion
from calomel.suggest.silence import Silence
from calomel.workspace.edits import apply
from calomel.workspace.syntax import SyntaxTrees

CUT = {
    "a repeated word": ("a.py", "def f(a):\n    return ├return a * 2┤\n", "a * 2"),
    "an object named again": ("a.py", "def f(self):\n    x = self.├self.names┤\n", "names"),
    "a dictionary left open": ("a.py", 'rows.├append({"name": name, "price": price┤\n', "append"),
    "half a string": ("a.py", "x = ├name + 'abc┤\n", "name"),
    "the lines behind": ("a.py", "def f():\n    ├x = 1\n    return x┤\n    return x\n", "x = 1"),
    "a list with half an item": ("a.py", "x = [\n    ├1,\n    f(2┤\n]\n", "1,"),
    "a statement behind a function": ("a.go", "package a\n\nfunc f() {\n}\n\n├return nil┤\n", ""),
    "a method in a function": ("a.py", "class A:\n    def f(self):\n        x = 1\n        ├def add(self):┤\n", ""),
    "half a comment": ("a.py", "def add(a, b):\n    return ├ # type: ignore[attr-┤\n", ""),
    "an operator too many": ("a.py", "x = ├= items┤\n", ""),
    "a bracket that follows": ("a.py", "x = f(├a, bar)┤, bar)\n", "a"),
    "another bracket closed": ("a.py", "x = ├f(a]┤\n", ""),
    "a half of a call before a word": ("a.py", "def f(items):\n    if ├len(┤items:\n        pass\n", ""),
    "a bracket of a template that follows": ("a.ts", "const a = b;\nconst c = `/${├b}`;┤}`;\n", "b"),
    "a statement's end that follows": ("a.ts", "const a = 1;\nconst b = ├a + 1;┤;\n", "a + 1"),
    "an item's end that follows": ("a.py", "x = f(├a,┤, b)\n", "a"),
    "a bracket and a statement's end": ("a.ts", "const x = f(├a);┤)\n", "a"),
    "an indentation that is there": ("a.py", "def f(x):\n    ├    return x┤\n", "return x"),
    "the same, two deep": ("a.py", "def f(x):\n    if x:\n        ├        return x┤\n", "return x"),
    "an indentation deeper than the line above": ("a.py", "def f(x):\n    y = x\n    ├    return y┤\n", "return y"),
    "a call without a name": (None, "const x = 1;\nconst y = ├f(() => { g(┤;\n", "f"),
}


KEPT = {
    "a call": ("a.py", "x = ├f(1, [2])┤\n"),
    "what the suffix closes": ("a.py", "x = ├[┤\n    1,\n]\n"),
    "text in a string": ("a.py", 'x = "the ├answer (as┤ it is"\n'),
    "a comment": ("a.py", "x = 1  # ├isn't (so┤\n"),
    "a block and its first line": ("a.ts", "├it('x', () => {\n  f();┤\n"),
    "the end of a block": ("a.ts", "  f();\n├}┤\n\nfunction g() {}\n"),
    "prose": (None, "Once upon a ├time (there was┤"),
}


SEAMS = {
    "the blank before a word": ("a.py", "people = []\nfor person ├in┤people:\n    pass\n", "in "),
    "the blank before a keyword": ("a.py", "for line in x:\n    if line ├is┤None:\n        pass\n", "is "),
    "the blank behind a keyword": (
        "a.py",
        "def f(area):\n    return area\n\n\ndef g(area):\n    return├area┤\n",
        " area",
    ),
    "tabs for blanks": ("a.go", "func f() {\n\tx()\n\t├if a {\n        b()\n    }┤\n}\n", "if a {\n\t\tb()\n\t}"),
    "blanks for tabs": ("a.py", "if x:\n    y()\n├if y:\n\tpass┤\n", "if y:\n    pass"),
    "two blanks for a tab": ("a.ts", "if (x) {\n  y();\n}\n├if (y) {\n\tx();\n}┤\n", "if (y) {\n  x();\n}"),
    "two blanks for four": (
        "a.py",
        "def f(x):\n  if x:\n    y()\n  if y:\n    z()\n  ├while x:\n      x = g(x)\n      if x:\n          h()┤\n",
        "while x:\n    x = g(x)\n    if x:\n      h()",
    ),
    "four blanks for two": (
        "a.ts",
        "if (x) {\n    y();\n}\nif (z) {\n    y\n}\nif (a) {\n    b();\n}\n├if (y) {\n  if (x) {\n    x();\n  }\n}┤\n",
        "if (y) {\n    if (x) {\n        x();\n    }\n}",
    ),
    "an answer that begins at the margin": (
        "a.py",
        "class A:\n    def f(self):\n        ├if x:\n    y()\nelse:\n    z()┤\n",
        "if x:\n            y()\n        else:\n            z()",
    ),
    "one with braces": (
        "a.ts",
        "class A {\n  f() {\n    ├if (x) {\n  y();\n}┤\n  }\n}\n",
        "if (x) {\n      y();\n    }",
    ),
    "one behind the half of a head": (
        "a.go",
        "func f() {\n\tif a {\n\t\tif ├b {\n\tc()\n}┤\n\t}\n}\n",
        "b {\n\t\t\tc()\n\t\t}",
    ),
    "the line end in a docstring": (
        "a.py",
        '"""How much.\n\nOf several lines, the ├complete\n┤ones are kept; of a single one.\n"""\n\nimport re\n',
        "complete\n",
    ),
    "the tab of a recipe": ("Makefile", "all: a\n\tcc\n\na: b\n├    cc -o a┤\n", "\tcc -o a"),
}


def hole(path: str | None, case: str) -> tuple[Hole, str]:
    before, _, rest = case.partition("├")
    answer, _, after = rest.partition("┤")
    return hole_of(before, after, path), answer


@pytest.mark.parametrize(("path", "case", "left"), CUT.values(), ids=CUT)
def test_what_does_not_fit_is_cut_off(path: str | None, case: str, left: str) -> None:
    place, answer = hole(path, case)
    assert clean(answer, place) == left


@pytest.mark.parametrize(("path", "case", "made"), SEAMS.values(), ids=SEAMS)
def test_an_answer_joins_what_stands_around_it(path: str | None, case: str, made: str) -> None:
    place, answer = hole(path, case)
    assert clean(answer, place) == made


@pytest.mark.parametrize(("path", "case"), KEPT.values(), ids=KEPT)
def test_what_fits_stays(path: str | None, case: str) -> None:
    place, answer = hole(path, case)
    assert clean(answer, place) == answer


@pytest.mark.parametrize(
    ("case", "left"),
    [
        ("def area(width, height):\n    return ├width * hei┤\n", "width"),
        ("def add(a, b):\n    ├c = a + b\n    ret┤\n", "c = a + b"),
        ("def add(a, b):\n    return ├f(a) ┤\n", "f(a) "),
    ],
)
def test_an_answer_that_was_cut_ends_with_a_whole_word(case: str, left: str) -> None:
    place, answer = hole("a.py", case)
    assert clean(answer, place, ended=False) == left


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
