from __future__ import annotations

import random
import re
import sysconfig
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workspace.editing import Editor

from calomel.workspace.index import Index
from calomel.workspace.index_worker import LONGEST_FILE
from calomel.workspace.longest_match import LongestMatch
from calomel.workspace.segment import Analysis, SourceFile, analyse, build_segment

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

    def __init__(self, tokens: int = 100_000, index: Index | None = None) -> None:
        self.matches = LongestMatch(tokens, index=index)
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


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        (["c)", "c)", "d)", "c)"], ("c)", 3)),
        (["c)", "c)", "d)", "d)"], None),
        (["c(x, 1)", "c(x, 2)", "c( x, 3)"], ("c(x,", 3)),
        (["c(x, 1)", "d()", "c(y)", "c()", "c(x, 1)"], ("c(", 4)),
    ],
    ids=["most", "half", "as_far_as_they_agree", "as_far_as_most_agree"],
)
def test_what_more_than_half_of_the_places_have_is_copied(ends: list[str], found: tuple[str, int] | None) -> None:
    room = Room()
    places = "".join(f"{number}\nuse(a.b.{end}\n" for number, end in reversed([*enumerate(ends)]))
    document = room.open(places + "9\nuse(a.b.\n")
    match = room.matches.find(document, len(document) - 1)
    assert (match and (match.text, match.count)) == found


def test_documents_that_were_used_long_ago_are_let_go_until_the_user_comes_back_to_them() -> None:
    room = Room(tokens=2_000)
    old = room.open(FILE, uri="file:///w/old.py")
    for number in range(5):
        room.open("".join(f"call_{number}.item_{line}(value)\n" for line in range(60)), uri=f"file:///w/{number}.py")
    room.open("    self.store.\n")
    assert room.behind(15) is None
    room.document = old
    assert room.behind(len(FILE) - 1) == 'put(path, encoding="utf-8")'
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
@given(text=PIECES, edits=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4), PIECES), max_size=5), file=PIECES)
def test_the_longest_match_there_is_counts_if_most_of_its_places_begin_alike(
    text: str, edits: list[tuple[int, int, str]], file: str
) -> None:
    index = Index()
    index.add(build_segment([(SourceFile(__file__, "file.py"), analyse(file, "file.txt"))]))
    room = Room(index=index)
    document = room.open(text)
    for wanted, length, new in edits:
        start = min(wanted, len(document))
        room.replace(start, min(len(document), start + length), new[:10])
    for offset in range(0, len(document) + 1, 3):
        found = room.matches.find(document, offset)
        tokens, firsts = longest(document.text, offset, file)
        most = max(map(firsts.count, firsts), default=0)
        if len(firsts) <= 16:
            assert (found is not None) == (2 * most > len(firsts))
        assert found is None or found.tokens == tokens


def longest(text: str, offset: int, file: str) -> tuple[int, list[str]]:
    """By looking at every place: how many tokens, at least five, and what token follows at each such place."""
    row = text.count("\n", 0, offset)
    column = offset - text.rfind("\n", 0, offset) - 1
    tokens = tokens_of(text)
    own = sum((line, start) < (row, column) for _, line, start in tokens)
    part = ""
    if text[:offset][-1:].isalnum():
        own -= 1
        part = tokens[own][0][: column - tokens[own][2]]
    places = [(tokens, at) for at, (_, line, _) in enumerate(tokens) if line != row or at < own]
    stream, lines = tokens_of(file), file.split("\n")
    # Of a file, places in which nobody asks are left out: behind a name with nothing between, and one key from the end.
    for at, (_, line, start) in enumerate(stream):
        if not lines[line][:start][-1:].isalnum() and len(lines[line][start:].strip()) > 1:
            places.append((stream, at))
    best, firsts = 5, list[str]()
    for stream, at in places:
        token, count = stream[at][0], 0
        if token == "\n" or not token.startswith(part) or token == part:
            continue
        while count < min(at, own) and stream[at - 1 - count][0] == tokens[own - 1 - count][0]:
            count += 1
        best, firsts = (count, []) if count > best else (best, firsts)
        firsts += [token] if count == best else []
    return best, firsts


def tokens_of(text: str) -> list[tuple[str, int, int]]:
    """The tokens with their rows and columns."""
    found = []
    for row, line in enumerate(text.split("\n")):
        tokens = [(each[0], row, each.start()) for each in re.finditer(r"\w+|[^\w\s]", line)]
        found += [*tokens, ("\n", row, len(line))] if tokens else []
    return found


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


def test_a_line_that_a_program_wrote_thousands_of_times_delays_nobody(tmp_path: Path) -> None:
    line = "table.add(name, value, 1, 2, 3)\n"
    texts = {"many.py": line * 16_000, "wide.py": line.strip() * 16_000}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    index = Index()
    index.add(
        build_segment([(SourceFile(str(tmp_path / name), name), analyse(text, "")) for name, text in texts.items()])
    )
    room = Room(index=index)
    document = room.open("x = 1\n" + line * 3 + "table.add(name, ")
    began = time.thread_time()
    found = room.matches.find(document, len(document))
    assert time.thread_time() - began < 0.1
    assert found is not None
    assert (found.text, found.count) == ("value, 1, 2, 3)", 16)


@pytest.mark.slow
def test_five_thousand_files_cost_what_they_may(capsys: pytest.CaptureFixture[str]) -> None:
    """The packages of this environment: memory, processor time of reading, and time of a question."""
    paths = [path for path in Path(sysconfig.get_path("purelib")).rglob("*.py") if path.stat().st_size <= LONGEST_FILE]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(paths)[:5_000]]
    index, chance, took, asked = Index(), random.Random(1), list[float](), 0.0
    analysed = Analysis([], (), (), (), ())
    for first in range(0, len(texts), 512):
        files = [
            (SourceFile(f"/p/{first + at}.py", f"{first + at}.py"), replace(analysed, lines=text.splitlines(True)))
            for at, text in enumerate(texts[first : first + 512])
        ]
        began = time.process_time()
        index.add(build_segment(files))
        asked += time.process_time() - began
    room = Room(index=index)
    for _ in range(500):
        text = chance.choice(texts)
        at = chance.randrange(len(text) + 1)
        document = room.open(text[max(0, at - 3_000) : at])
        began = time.thread_time()
        room.matches.find(document, len(document))
        took.append(time.thread_time() - began)
    size = sum(segment.ngrams.size for segment in index.segments if segment.ngrams is not None)
    figures = {
        "files": len(texts), "tokens": index.tokens, "megabytes": size / 1e6, "seconds": asked,
        "p50_ms": sorted(took)[250] * 1e3, "p95_ms": sorted(took)[475] * 1e3,
    }  # fmt: skip
    with capsys.disabled():
        print(figures)  # noqa: T201 (what a record quotes)
    assert size < 150e6, figures
    assert asked < 30.0, figures
    assert figures["p95_ms"] < 2.0, figures
