from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.suggest.drafts.moment import Moment, edited

from calomel.prompts.parts import text_hunks
from calomel.suggest.drafts.propose import drafts

CALLS = "run(a)\nrun(b)\nrun(c)\nrun(d)\n"


def test_nothing_without_an_edit() -> None:
    assert drafts("x = 1\n", (), 0) == ()


def test_nothing_after_an_undo() -> None:
    moment = Moment(CALLS, ("run(a)", "run(a, 1)"), ("run(b)", "run(b, 1)"), ("run(b, 1)", "run(b)"))
    assert moment.results() == []


def test_nothing_after_formatting_or_a_line_of_prose() -> None:
    assert Moment("a=1\nb=2\n", ("a=1", "a = 1")).results() == []
    assert Moment("x()\n\nx()\n", ("x()\n", "# Now for something completely different.\nx()\n")).results() == []


def test_nothing_that_brings_back_a_deleted_line() -> None:
    moment = Moment(
        "@slow\ndef test_a():\n    pass\n\n@slow\ndef test_b():\n    pass\n", ("@slow\ndef test_a", "def test_a")
    )
    assert moment.results() == []


def test_what_is_half_typed_is_finished_as_the_edits_before() -> None:
    moment = Moment(CALLS, ("run(a)", "run(a, k=1)"), ("run(b)", "run(b, k=1)"))
    moment.edit("run(c)", "run(c,)")
    moment.cursor -= 1
    assert moment.results()[0] == "run(c, k=1)"


def test_the_drafts_of_a_rename_together_finish_it() -> None:
    moment = Moment("old_name = 1\na(old_name)\nb(old_name)\n", ("old_name = 1", "new_name = 1"))
    assert edited(moment.text, moment.drafts()) == "new_name = 1\na(new_name)\nb(new_name)\n"


def test_more_support_comes_first_then_what_is_below() -> None:
    text = "old_name(0)\n\nold_name(1)\n\nold_name(2)\n"
    moment = Moment(text, ("old_name(1)", "new_name(1)"))
    assert moment.results() == ["new_name(2)", "new_name(0)"]


def test_an_edit_of_another_file_goes_on_in_this_one() -> None:
    hunks = text_hunks("b.py", "def old_name():\n", "def new_name():\n")
    (draft,) = drafts("x = old_name()\n", hunks, 0, "a.py")
    assert draft.apply("x = old_name()\n") == "x = new_name()\n"


def test_windows_line_ends_are_kept() -> None:
    moment = Moment("x = old_name\r\ny = old_name\r\n", ("old_name", "new_name"))
    (draft,) = moment.drafts()
    assert draft.apply(moment.text) == "x = new_name\r\ny = new_name\r\n"


LINES = st.lists(
    st.sampled_from(
        ["", "a = f(b)", "    a.b(c, d)", "def f(a, b):", "x(", ")", "{", "'", '"', "// c", "é = ß", "\t@d"]
    ),
    max_size=12,
).map("\n".join)


@settings(max_examples=200, deadline=None)
@given(before=LINES, middle=LINES, after=LINES, cursor=st.integers(0, 200))
def test_whatever_was_edited_drafts_lie_in_the_text_and_change_it(
    before: str, middle: str, after: str, cursor: int
) -> None:
    hunks = (*text_hunks("a", before, middle), *text_hunks("a", middle, after))
    found = drafts(after, hunks, min(cursor, len(after)))
    assert all(0 <= draft.start <= draft.end <= len(after) for draft in found)
    assert all(draft.apply(after) != after for draft in found)
    assert len({draft.apply(after) for draft in found}) == len(found)
    assert all(draft.support >= 1 for draft in found)
