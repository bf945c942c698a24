from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.workspace.folder import SECONDS, Folder

from calomel.prompts.parts import Excerpt

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
        {
            "b.go": 'package b\nimport "x/lib"\nvar y = lib.Helper',
            "lib/a.go": "package lib\n\nfunc Helper() {\n}\n",
        },
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
