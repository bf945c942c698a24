from __future__ import annotations

import math
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workspace.folder import SECONDS, Folder

from calomel.prompts.parts import Excerpt
from calomel.workspace.index import K1, B, Index, search
from calomel.workspace.index_worker import read_source
from calomel.workspace.indexer import Indexer
from calomel.workspace.segment import Segment, SourceFile, analyse, build_segment, count_numbers, words_in

SHAPES = '''"""Shapes."""


class Rectangle:
    """Two sides."""

    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.height


def unit_square():
    return Rectangle(1, 1)
'''
MAIN = """from shapes import Rectangle


def total_area(rectangles):
    total = 0
    for rectangle in rectangles:
        total += Rectangle
    return total
"""
USER = """from shapes import Rectangle

BIG = Rectangle(100, 200)
print(BIG.area())
"""
FILES = {"shapes.py": SHAPES, "main.py": MAIN, "user.py": USER}


def text_of(found: tuple[Excerpt, ...], path: str) -> str:
    return "".join(each.text for each in found if each.path == path)


def eventually(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.02)
    return False


def test_uses_of_the_name_at_the_cursor_are_found_in_other_files_and_its_definition_comes_last(tmp_path: Path) -> None:
    with Folder(tmp_path, FILES) as folder:
        folder.open("main.py")
        found = folder.ask("main.py", "total += Rectangle")
    assert "BIG = Rectangle(100, 200)" in text_of(found, "user.py")
    assert not text_of(found, "main.py")
    assert found[-1].path == "shapes.py"
    assert "class Rectangle:" in found[-1].text
    assert "def area(self):" in found[-1].text


def test_excerpts_are_whole_lines_of_the_file_and_do_not_overlap(tmp_path: Path) -> None:
    files = {**FILES, **{f"more{n}.py": SHAPES.replace("Rectangle", f"Rectangle{n}") for n in range(4)}}
    with Folder(tmp_path, files) as folder:
        folder.open("main.py")
        found = folder.ask("main.py", "total += Rectangle")
    seen: set[tuple[str, int]] = set()
    for excerpt in found:
        lines = files[excerpt.path].splitlines(keepends=True)
        text = excerpt.text.splitlines(keepends=True)
        assert lines[excerpt.start_line : excerpt.start_line + len(text)] == text
        places = {(excerpt.path, excerpt.start_line + number) for number in range(len(text))}
        assert not places & seen
        seen |= places


def test_what_a_recently_edited_document_holds_unsaved_is_found_and_a_saved_one_is_read_again(tmp_path: Path) -> None:
    with Folder(tmp_path, FILES) as folder:
        folder.open("user.py")
        folder.type("user.py", 4, 0, "SMALL_THING = 3\n")
        folder.open("main.py")
        assert "SMALL_THING = 3" in text_of(folder.ask("main.py", "total += Rectangle"), "user.py")
        folder.write("shapes.py", SHAPES.replace("unit_square", "renamed_square"))
        folder.workspace.save(folder.open("shapes.py"))
        folder.settle()
        found = folder.related.index.definitions(["renamed_square", "unit_square"], (), 10)
        assert set(found) == {"renamed_square"}


def test_an_answer_stands_at_a_keystroke_and_what_the_model_has_read_stays_in_front(tmp_path: Path) -> None:
    with Folder(tmp_path, FILES) as folder:
        folder.open("main.py")
        before = folder.ask("main.py", "total += Rectangle")
        folder.now += 0.2
        folder.type("main.py", 6, 26, "(")
        assert folder.ask("main.py", "total += Rectangle(") is before
        folder.type("main.py", 8, 0, "\n" * 80 + "x = unit_square")
        after = folder.ask("main.py", "x = unit_square")
    known = tuple(each for each in before if each in after)
    assert known
    assert known == after[: len(known)]
    assert "def unit_square" in text_of(after, "shapes.py")


@pytest.mark.slow
def test_changes_outside_of_the_editor_are_noticed(tmp_path: Path) -> None:
    with Folder(tmp_path, FILES, watch=True) as folder:
        index = folder.related.index
        # The watches are set up beside the reading.
        assert eventually(lambda: folder.write("x.py", f"A = {time.monotonic()}\n") is not None and len(index) == 4)
        folder.write("inner/new.py", "def brand_new():\n    pass\n")
        assert eventually(lambda: "brand_new" in index.definitions(["brand_new"], (), 10))
        (tmp_path / "shapes.py").unlink()
        assert eventually(lambda: not index.definitions(["Rectangle"], (), 10))
        (tmp_path / "inner").rename(tmp_path / "outer")
        assert eventually(lambda: str(tmp_path / "outer" / "new.py") in index)
        assert eventually(lambda: str(tmp_path / "inner" / "new.py") not in index)
        folder.write(".gitignore", "outer/\n")
        assert eventually(lambda: str(tmp_path / "outer" / "new.py") not in index)


