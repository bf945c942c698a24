from __future__ import annotations

import pytest
from tests.suggest.drafts.moment import Moment


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("class A:\n    def __init__(self, a: int):\n        self.a = a\n\n    def f(self):\n        pass\n",
         "a: int)", "a: int, b: str)", "        self.b = b"),
        ("struct P {\n    x: i32,\n}\nimpl P {\n    fn new(x: i32) -> P {\n        P {\n            x: x,\n        }\n    }\n}\n",  # noqa: E501
         "    x: i32,\n", "    x: i32,\n    y: i32,\n", "            y: y,"),
        ("enum E {\n    Red,\n    Blue,\n}\nfn f(e: E) -> u8 {\n    match e {\n        E::Red => 1,\n        E::Blue => 2,\n    }\n}\n",  # noqa: E501
         "    Blue,\n", "    Blue,\n    Green,\n", "        E::Green => 2,"),
        ("interface P {\n  name: string;\n}\nconst p = {\n  name: read('name'),\n};\n",
         "  name: string;\n", "  name: string;\n  city: string;\n", "  city: read('city'),"),
        ("type P struct {\n\tName string\n}\n\nfunc New(Name string) P {\n\treturn P{\n\t\tName: Name,\n\t}\n}\n",
         "\tName string\n", "\tName string\n\tCity string\n", "\t\tCity: City,"),
    ],
)  # fmt: skip
def test_a_new_thing_follows_where_its_sibling_stands(text: str, old: str, new: str, expected: str) -> None:
    assert expected in Moment(text, (old, new)).results("sibling")


def test_what_is_there_already_is_not_added_again() -> None:
    text = "class A:\n    def __init__(self, a: int):\n        self.a = a\n        self.b = b\n"
    assert Moment(text, ("a: int)", "a: int, b: str)")).results("sibling") == []


def test_a_statement_is_no_declaration() -> None:
    text = "def f():\n    start(first)\n    stop(first)\n\ndef g():\n    first = make(first)\n"
    assert Moment(text, ("    start(first)\n", "    start(first)\n    start(second)\n")).results("sibling") == []
