"""The use of a new name first, then its import."""

from __future__ import annotations

import pytest
from tests.training.edits.told import inserted, told

from calomel.training.edits.import_added import import_added

CASES = {
    "python": (
        "import os\nfrom shutil import copy, move\n\n\ndef f(a):\n    os.rm(a)\n    move(a, 'b')\n    copy(a, 'c')\n",
        "import os\nfrom shutil import copy\n\n\ndef f(a):\n    os.rm(a)\n    copy(a, 'c')\n",
        ["\n    move(a, 'b')", ", move"],
    ),
    "typescript": (
        'import { first, last } from "./ends";\n\nfunction f(a: number[]) {\n  first(a);\n  last(a);\n}\n',
        'import { first } from "./ends";\n\nfunction f(a: number[]) {\n  first(a);\n}\n',
        ["\n  last(a);", ", last"],
    ),
    "javascript": (
        'import fs from "fs";\nimport path from "path";\n\nfunction f(a) {\n  console.log(a);\n  fs.rm(path.sep);\n}\n',
        'import path from "path";\n\nfunction f(a) {\n  console.log(a);\n}\n',
        None,
    ),
    "go": (
        'package a\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc f() {\n\tfmt.Println(1)\n\tos.Exit(1)\n}\n',
        'package a\n\nimport (\n\t"fmt"\n)\n\nfunc f() {\n\tfmt.Println(1)\n}\n',
        ["\n\tos.Exit(1)", '\n\t"os"'],
    ),
    "rust": (
        "use std::fs;\nuse std::io;\n\nfn f() {\n    fs::sync();\n    io::stdout();\n}\n",
        "use std::fs;\n\nfn f() {\n    fs::sync();\n}\n",
        ["\n    io::stdout();", "\nuse std::io;"],
    ),
}


@pytest.mark.parametrize("language", [language for language in CASES if CASES[language][2]])
def test_a_new_name_is_used_and_then_imported(language: str) -> None:
    text, before, changes = CASES[language]
    stories = {story.text: story for story in told(import_added, language, text)}
    assert before in stories
    assert inserted(stories[before]) == changes
    assert stories[before].states()[-1] == text


def test_two_imports_that_one_line_uses_are_two_stories() -> None:
    text = CASES["javascript"][0]
    befores = {story.text.count("import") for story in told(import_added, "javascript", text)}
    assert befores == {1}


def test_a_name_whose_use_cannot_go_is_no_story() -> None:
    assert told(import_added, "python", "from a import b\n\nx = b()\nprint(x)\n") == []
