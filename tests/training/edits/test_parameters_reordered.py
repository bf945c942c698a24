"""Parameters change places, and so do the arguments of every call."""

from __future__ import annotations

import pytest
from tests.training.edits.told import told

from calomel.training.edits.parameters_reordered import parameters_reordered

CASES = {
    "python": (
        "def scan(self_, b, size=1):\n    return b\n\n\nscan(1, 2)\nscan(f(3, 4), 5, size=6)\nscan(b=7, self_=8)\n",
        "def scan(b, self_, size=1):\n    return b\n\n\nscan(2, 1)\nscan(5, f(3, 4), size=6)\nscan(b=7, self_=8)\n",
    ),
    "typescript": (
        "class A {\n  scan(\n    a: X,\n    b: Y,\n  ) {}\n\n  run() {\n    this.scan(1, 'ü');\n  }\n}\n",
        "class A {\n  scan(\n    b: Y,\n    a: X,\n  ) {}\n\n  run() {\n    this.scan('ü', 1);\n  }\n}\n",
    ),
    "javascript": ("const scan = (a, b) => a;\nscan(1, 2);\n", "const scan = (b, a) => a;\nscan(2, 1);\n"),
    "go": (
        'package a\n\nfunc (t *T) scan(a int, b string) {\n}\n\nfunc (t *T) run() {\n\tt.scan(1, "x")\n}\n',
        'package a\n\nfunc (t *T) scan(b string, a int) {\n}\n\nfunc (t *T) run() {\n\tt.scan("x", 1)\n}\n',
    ),
    "rust": (
        (
            'impl T {\n    fn scan(&self, a: u8, b: &str) {}\n\n    fn run(&self) {\n        self.scan(1, "x");\n'
            "    }\n}\n"
        ),
        (
            'impl T {\n    fn scan(&self, b: &str, a: u8) {}\n\n    fn run(&self) {\n        self.scan("x", 1);\n'
            "    }\n}\n"
        ),
    ),
}


@pytest.mark.parametrize("language", CASES)
def test_two_parameters_and_their_arguments_change_places(language: str) -> None:
    before, after = CASES[language]
    (story,) = told(parameters_reordered, language, before)
    assert story.states()[-1] == after
    assert "scan" in before[: story.changes[0].start].splitlines()[-1] or "(\n" in before[: story.changes[0].start]


def test_of_three_one_moves_or_two_change() -> None:
    text = "def scan(a, b, c):\n    return a\n\n\nscan(1, 2, 3)\n"
    ends = {story.states()[-1].splitlines()[0] for story in told(parameters_reordered, "python", text)}
    assert ends == {"def scan(b, a, c):", "def scan(a, c, b):", "def scan(c, a, b):", "def scan(b, c, a):"}


def test_a_parameter_with_a_default_keeps_its_place() -> None:
    assert told(parameters_reordered, "python", "def scan(a, b=1):\n    return a\n\n\nscan(1, 2)\n") == []


def test_calls_by_name_alone_need_nothing() -> None:
    assert told(parameters_reordered, "python", "def scan(a, b):\n    return a\n\n\nscan(b=1, a=2)\n") == []
