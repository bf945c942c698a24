from __future__ import annotations

import pytest

from calomel.bench.curve.typist import JUMP_LINES, TYPED, long_file, moments
from calomel.bench.heldout import BenchDataError, HeldoutFile

ROWS = [f"    value_{number} = compute({number})" if number % 3 else "" for number in range(1000)]
TEXT = "\n".join(ROWS)


def file(lines: int, language: str = "python") -> HeldoutFile:
    return HeldoutFile("package", f"{lines}.py", language, "x\n" * lines)


def test_the_longest_file_of_the_language_is_typed_in() -> None:
    files = [file(700), file(900), file(2000, "go")]

    assert long_file(files) == files[1]
    with pytest.raises(BenchDataError, match="600 lines"):
        long_file([file(100), file(900, "rust")])


def test_at_the_end_everything_has_been_written_and_nothing_else_has_changed() -> None:
    *_, last = moments(TEXT, 5, 0)
    written = "\n".join(ROWS[:507])

    assert last.kind == "new line"
    assert last.text[: last.offset] == written + "\n    "
    assert last.text[last.offset :].endswith("\n".join(ROWS[507:]))


def test_letters_come_one_by_one_and_the_last_of_them_go_again() -> None:
    found = list(moments(TEXT, 1, 0))

    typed = [
        moment.text[: moment.offset].rsplit("\n", 1)[1] for moment in found if moment.kind in ("letter", "deletion")
    ]
    assert typed == [ROWS[500][: 4 + count] for count in (1, 2, 3, 4, 5, 6, 7, 8, 7, 6)]
    assert {moment.text[moment.offset : moment.offset + 1] for moment in found} == {"\n"}


def test_a_jump_goes_to_the_end_of_a_line_far_up_and_comes_back() -> None:
    found = [moment for moment in moments(TEXT, 4, 2) if moment.kind not in TYPED]

    assert [moment.kind for moment in found] == ["jump", "jump", "way back", "jump", "way back"]
    assert found[1].text[: found[1].offset].count("\n") == 500 - JUMP_LINES - 1
    assert found[1].text == found[2].text
