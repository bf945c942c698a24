from __future__ import annotations

from calomel.prompts.parts import Hunk
from calomel.suggest.locations import Why, continuations
from calomel.suggest.question import Diagnostic

TEXT = """\
def connect(host, port):
    return open_socket(host, port)


first = connect("a", 1)
second = connect("b", 2)
x = disconnect()
"""


def hunk(before: str, after: str, line: int = 0) -> Hunk:
    return Hunk("a.py", line, before, after)


def test_a_rename_is_whole_names() -> None:
    for before, after in ("x = 1\n", "x = 2\n"), ("x = ab\n", "x = cd\n"), ("", "x = name\n"):
        found = continuations(f"{after}y = ab + 1\nname = 1\n", [hunk(before, after)], 0)
        assert Why.SAME_TEXT not in [place.why for place in found]


def test_a_rename_goes_on_wherever_the_old_name_stands_as_a_word() -> None:
    text = "new_name = 1\nprint(old_name)\nold_names = 2\nlog(old_name)\n"
    found = continuations(text, [hunk("old_name = 1\n", "new_name = 1\n")], 0)
    same = [place for place in found if place.why is Why.SAME_TEXT]
    assert [(place.row, text[place.start : place.end], place.replacement) for place in same] == [
        (1, "old_name", "new_name"),
        (3, "old_name", "new_name"),
    ]


def test_a_changed_signature_goes_on_at_the_calls() -> None:
    text = TEXT.replace("connect(host, port):", "connect(host, port, timeout):")
    edit = hunk("def connect(host, port):\n", "def connect(host, port, timeout):\n")
    found = [place for place in continuations(text, [edit], 10) if place.why is Why.SAME_NAME]
    assert [place.row for place in found] == [4, 5]


def test_lines_that_look_as_the_edited_one_did_are_found() -> None:
    text = 'a = load("one", strict=True)\nb = load("two")\nc = save()\n'
    found = continuations(text, [hunk('a = load("one")\n', 'a = load("one", strict=True)\n')], 0)
    assert found[0].row == 1
    assert 2 not in [place.row for place in found]


def test_problems_are_hints_and_wrong_ones_are_left_out() -> None:
    found = continuations(TEXT, [], 0, [Diagnostic(30, 36, "bad"), Diagnostic(9999, 10000, "gone")])
    assert [(place.start, place.why) for place in found] == [(30, Why.DIAGNOSTIC)]


def test_a_new_line_tells_nothing_about_others() -> None:
    assert continuations(TEXT, [hunk("", "y = 1\n", 3)], 0) == ()


def test_places_below_the_cursor_come_before_those_above_at_the_same_distance() -> None:
    text = "old_name\n\nnew_name\n\nold_name\n"
    found = continuations(text, [hunk("old_name\n", "new_name\n", 2)], 10)
    assert [place.row for place in found] == [4, 0]


def test_a_long_file_is_searched_in_bounded_time() -> None:
    text = "".join(f"value_{number} = compute({number})\n" for number in range(20_000))
    text = text.replace("compute(0)", "compute(0, 1)", 1)
    found = continuations(text, [hunk("value_0 = compute(0)\n", "value_0 = compute(0, 1)\n")], 0)
    assert len(found) == 8
