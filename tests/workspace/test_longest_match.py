from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workspace.editing import Editor

from calomel.workspace.longest_match import LongestMatch

FILE = """\
def load(path: str) -> None:
    logger.info("loading %s", path)
    self.store.put(path, encoding="utf-8")

def save(path: str) -> None:
    logger.info("saving %s", path)
    self.store.
"""


class Room(Editor):
    """Open documents and what is known of their tokens."""

    def __init__(self, tokens: int = 100_000) -> None:
        self.matches = LongestMatch(tokens)
        super().__init__(listeners=[self.matches])

    def behind(self, offset: int) -> str | None:
        found = self.matches.find(self.document, offset)
        return None if found is None else found.text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (FILE, 'put(path, encoding="utf-8")'),
        (FILE[:-1] + "pu\n", 't(path, encoding="utf-8")'),
        (FILE[:-1] + "get\n", None),
        ("a = first()\nstart(a)\nb = second()\nstart(b)\nx = 1\na = first()\n\n", "start(a)"),
        ("f(x)\ng(\n", None),
    ],
    ids=["the_same_tokens", "a_name_begun", "another_name", "the_line_before", "less_than_five_tokens"],
)
def test_what_stands_behind_the_same_tokens_is_found(text: str, found: str | None) -> None:
    room = Room()
    room.open(text)
    assert room.behind(len(text) - 1) == found


def test_other_documents_are_looked_at_and_closed_ones_are_not() -> None:
    room = Room()
    other = room.open(FILE, uri="file:///w/b.py")
    room.open("print(path)\n    self.store.\n")
    assert room.behind(27) == 'put(path, encoding="utf-8")'
    room.workspace.close(other.uri)
    assert room.behind(27) is None


@pytest.mark.parametrize(("fourth", "text"), [("c", "c)"), ("d", None)])
def test_more_than_half_of_the_places_of_the_longest_match_must_go_on_alike(fourth: str, text: str | None) -> None:
    room = Room()
    places = "".join(f"{number}\nuse(a.b.{each})\n" for number, each in enumerate(["c", "c", "d", fourth]))
    document = room.open(places + "9\nuse(a.b.\n")
    found = room.matches.find(document, len(document) - 1)
    assert (found and (found.text, found.count)) == (text and (text, 3))


def test_documents_that_were_used_long_ago_are_let_go_and_the_one_at_hand_is_kept() -> None:
    room = Room(tokens=2_000)
    room.open(FILE, uri="file:///w/old.py")
    for number in range(5):
        room.open("".join(f"call_{number}.item_{line}(value)\n" for line in range(60)), uri=f"file:///w/{number}.py")
    room.open("    self.store.\n")
    assert room.behind(15) is None
    room.open(FILE + "x = 1\n" * 1_000)
    assert room.behind(len(FILE) - 1) == 'put(path, encoding="utf-8")'


def test_blanks_are_those_of_the_nearest_place_above_the_cursor() -> None:
    room = Room()
    room.open("a.b.c.put(1, 2)\n", uri="file:///w/b.py")
    text = "a.b.c.put(1,  2)\na.b.c.put(1,2)\na.b.c.\na.b.c.put( 1,2 )\n"
    room.open(text)
    assert room.behind(text.index("a.b.c.\n") + 6) == "put(1,2)"


PIECES = st.lists(st.sampled_from(["a", "b", "c", ".", "(", ")", "\n", "\n    ", " "]), max_size=60).map("".join)


@settings(max_examples=100, deadline=None)
@given(text=PIECES, edits=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4), PIECES), max_size=5))
def test_the_longest_match_there_is_counts_where_most_of_its_places_agree(
    text: str, edits: list[tuple[int, int, str]]
) -> None:
    room = Room()
    document = room.open(text)
    for wanted, length, new in edits:
        start = min(wanted, len(document))
        room.replace(start, min(len(document), start + length), new[:10])
    for offset in range(0, len(document) + 1, 3):
        found = room.matches.find(document, offset)
        tokens, rests = longest(document.text, offset)
        most = max(map(rests.count, rests), default=0)
        if len(rests) <= 16:
            assert (found is not None) == (2 * most > len(rests))
        assert found is None or found.tokens == tokens


def longest(text: str, offset: int) -> tuple[int, list[str]]:
    """By looking at every place of the text: how many tokens, at least five, and what follows at each such place."""
    lines = text.split("\n")
    row = text.count("\n", 0, offset)
    column = offset - text.rfind("\n", 0, offset) - 1
    stream: list[str] = []
    # For each place the tokens before it, and what must follow: a token of the same line.
    places: list[tuple[int, str, int, int]] = []
    own, part = 0, ""
    for number, line in enumerate(lines):
        found = list(re.finditer(r"\w+|[^\w\s]", line))
        if number == row:
            before = [match for match in found if match.start() < column]
            typing = line[:column][-1:].isalnum() and before
            own = len(stream) + len(before) - bool(typing)
            part = line[before[-1].start() : column] if typing else ""
        for index, match in enumerate(found):
            places.append((len(stream), match.group(), number, index))
            stream.append(match.group())
        if found:
            stream.append("\n")
    best, rests = 5, list[str]()
    for at, token, number, _ in places:
        if (number == row and at >= own) or not token.startswith(part) or token == part:
            continue
        count = 0
        while count < min(at, own) and stream[at - 1 - count] == stream[own - 1 - count]:
            count += 1
        best, rests = (count, []) if count > best else (best, rests)
        rests += [" ".join(stream[at : stream.index("\n", at)])] if count == best else []
    return best, rests


def test_a_long_document_is_read_bit_by_bit_with_the_questions() -> None:
    room = Room()
    lines = [f"value_{row} = compute(value_{row}, {row})\n" for row in range(30_000)]
    document = room.open("".join(lines) + "value_29000 = compute(")
    answers = [room.matches.find(document, len(document)) for _ in range(20)]
    assert answers[0] is None
    assert answers[-1] is not None
    assert answers[-1].text == "value_29000, 29000)"


def test_words_that_stand_nowhere_any_more_take_no_memory() -> None:
    room = Room()
    start, before = len(FILE), "\n"
    room.open(FILE + before)
    tracemalloc.start()
    try:
        for number in range(1_200):
            line = " ".join(f"name{number}x{word}" for word in range(20)) + "\n"
            room.replace(start, start + len(before), line)
            assert room.behind(start - 1) == 'put(path, encoding="utf-8")'
            before = line
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # All of these words took four megabytes.
    assert size < 1_500_000
