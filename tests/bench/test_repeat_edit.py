from __future__ import annotations

import pytest

from calomel.bench.baselines import repeat_last, substitution
from calomel.prompts.parts import Hunk
from calomel.suggest.edit import TextEdit, apply


def hunk(before: str, after: str, line: int = 0) -> Hunk:
    return Hunk("a.py", line, before, after)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("total = 1\n", "amount = 1\n", ("total", "amount")),
        ("x = item\n", "x = items\n", ("item", "items")),
        ("x = item + 1\n", "x = my_item + 1\n", ("item", "my_item")),
        ("x = get_name()\n", "x = get_full_name()\n", ("get_name", "get_full_name")),
        ("f(a)\n", "f(a, b)\n", ("", ", b")),
        ("print(a)\n", "log.info(a)\n", ("print", "log.info")),
        ("a\nb\n", "a\n", ("b\n", "")),
    ],
)
def test_an_edit_is_trimmed_to_whole_words(before: str, after: str, expected: tuple[str, str]) -> None:
    assert substitution(before, after) == expected


def test_the_last_edit_is_repeated_at_the_next_place_behind_the_cursor() -> None:
    text = "total_sum = total\namount = 1\nprint(total)\n"
    edit = repeat_last(text, [hunk("total = 1\n", "amount = 1\n", 1)], cursor=24)
    assert edit is not None
    assert apply(text, [edit]) == "total_sum = total\namount = 1\nprint(amount)\n"


def test_behind_the_last_place_it_begins_anew() -> None:
    text = "print(total)\namount = 1\n"
    assert repeat_last(text, [hunk("total = 1\n", "amount = 1\n", 1)], cursor=len(text)) == TextEdit(6, 11, "amount")


def test_an_insertion_has_nothing_to_repeat() -> None:
    assert repeat_last("f(a, b)\nf(a)\n", [hunk("f(a)\n", "f(a, b)\n")], cursor=7) is None


def test_a_place_where_it_was_done_already_is_left_alone() -> None:
    last = [hunk("x = name\n", "x = (name)\n")]
    assert repeat_last("x = (name)\ny = name\n", last, cursor=9) == TextEdit(15, 19, "(name)")
    assert repeat_last("x = (name)\ny = (name)\n", last, cursor=9) is None


def test_without_edits_and_without_places_there_is_nothing() -> None:
    assert repeat_last("a = 1\n", [], 0) is None
    assert repeat_last("b = 1\n", [hunk("a = 1\n", "b = 1\n")], 0) is None
