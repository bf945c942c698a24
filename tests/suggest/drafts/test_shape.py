from __future__ import annotations

import pytest
from tests.suggest.drafts.moment import Moment


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("self.a = a\nself.b = b\nself.c = c\n", "= a", "= int(a)", ["self.b = int(b)", "self.c = int(c)"]),
        ("const a = get('x');\nconst b = get('y');\n", "get('x')", "await get('x')", ["const b = await get('y');"]),
        ("type P struct {\n\tName string\n\tCity string\n}\n", "Name string", 'Name string `json:"name"`',
         ['\tCity string `json:"city"`']),
        ("let a = parse(x);\nlet b = parse(y);\n", "parse(x)", "parse(x).unwrap()", ["let b = parse(y).unwrap();"]),
        ("X = os.getenv('X')\nY = os.getenv('Y')\n", "os.getenv('X')", "os.environ['X']", ["Y = os.environ['Y']"]),
        ("pub a: String,\npub b: String,\n", "a: String", "a: Option<String>", ["pub b: Option<String>,"]),
    ],
)  # fmt: skip
def test_lines_that_look_alike_are_changed_alike(text: str, old: str, new: str, expected: list[str]) -> None:
    results = Moment(text, (old, new)).results()
    assert results[: len(expected)] == expected


def test_edits_that_agree_are_support() -> None:
    text = "self.a = a\nself.b = b\nself.c = c\n"
    moment = Moment(text, ("= a", "= int(a)"), ("= b", "= int(b)"))
    (best, *_) = moment.drafts()
    assert (moment.results()[0], best.support) == ("self.c = int(c)", 2)


def test_lines_that_were_changed_already_stay() -> None:
    moment = Moment("self.a = a\nself.b = int(b)\n", ("= a", "= int(a)"))
    assert moment.results("shape") == []


def test_the_parameters_of_another_function_are_not_alike() -> None:
    moment = Moment("def load(path):\n    pass\n\ndef save(path):\n    pass\n", ("load(path)", "load(path, mode)"))
    assert all(draft.likeness < 0.5 for draft in moment.drafts("shape"))


def test_a_changed_operator_is_about_its_own_line() -> None:
    assert Moment("if a == b:\n    x()\nif c == d:\n    y()\n", ("a == b", "a != b")).results() == []
