from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.server.known_workspace import Around, around

FILE = "".join(f"line number {number} of the file\n" for number in range(40))
LINES = FILE.splitlines(keepends=True)


def cut(first: int, last: int, behind: int) -> tuple[str, str, str]:
    """Three lines before a region, the region, and what is behind it up to a line's end."""
    prefix, region = "".join(LINES[first - 3 : first]), "".join(LINES[first:last]).removesuffix("\n")
    return prefix, region, "\n" + "".join(LINES[last : last + behind])


def test_the_rest_of_the_file_is_found() -> None:
    assert around(FILE, *cut(10, 20, 3)) == Around("".join(LINES[:7]), "".join(LINES[23:]))


@pytest.mark.parametrize("region", ["", "x = 1", "x\n" * 100, "line number 12 of the file\nnew\nnew"])
def test_what_was_typed_in_the_region_makes_no_difference(region: str) -> None:
    prefix, _, suffix = cut(10, 20, 3)

    assert around(FILE, prefix, region, suffix) == Around("".join(LINES[:7]), "".join(LINES[23:]))


def test_a_client_may_end_its_excerpt_with_a_line_end_of_its_own() -> None:
    file = FILE.removesuffix("\n")
    prefix, region, suffix = "".join(LINES[30:33]), "".join(LINES[33:36]), "".join(LINES[36:])

    assert around(file, prefix, region, suffix) == Around("".join(LINES[:30]), "")
    assert around(FILE, prefix, region, suffix.removesuffix("\n")) == Around("".join(LINES[:30]), "\n")


@pytest.mark.parametrize(
    ("prefix", "region", "suffix"),
    [
        ("another line before it, of some length\n" * 2, "x", "\n" + LINES[20]),
        (LINES[9], "x", "\nanother line behind it, of some length\n"),
        # The other way round.
        (LINES[20], "x", "\n" + LINES[9]),
        # In the middle of a line.
        (LINES[8][5:] + LINES[9], LINES[10].strip() + "x", "\n" + LINES[11]),
        (LINES[8] + LINES[9], LINES[10].strip() + "x", "\n" + LINES[11][:9]),
        ("", "", ""),
        ("", "x", ""),
        ("line", "x", ""),
    ],
)
def test_what_is_not_there_is_not_found(prefix: str, region: str, suffix: str) -> None:
    assert around(FILE, prefix, region, suffix) is None


def test_a_place_that_is_there_twice_is_none() -> None:
    assert around(FILE + FILE, *cut(10, 20, 3)) is None
    prefix, _, suffix = cut(10, 20, 3)
    assert around(FILE + "".join(LINES[20:23]), prefix, "x", suffix) is None


def test_the_beginning_and_the_end_of_a_file_are_places() -> None:
    suffix = "\n" + "".join(LINES[10:13])
    region = "".join(LINES[:10]).removesuffix("\n")
    assert around(FILE, "", region, suffix) == Around("", "".join(LINES[13:]))
    assert around(FILE, "", region.replace("number 3", "n"), suffix) == Around("", "".join(LINES[13:]))
    assert around(FILE, "".join(LINES[30:33]), "".join(LINES[33:38]) + "new\n", "") == Around("".join(LINES[:30]), "")


@pytest.mark.parametrize("suffix", ["", "\n"])
def test_a_region_without_text_behind_it_may_end_in_the_middle_of_a_file(suffix: str) -> None:
    region = "".join([*LINES[10:13], "typed\n", *LINES[13:20]]).removesuffix("\n")
    expected = Around("".join(LINES[:7]), ("" if suffix else "\n") + "".join(LINES[20:]))

    assert around(FILE, "".join(LINES[7:10]), region, suffix) == expected


def test_a_region_without_text_before_it_may_begin_in_the_middle_of_a_file() -> None:
    region = "".join([*LINES[10:15], "typed\n", *LINES[15:20]]).removesuffix("\n")

    assert around(FILE, "", region, "\n" + "".join(LINES[20:23])) == Around("".join(LINES[:10]), "".join(LINES[23:]))


def test_a_region_that_stands_alone_is_the_whole_file_or_a_piece_of_it() -> None:
    piece = "".join([*LINES[10:15], "typed\n", *LINES[15:20]]).removesuffix("\n")

    assert around(FILE, "", FILE.replace("number 17", "no 17"), "\n") == Around("", "")
    assert around(FILE, "", piece, "\n") == Around("".join(LINES[:10]), "".join(LINES[20:]))


def test_little_text_around_the_region_must_be_helped_by_the_region() -> None:
    file = "a = 1\n" + "".join(LINES[:4]) + "b = 2\n"
    known = "".join(LINES[:4]).removesuffix("\n")

    assert around(file, "a = 1\n", known + "x", "\nb = 2\n") == Around("", "")
    assert around(file, "a = 1\n", "something else", "\nb = 2\n") is None


def test_a_file_of_the_same_line_over_and_over_takes_no_time() -> None:
    assert around("x\n" * 100_000, "x\n" * 50, "y", "\n" + "x\n" * 50) is None


rows = st.lists(st.sampled_from(["a\n", "b\n", "\n", "a b\n", "a" * 50 + "\n"]), max_size=8)


@given(rows, rows, st.text(alphabet="ab\n", max_size=9), rows, st.sampled_from(["", "other\nlines"]))
def test_whatever_is_found_is_the_file_with_another_region(
    before: list[str], prefix: list[str], region: str, suffix: list[str], other: str
) -> None:
    file = "".join([*before, *prefix, other or region, "\n", *suffix])
    tail = "\n" + "".join(suffix[:3])
    found = around(file, "".join(prefix), region, tail)

    if found is not None:
        first = found.before + "".join(prefix)
        assert file.startswith(first)
        # A line end alone may be one that the client's format adds.
        assert file[len(first) :].endswith((tail if suffix else "") + found.behind)


@given(st.integers(3, 20), st.integers(1, 15), st.integers(1, 5), st.text(max_size=30))
def test_every_excerpt_of_whole_lines_is_put_back(first: int, length: int, behind: int, region: str) -> None:
    prefix, _, suffix = cut(first, first + length, behind)
    found = around(FILE, prefix, region, suffix)

    assert found == Around("".join(LINES[: first - 3]), "".join(LINES[first + length + behind :]))
