"""Text that stands elsewhere between the same neighbours."""

from __future__ import annotations

import pytest

from calomel.suggest.recall import recall

LINES = "def first(reader):\n    total = reader.count()\n    return total\n\n\ndef second(reader):\n    total = rea"


def test_the_rest_of_a_line_is_what_followed_the_longest_match() -> None:
    found = recall(LINES, "\n    return total\n")

    assert found is not None
    assert found.text == "der.count()"
    assert found.behind == len("\n    return total\n")
    assert (found.places, found.agreeing) == (1, 1)


def test_what_is_recalled_ends_where_the_text_behind_the_hole_goes_on() -> None:
    above = "send(connection, payload, timeout=10)\n"

    found = recall(above + "send(connection, ", ", timeout=10)\n")

    assert found is not None
    assert found.text == "payload"


def test_a_line_that_does_not_go_on_in_the_same_way_is_not_recalled() -> None:
    assert recall("send(connection, payload)\nsend(connection, ", ", timeout=10)\n") is None


def test_several_lines_are_recalled_where_what_is_behind_them_tells_their_end() -> None:
    block = "    for row in table:\n        check(row)\n        store(row)\n    finish(table, today)\n"

    found = recall(block + "\n    for row in table:\n        ", "\n    finish(table, today)\n")

    assert found is not None
    assert found.text == "check(row)\n        store(row)"


def test_text_behind_the_hole_and_in_other_files_is_looked_through_too() -> None:
    behind = recall(
        "import collections\nvalue = collec", "\n\nother = collections.Counter()\nvalue = collections.OrderedDict()\n"
    )
    elsewhere = recall("first line\nresult = compute_all(", "\n", ["result = compute_all(rows, columns)\n"])

    assert behind is not None
    assert behind.text == "tions.OrderedDict()"
    assert elsewhere is not None
    assert elsewhere.text == "rows, columns)"


def test_of_matches_of_one_length_the_text_that_most_of_them_have_wins() -> None:
    found = recall("1 load(a)\n2 load(b)\n3 load(b)\n4 load(a)\n5 load(a)\n6 load(b)\n7 load(a)\n8 load(", "\n")

    assert found is not None
    assert (found.text, found.places, found.agreeing) == ("a)", 7, 4)


@pytest.mark.parametrize("suffix", ["", "\n", "\r\nnext"])
def test_nothing_is_recalled_from_nothing(suffix: str) -> None:
    assert recall("", suffix) is None
    assert recall("abc", suffix) is None
    assert recall("one two three", suffix) is None


def test_a_match_that_would_fill_in_nothing_is_no_draft() -> None:
    assert recall("close(handle)\nclose(handle)", "\n") is None


def test_the_place_itself_is_no_match() -> None:
    assert recall("aaaaaaaaaaaaaaaa", "b\n") is None


def test_an_endless_repetition_is_bounded() -> None:
    assert recall("ab" * 50_000, "\n") is None
    found = recall("ab" * 50_000 + ";\n" + "ab" * 50, "\n")

    assert found is not None
    assert (found.text, found.before) == (";", 100)
