from __future__ import annotations

from tests.suggest.drafts.moment import Moment


def test_what_was_replaced_is_replaced_elsewhere() -> None:
    moment = Moment("a = os.path.join(x, y)\nlog(os.path.join(z, w), 1)\n", ("os.path.join(x, y)", "Path(x, y)"))
    assert "log(Path(z, w), 1)" in moment.results()


def test_punctuation_needs_the_same_neighbours() -> None:
    text = "a.get(key).value\nreturn b.get(key).value + 1\nc.get(other)\nd.other.thing\n"
    moment = Moment(text, ("get(key).value", "get(key)?.value"))
    assert moment.results("substitution") == ["return b.get(key)?.value + 1"]


def test_an_insertion_is_repeated_before_the_same_name() -> None:
    text = "x = fetch(url)\nreturn wrap(fetch(other), 1)\n"
    moment = Moment(text, ("x = fetch", "x = await fetch"))
    moment.edit("await fetch(url)", "await fetch(url)")
    assert moment.results("substitution") in ([], ["return wrap(await fetch(other), 1)"])


def test_two_edits_that_agree_need_less_context() -> None:
    text = "use(a.name, 1)\nlog(b.name)\nif c.name:\n    pass\n"
    moment = Moment(text, ("a.name, 1", "a.get_name(), 1"), ("b.name", "b.get_name()"))
    assert "if c.get_name():" in moment.results()


def test_imports_and_comments_are_no_model() -> None:
    assert Moment("import os\nos.getcwd()\nos.path\n", ("import os\n", "import sys\n")).results("substitution") == []
    assert Moment("# the old way of things\nx = way\n", ("old way of", "new approach of")).results("substitution") == []