@pytest.mark.slow
def test_changes_in_a_folder_that_is_new_or_made_again_are_noticed(tmp_path: Path) -> None:
    with Folder(tmp_path, FILES, watch=True) as folder:
        index = folder.related.index

        def notices(path: str, name: str) -> bool:
            folder.write(path, f"def {name}():\n    pass\n")
            return eventually(lambda: bool(index.definitions([name], (), 10)))

        assert eventually(lambda: folder.write("x.py", f"A = {time.monotonic()}\n") is not None and len(index) == 4)
        for time_made in ("first", "second"):
            assert notices("made/a.py", f"{time_made}_one")
            assert notices("made/b.py", f"{time_made}_two")
            shutil.rmtree(tmp_path / "made")
            assert eventually(lambda: len(index) == 4)


@pytest.mark.parametrize("parent", ["venv", ".cache"])
def test_changes_are_noticed_wherever_the_folder_is(tmp_path: Path, parent: str) -> None:
    with Folder(tmp_path / parent / "project", FILES, watch=True) as folder:
        index = folder.related.index
        assert eventually(lambda: folder.write("x.py", f"A = {time.monotonic()}\n") is not None and len(index) == 4)


def test_files_that_nobody_may_read_are_not_in_the_index(tmp_path: Path) -> None:
    closed = ("private/keys.py", "node_modules/a.js", "api_pb2.py", ".ssh/config.py", "generated.py")
    refused = dict.fromkeys(closed, "# @generated by a tool\nSECRET_NAME = 3\n")
    with Folder(tmp_path, {**FILES, ".gitignore": "private/\n", **refused}) as folder:
        names = {str(Path(path).relative_to(tmp_path)) for path in folder.related.index.paths()}
    assert names == set(FILES)


IMPORTS = {
    "python": ({"b.py": "from pkg.a import helper\n\nhelper", "pkg/a.py": "def helper():\n    pass\n"}, "pkg/a.py"),
    "typescript": (
        {"b.ts": "import { helper } from './lib/a';\nhelper", "lib/a.ts": "export function helper() {}\n"},
        "lib/a.ts",
    ),
    "go": (
        {"b.go": 'package b\nimport "x/lib"\nvar y = lib.Helper', "lib/a.go": "package lib\n\nfunc Helper() {\n}\n"},
        "lib/a.go",
    ),
    "rust": (
        {"src/b.rs": "use crate::a::helper;\nfn f() { helper", "src/a.rs": "pub fn helper() -> u8 {\n    1\n}\n"},
        "src/a.rs",
    ),
    "java": (
        {
            "src/x/B.java": "package x;\nimport y.A;\nclass B { A a; A",
            "src/y/A.java": "package y;\n\npublic class A {\n    int f() {\n        return 1;\n    }\n}\n",
        },
        "src/y/A.java",
    ),
    "c": ({"b.c": '#include "a.h"\nint y = helper', "a.h": "int helper(void);\n"}, "a.h"),
}


@pytest.mark.parametrize("language", IMPORTS)
def test_imported_files_are_found(tmp_path: Path, language: str) -> None:
    files, wanted = IMPORTS[language]
    first = next(iter(files))
    last = files[first].split("\n")[-1]
    with Folder(tmp_path, files) as folder:
        folder.open(first, language)
        assert text_of(folder.ask(first, last), wanted)


def test_the_index_lets_go_of_a_file_that_is_excluded_where_nobody_watches(tmp_path: Path) -> None:
    (tmp_path / ".git" / "info").mkdir(parents=True)
    with Folder(tmp_path, FILES) as folder:
        uri = folder.open("main.py")
        assert str(tmp_path / "user.py") in folder.related.index
        assert folder.workspace.situation(uri, 0) is not None
        folder.write(".git/info/exclude", "user.py\n")
        assert folder.workspace.situation(uri, 0) is not None
        folder.settle()
        assert str(tmp_path / "user.py") not in folder.related.index
        assert str(tmp_path / "shapes.py") in folder.related.index


WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "theta", "kappa", "sigma", "omega"]


def segment_of(texts: list[str]) -> Segment:
    files = [(SourceFile(f"/w/{n}.txt", f"{n}.txt"), analyse(text, f"/w/{n}.txt")) for n, text in enumerate(texts)]
    return build_segment(files)


