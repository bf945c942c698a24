from __future__ import annotations

import pytest
from tests.suggest.drafts.moment import Moment


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("def load(path):\n    pass\n\nmode = 1\nload(a)\nx = load(b)\n", "(path)", "(path, mode)", ["load(a, mode)", "x = load(b, mode)"]),  # noqa: E501
        ("func load(path string) {\n}\n\nfunc main() {\n\tmode := 1\n\tload(a)\n}\n", "path string", "path string, mode int", ["\tload(a, mode)"]),  # noqa: E501
        ("fn load(path: &str) {\n}\n\nfn main() {\n    let mode = 1;\n    load(a);\n}\n", "path: &str", "path: &str, mode: u8", ["    load(a, mode);"]),  # noqa: E501
        ("import { mode } from 'm'\nfunction load(path: string) {\n}\n\nload(a);\n", "path: string", "path: string, mode: number", ["load(a, mode);"]),  # noqa: E501
    ],
)  # fmt: skip
def test_calls_follow_a_new_parameter(text: str, old: str, new: str, expected: list[str]) -> None:
    assert Moment(text, (old, new)).results("arguments") == expected


def test_a_new_argument_is_added_to_the_other_calls() -> None:
    moment = Moment("run(first)\ny = run(second(1, 2))\nrun(third, more)\nwalk(fourth)\n", ("(first)", "(first, True)"))
    assert moment.results("arguments") == ["y = run(second(1, 2), True)", "run(third, more, True)"]


def test_a_keyword_stands_at_the_end_and_a_place_before_keywords() -> None:
    moment = Moment("run(a)\nrun(b, key=1)\n", ("run(a)", "run(a, deep=True)"))
    assert moment.results("arguments") == ["run(b, key=1, deep=True)"]
    moment = Moment("run(a)\nrun(b, key=1)\n", ("run(a)", "run(a, 7)"))
    assert moment.results("arguments") == ["run(b, 7, key=1)"]


def test_lists_over_several_lines_keep_their_layout() -> None:
    moment = Moment("run(a, b)\nrun(\n    c,\n    d,\n)\n", ("run(a, b)", "run(a, b, c=1)"))
    (draft,) = moment.drafts("arguments")
    assert draft.apply(moment.text) == "run(a, b, c=1)\nrun(\n    c,\n    d,\n    c=1,\n)\n"


def test_a_parameter_that_is_gone_is_taken_from_the_calls() -> None:
    text = "class A:\n    def load(self, path, mode):\n        pass\n\na.load(p, 1)\na.load(q, mode=2)\nb.load(r)\n"
    moment = Moment(text, ("self, path, mode", "self, path"))
    assert moment.results("arguments") == ["a.load(p)", "a.load(q)"]


def test_reordered_parameters_reorder_the_calls() -> None:
    moment = Moment(
        "def put(key, value):\n    pass\n\nput(a, f(1, 2))\nput(b, value=1)\n", ("key, value", "value, key")
    )
    assert moment.results("arguments") == ["put(f(1, 2), a)"]


def test_a_call_that_has_the_argument_stays() -> None:
    moment = Moment("run(a)\nrun(b, True)\n", ("run(a)", "run(a, True)"))
    assert moment.results("arguments") == []


def test_brackets_and_commas_in_strings_are_no_list() -> None:
    moment = Moment("run(a)\nrun(\"x), (\", 'y,')\n", ("run(a)", "run(a, 1)"))
    assert moment.results("arguments") == ["run(\"x), (\", 'y,', 1)"]


SHOP = """class Cart:
    def __init__(self, owner):
        self.names = set()

    def add(self, name):
        self.names.add(name)

    def twice(self, name, quantity):
        self.add(name)


def discount(cart, percent):
    return cart.total(), percent


def report(cart, minimum, quantity):
    print(cart.names(), cart.total())
    cart.add(first)
    add(first)
    return discount(cart, 10)


def main(quantity):
    cart, seen = Cart("bob"), "x"
    names = set()
    names.add("pear")
    print(discount(cart, 20))
"""


def test_a_parameter_goes_only_where_its_name_means_something() -> None:
    moment = Moment(SHOP, ("cart, percent)", "cart, percent, minimum)"))
    assert moment.results() == ["    return discount(cart, 10, minimum)"]
    assert moment.edit("discount(cart, 10)", "discount(cart, 10, minimum)").results() == []


def test_a_method_is_that_of_its_class_as_far_as_the_file_shows() -> None:
    moment = Moment(SHOP, ("add(self, name)", "add(self, name, quantity)"))
    assert set(moment.results("arguments")) == {"        self.add(name, quantity)", "    cart.add(first, quantity)"}


def test_a_parameter_with_a_default_changes_no_call() -> None:
    assert Moment(SHOP, ("add(self, name)", "add(self, name, quantity=1)")).results() == []


def test_an_argument_goes_to_calls_of_the_same_receiver_whoever_drafts_it() -> None:
    moment = Moment(SHOP, ("cart.add(first)", "cart.add(first, quantity=quantity)"))
    assert moment.results() == []
