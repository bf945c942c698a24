from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.unbalanced import unbalanced

PYTHON_DROPPED = {
    "a bracket that stays open": "f(├g(1┤)\n",
    "one closed too often": "x = f(1├))┤\n",
    "one closed that the next lines close": "x = f(\n    1├)┤\n)\n",
    "another one closed": "x = f(1├]┤\n",
    "a quote that stays open": "x = f(├'abc┤)\n",
    "a string of several lines that stays open": '‸def f():\n    ├"""Do it.\n┤    return 1\n',
    "an edit": "⌈x = f(‸1├)→┤\ny = 2\n⌉",
    "one of two edits": "⌈├a→b┤‸\nx = f(├1)→1┤\n⌉",
    "behind letters beyond ASCII": "x = 'é😀' + f(├g(1┤)\n",
    "in an empty file": "├f(1))┤",
}
PYTHON_KEPT = {
    "a call": "x = ├f(1, [2, 3])┤\n",
    "what was open is closed": "x = f(├1)┤\n",
    "half of a call, as it was": "x = f(├1, 2┤\n",
    "a list opened at the end of a line": "x = ├[┤\n",
    "a call with its first line": "x = ├f(\n    first,┤\n",
    "a dictionary in a call": "x = ├f({┤\n",
    "half of a line": "x = f├(1, g(2┤\n",
    "half of a string": "x = ├'abc┤\n",
    "a bracket in a string": "x = ├'('┤\n",
    "a bracket in a comment": "x = 1  # ├see (1┤\n",
    "a bracket in a docstring": '"""Text\n├more (and┤\n"""\n',
    "an apostrophe in a docstring": '"""Text\n\n├It isn\'t.┤\n"""\nx = f(1)\n',
    "a docstring closed": 'def f():\n    """Do├ it."""┤\n',
    "a string closed": "x = 'ab├c'┤\n",
    "what closes several lines": "x = f(\n    1,\n├)┤\n",
    "two edits that go together": "⌈‸├→f(┤x├→)┤\n⌉",
    "an edit that mends": "⌈x = f(1├→)┤‸\n⌉",
    "behind letters beyond ASCII": "x = 'é' + ├f('(é')┤\n",
    "in an empty file": "├f(1)┤",
}
OTHERS_DROPPED = {
    "typescript": "const x = f(├g(1┤);\n",
    "javascript": "const x = ├`abc┤;\nf();\n",
    "go": "x := f(├1}┤\n",
    "rust": "let x = vec![├f(1┤];\n",
    "java": "x = f(1├))┤;\n",
    "c": "x = ├'a┤;\n",
    "json": '{"a": ├[1┤}\n',
}
OTHERS_KEPT = {
    "typescript": "if (x) ├{┤\n",
    "javascript": "const p = ├/[(]/┤;\n",
    "typescriptreact": "return <p>├Don't┤</p>;\n",
    "go": "├// see (1\nx := `(`┤\n",
    "rust": "fn f<├'a>(x: &'a str┤) {}\n",
    "java": '├String s = """\n  (\n  """;┤\n',
    "c": "├char c = '(';┤\n",
    "markdown": "├It's (so┤\n",
    "": "├(┤\n",
}


@pytest.mark.parametrize("case", PYTHON_DROPPED.values(), ids=PYTHON_DROPPED)
def test_what_has_no_counterpart_is_dropped(case: str) -> None:
    assert drops(unbalanced, case)


@pytest.mark.parametrize("case", PYTHON_KEPT.values(), ids=PYTHON_KEPT)
def test_what_is_balanced_or_goes_on_stays(case: str) -> None:
    assert not drops(unbalanced, case)


@pytest.mark.parametrize(("language_id", "case"), OTHERS_DROPPED.items(), ids=OTHERS_DROPPED)
def test_other_languages_have_counterparts_too(language_id: str, case: str) -> None:
    assert drops(unbalanced, case, language_id)


@pytest.mark.parametrize(("language_id", "case"), OTHERS_KEPT.items(), ids=OTHERS_KEPT)
def test_every_language_has_its_own_strings_and_comments(language_id: str, case: str) -> None:
    assert not drops(unbalanced, case, language_id)


def test_what_is_open_far_above_may_be_closed() -> None:
    far = "    step(1)\n" * 1000
    assert not drops(unbalanced, f"class A {{\n{far}├}}┤\n", "typescript")


def test_a_mistake_far_away_is_nobodys_fault() -> None:
    far = "step(1)\n" * 1000
    assert not drops(unbalanced, f"x = f(\n{far}y = ├f(1)┤\n{far}z = )\n")