def naive(texts: list[str], query: dict[int, int]) -> dict[int, float]:
    documents = [Counter(count_numbers(words_in(text))) for text in texts]
    lengths = [sum(document.values()) for document in documents]
    mean = sum(lengths) / len(lengths)
    scores: dict[int, float] = {}
    for term, weight in query.items():
        having = sum(term in document for document in documents)
        if not having:
            continue
        rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for number, document in enumerate(documents):
            count = document[term]
            if count:
                part = count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[number] / mean))
                scores[number] = scores.get(number, 0.0) + weight * rarity * part
    return scores


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12), min_size=2, max_size=12),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
)
def test_the_best_chunks_are_those_of_the_formula(texts: list[list[str]], asked: list[str]) -> None:
    whole = [" ".join(words) + "\n" for words in texts]
    segment = segment_of(whole)
    query = count_numbers(words_in(" ".join(asked)))
    expected = naive(whole, query)
    found = {int(hit.segment.arrays["chunk_file"][hit.chunk]): hit.score for hit in search([segment], query, 20)}
    assert found.keys() == expected.keys()
    for number, score in expected.items():
        assert math.isclose(found[number], score, rel_tol=1e-3)


INDEX_SECONDS = 30.0


@contextmanager
def reading(
    root: Path, count: int = 0, index: Index | None = None, command: list[str] | None = None, **options: Any
) -> Iterator[tuple[Index, Indexer, list[str]]]:
    """A folder of so many modules that is being read, and what is said of that."""
    for number in range(count):
        (root / f"m{number}.py").write_text(f"def name{number}():\n    return {number}\n")
    index, messages = Index() if index is None else index, list[str]()
    reader = Indexer(index, None, messages.append, **({} if command is None else {"command": command}))
    reader.start([root], **options)
    try:
        yield index, reader, messages
    finally:
        reader.stop()


def worker_of(reader: Indexer) -> int:
    assert reader._process is not None
    return reader._process.process.pid


def test_every_file_is_read_and_found_by_its_names_and_the_worker_ends_with_the_reader(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with reading(tmp_path, 60, progress=lambda *told: seen.append(told)) as (index, reader, _):
        assert reader.wait(INDEX_SECONDS)
        assert reader.ready
        found = index.definitions([f"name{number}" for number in range(60)], (), 10)
        assert {place.file.name for places in found.values() for place, _ in places} == {f"m{n}.py" for n in range(60)}
        assert seen[-1] == (60, 60)
        assert seen == sorted(seen)
        pid = worker_of(reader)
    assert not Path(f"/proc/{pid}").exists()


def test_a_worker_that_dies_is_started_again(tmp_path: Path) -> None:
    with reading(tmp_path, 10) as (index, reader, messages):
        assert reader.wait(INDEX_SECONDS)
        os.kill(worker_of(reader), signal.SIGKILL)
        (tmp_path / "new.py").write_text("def after_death():\n    pass\n")
        reader.refresh([tmp_path / "new.py"])
        assert reader.wait(INDEX_SECONDS)
        assert "after_death" in index.definitions(["after_death"], (), 10)
        (message,) = messages
        assert "restarts" in message


def test_a_file_that_kills_the_worker_is_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text("POISON = 1\n")
    worker = tmp_path / "worker"
    worker.write_text(
        "import os, sys\n"
        "from calomel.workspace import index_worker\n"
        "read = index_worker.read_source\n"
        "def deadly(path):\n"
        "    if path.endswith('deadly.py'): os._exit(7)\n"
        "    return read(path)\n"
        "index_worker.read_source = deadly\n"
        "index_worker.main()\n"
    )
    with reading(tmp_path, 20, command=[sys.executable, str(worker)]) as (index, reader, messages):
        assert reader.wait(INDEX_SECONDS)
        assert len(index) == 20
        assert any(message.startswith("Calomel cannot index deadly.py") and "7" in message for message in messages)


def test_a_worker_that_cannot_run_is_given_up_and_said(tmp_path: Path) -> None:
    with reading(tmp_path, 3, command=["/nonexistent/program"]) as (_, reader, messages):
        assert reader.wait(INDEX_SECONDS)
        assert messages


def test_a_workspace_beyond_the_limit_is_read_in_part_and_said(tmp_path: Path) -> None:
    with reading(tmp_path, 12, most_files=5) as (index, reader, messages):
        assert reader.wait(INDEX_SECONDS)
        assert len(index) == 5
        assert messages[0].startswith("Suggestions use only the first 5 files")


class Fragile(Index):
    """Breaks at the first file."""

    whole = False

    def add(self, segment: Segment) -> None:
        self.whole, was_whole = True, self.whole
        if not was_whole:
            raise LookupError("a secret of the user's")
        super().add(segment)


def test_a_mistake_while_reading_is_logged_counted_and_begun_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with reading(tmp_path, 3, Fragile()) as (index, reader, messages):
        assert reader.wait(INDEX_SECONDS)
        assert (len(index), reader.restarts, len(messages)) == (3, 1, 1)
        assert "LookupError at test_related.py" in caplog.text
        assert "secret" not in caplog.text


def test_a_pipe_a_device_and_a_folder_in_place_of_a_source_file_keep_the_index_not_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    (tmp_path / "folder.py").mkdir()
    for name in ("pipe.py", "zero.py", "folder.py"):
        assert read_source(str(tmp_path / name)) == (None, "unreadable")
