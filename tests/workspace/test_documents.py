from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workspace.naive import lines_of, offset_of, position_of

from calomel.workspace.documents import Document, Documents, FullChange, RangeChange, ResyncNeeded
from calomel.workspace.position import Encoding, Position

INT32_MAX = 2**31 - 1
TEXTS = st.text(st.sampled_from(list("ab \t\r\n\u2028é😀")), max_size=40)


def document(text: str, encoding: Encoding = Encoding.UTF16) -> Document:
    return Document("file:///a.py", "python", 1, text, "a.py", encoding)


def edit(found: Document, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
    found.apply(RangeChange(Position(*start), Position(*end), text))


@given(TEXTS, st.integers(0, 8), st.integers(0, 20), st.sampled_from(list(Encoding)))
def test_offsets_are_those_of_counting_by_hand(text: str, line: int, character: int, encoding: Encoding) -> None:
    found = document(text, encoding).offset_at(Position(line, character))
    assert found == offset_of(text, line, character, encoding)


@given(TEXTS, st.integers(0, 40), st.sampled_from(list(Encoding)))
def test_positions_are_those_of_counting_by_hand(text: str, offset: int, encoding: Encoding) -> None:
    offset = min(offset, len(text))
    assert document(text, encoding).position_at(offset) == position_of(text, offset, encoding)


@given(TEXTS, TEXTS, st.integers(0, 40), st.integers(0, 40))
def test_a_change_does_to_the_document_what_it_does_to_a_string(text: str, new: str, one: int, other: int) -> None:
    found = document(text)
    start, end = sorted((min(one, len(text)), min(other, len(text))))
    low, high = found.position_at(start), found.position_at(end)
    start, end = found.offset_at(low), found.offset_at(high)
    done = found.apply(RangeChange(low, high, new))
    assert found.text == text[:start] + new + text[end:]
    assert [found.line(number) for number in range(found.line_count)] == document(found.text).lines(0, INT32_MAX)
    assert found.line_count == len(lines_of(found.text))
    if done is not None:
        assert (done.start, done.end, done.removed, done.inserted) == (start, end, text[start:end], new)


@given(TEXTS, TEXTS)
def test_a_whole_new_text_becomes_one_small_change(text: str, new: str) -> None:
    found = document(text)
    done = found.apply(FullChange(new))
    assert found.text == new
    if done is not None:
        assert text[: done.start] + done.inserted + text[done.end :] == new


def test_positions_beyond_every_end_are_clamped() -> None:
    found = document("ab\r\ncd")
    assert found.offset_at(Position(0, INT32_MAX)) == 2
    assert found.offset_at(Position(INT32_MAX, 0)) == 6
    edit(found, (0, 0), (INT32_MAX, INT32_MAX), "x")
    assert found.text == "x"


def test_a_position_inside_of_an_astral_character_is_its_start() -> None:
    assert document("a😀b").offset_at(Position(0, 2)) == 1


def test_a_line_feed_typed_behind_a_carriage_return_joins_it() -> None:
    found = document("a\rb")
    edit(found, (1, 0), (1, 0), "\n")
    assert found.lines(0, 9) == ["a\r\n", "b"]


def test_a_byte_order_mark_is_a_character_like_others() -> None:
    found = document("\ufeffab")
    edit(found, (0, 1), (0, 2), "")
    assert found.text == "\ufeffb"


def test_a_range_that_ends_before_it_starts_asks_for_the_text() -> None:
    found = document("abc")
    with pytest.raises(ResyncNeeded):
        edit(found, (0, 2), (0, 1), "x")
    assert found.text == "abc"


def change(documents: Documents, version: int, text: str = "x", *, full: bool = False) -> None:
    each = FullChange(text) if full else RangeChange(Position(0, 0), Position(0, 0), text)
    list(documents.change("u", version, [each]))


def test_an_unknown_document_asks_for_its_text() -> None:
    with pytest.raises(ResyncNeeded, match="not open"):
        change(Documents(), 1)


@pytest.mark.parametrize("version", [4, 5])
def test_a_version_that_does_not_grow_asks_for_the_text(version: int) -> None:
    documents = Documents()
    documents.open("u", "python", 5, "abc")
    with pytest.raises(ResyncNeeded, match="version"):
        change(documents, version)


def test_the_whole_text_may_come_again_under_the_same_version() -> None:
    documents = Documents()
    found = documents.open("u", "python", 5, "abc")
    change(documents, 5, "abcd", full=True)
    list(documents.change("u", 5, [RangeChange(Position(0, 0), Position(INT32_MAX, 0), "ab")]))
    assert found.text == "ab"


def test_several_changes_of_one_message_are_applied_one_after_another() -> None:
    documents = Documents()
    found = documents.open("u", "python", 1, "one\ntwo\n")
    first = RangeChange(Position(0, 0), Position(0, 0), "# ")
    second = RangeChange(Position(1, 0), Position(1, 3), "2")
    assert [done.inserted for _, done in documents.change("u", 2, [first, second])] == ["# ", "2"]
    assert (found.text, found.version, found.revision) == ("# one\n2\n", 2, 2)


def test_opening_a_document_again_takes_the_new_text() -> None:
    documents = Documents()
    documents.open("u", "python", 9, "abc")
    documents.open("u", "python", 1, "new")
    found = documents.get("u")
    assert found is not None
    assert (found.text, found.version) == ("new", 1)


def test_a_long_document_is_the_same_after_many_changes() -> None:
    found = document("".join(f"line {number}\n" for number in range(3000)))
    for number in range(0, 2900, 7):
        edit(found, (number, 4), (number + 1, 2), f"{number}\nand\n")
    assert found.text == "".join(found.lines(0, found.line_count))
    assert found.text[found.line_start(1234) :].startswith(found.line(1234))
    assert found.line_of(found.line_start(1234)) == 1234
