from __future__ import annotations

import pytest
from tests.suggest.drafts.moment import Moment


@pytest.mark.parametrize(
    ("text", "new", "expected"),
    [
        ("y = wait(3000)\nz = wait(3000, 1)\n", "LIMIT = 3000\n", ["y = wait(LIMIT)", "z = wait(LIMIT, 1)"]),
        ("open('a.txt');\n", "const PATH = 'a.txt';\n", ["open(PATH);"]),
        ("\twait(30 * time.Second)\n", "const timeout = 30 * time.Second\n", ["\twait(timeout)"]),
        ("let y = wait(4096);\n", "const SIZE: usize = 4096;\n", ["let y = wait(SIZE);"]),
    ],
)
def test_what_got_a_name_is_called_by_it(text: str, new: str, expected: list[str]) -> None:
    assert Moment("\n" + text, ("\n", new + "\n")).results("extraction") == expected


def test_what_stands_everywhere_is_left_alone() -> None:
    assert Moment('\nx = f(0)\ny = g("")\n', ("\n", "ZERO = 0\n\n")).results() == []


def test_a_computed_value_holds_below_in_its_function() -> None:
    text = "def f(a):\n    x()\n    use(a.owner.name)\n\ndef g(a):\n    use(a.owner.name)\n"
    moment = Moment(text, ("    x()\n", "    x()\n    name = a.owner.name\n"))
    assert moment.results("extraction") == ["    use(name)"]
