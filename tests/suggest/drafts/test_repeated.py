from __future__ import annotations

from tests.suggest.drafts.moment import Moment

TESTS = "def test_a():\n    run()\n\ndef test_b():\n    run()\n\ndef test_c():\n    run()\n"


def test_a_mark_is_put_on_the_others() -> None:
    moment = Moment(TESTS, ("def test_a", "@slow\ndef test_a"))
    assert moment.results() == ["@slow", "@slow"]
    rust = "struct A;\n\nstruct B;\n"
    assert Moment(rust, ("struct A", "#[derive(Debug)]\nstruct A")).results() == ["#[derive(Debug)]"]


def test_lines_added_beside_two_alike_lines_are_added_beside_the_third() -> None:
    text = "a = load('a')\nx()\nb = load('b')\ny()\nc = load('c')\nz()\n"
    moment = Moment(text, ("load('a')\n", "load('a')\na.check()\n"), ("load('b')\n", "load('b')\nb.check()\n"))
    assert moment.results()[0] == "c.check()"


def test_one_new_statement_is_only_new() -> None:
    text = "a = load('a')\nx()\nb = load('b')\n"
    assert Moment(text, ("load('a')\n", "load('a')\nlog(a)\n")).results() == []


def test_imports_are_not_repeated() -> None:
    assert Moment("import os\n\nimport sys\n\nimport json\n", ("import os\n", "import os\nimport re\n")).results() == []
