from __future__ import annotations

import pytest

from calomel.suggest.completer import cut_at_stop, settled


@pytest.mark.parametrize(
    ("text", "stops", "expected"),
    [
        ("a\n\nb", ["\n\n"], ("a", True)),
        ("abc", ["c", "b"], ("a", True)),
        ("abc", [], ("abc", False)),
        ("abc", [""], ("abc", False)),
        ("\n\n", ["\n\n"], ("", True)),
    ],
)
def test_an_answer_ends_before_the_first_stop_string(text: str, stops: list[str], expected: tuple[str, bool]) -> None:
    assert cut_at_stop(text, stops) == expected


@pytest.mark.parametrize(
    ("text", "stops", "expected"),
    [
        ("a\n", ["\n\n"], "a"),
        ("a", ["\n\n"], "a"),
        ("ab<", ["<end>", "x"], "ab"),
        ("", ["x"], ""),
        ("aab", ["ab!"], "a"),
    ],
)
def test_what_could_begin_a_stop_string_is_held_back(text: str, stops: list[str], expected: str) -> None:
    assert settled(text, stops) == expected
