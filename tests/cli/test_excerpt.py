from __future__ import annotations

import io

from rich.console import Console

from calomel.cli.output import excerpt


def shown(prefix: str, middle: str, suffix: str, *, colors: bool = False, before: int = 1, after: int = 1) -> str:
    console = Console(file=io.StringIO(), force_terminal=colors, color_system="standard" if colors else None)
    return excerpt(console, prefix, middle, suffix, before=before, after=after).plain


def test_lines_around_the_hole_have_the_numbers_of_the_file() -> None:
    prefix = "".join(f"{number}\n" for number in range(1, 10)) + "x = "
    assert shown(prefix, "1", "\nlast\nunseen\n") == " 9 │ 9\n10 │ x = ⟦1⟧\n11 │ last"


def test_answer_of_several_lines_shifts_the_numbers_below() -> None:
    assert shown("", "a\nb", "\nc") == "1 │ ⟦a\n2 │ b⟧\n3 │ c"


def test_colours_take_the_place_of_brackets_unless_there_is_nothing_to_colour() -> None:
    assert shown("x = ", "1", "", colors=True) == "1 │ x = 1"
    assert shown("x = ", "", "\n", colors=True) == "1 │ x = ⟦⟧"


def test_tabs_are_wide_as_in_the_file_whatever_the_line_number_is() -> None:
    assert shown("if x {\n\t", "y", "\n}") == "1 │ if x {\n2 │     ⟦y⟧\n3 │ }"


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    assert shown("x\r\n", "\x1b[2Jy\x9b", "\r\n") == "1 │ x\n2 │ ⟦␛[2Jy�⟧"
