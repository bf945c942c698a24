from __future__ import annotations

import pytest
from tests.suggest.drafts.moment import lines

from calomel.prompts.parts import text_hunks
from calomel.suggest.drafts.propose import drafts

PYTHON = "import os\nfrom typing import Any\n\n\ndef f(a: Any) -> None:\n    pass\n"
GO = 'package a\n\nimport (\n\t"errors"\n\t"os"\n)\n\nfunc f() {\n}\n'
RUST = "use std::fmt;\nuse std::sync::Arc;\n\nfn f() {\n}\n"
TYPESCRIPT = 'import { a } from "./a";\nimport { c } from "./c";\n\nconst x = 1;\n'


def imported(path: str, text: str, old: str, new: str, *others: str) -> list[str]:
    after = text.replace(old, new, 1)
    found = drafts(after, text_hunks(path, text, after), after.index(new), path, others)
    return [lines(after, draft) for draft in found if draft.maker == "imports"]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ("    x = json.loads(a)", "import json"),
        ("    x: Optional[int] = None", "from typing import Any, Optional"),
        ("    x = Path(a)", "from pathlib import Path"),
    ],
)
def test_a_name_of_pythons_library_is_imported(new: str, expected: str) -> None:
    assert imported("a.py", PYTHON, "    pass", new) == [expected]


def test_gos_packages_stand_in_the_order_of_the_alphabet() -> None:
    after = GO.replace("{\n}", '{\n\tfmt.Println("x")\n}')
    (draft,) = drafts(after, text_hunks("a.go", GO, after), len(after) - 3, "a.go")
    assert draft.apply(after).startswith('package a\n\nimport (\n\t"errors"\n\t"fmt"\n\t"os"\n)')
    assert imported("a.go", GO, "{\n}", "{\n\tx := filepath.Join(a)\n}") == ['\t"path/filepath"']


def test_a_name_of_rusts_library_is_used() -> None:
    assert imported("a.rs", RUST, "{\n}", "{\n    let m = HashMap::new();\n}") == ["use std::collections::HashMap;"]


def test_another_file_tells_where_a_name_comes_from() -> None:
    other = 'import { b, z } from "./b";\nb();\n'
    assert imported("a.ts", TYPESCRIPT, "const x = 1", "const x = b(1)", other) == ['import { b } from "./b";']
    other = "from app.models import Group, User\n"
    assert imported("a.py", PYTHON, "    pass", "    x = User(a)", other) == ["from app.models import User"]


def test_names_that_are_known_or_made_here_are_not_imported() -> None:
    assert imported("a.py", PYTHON, "    pass", "    json = a.json\n    json.x()") == []
    assert imported("a.py", PYTHON, "    pass", "    b: Any = a.Path(path=1)") == []
    assert imported("a.py", PYTHON, "    pass", '    log("Path of Counter")  # Path') == []
    assert imported("a.txt", PYTHON, "    pass", "    x = json.loads(a)") == []


@pytest.mark.parametrize(
    ("path", "text", "new", "expected"),
    [
        ("a.py", "def f(a):\n    pass\n", "x = json.loads(a)", "import json\n\n\ndef f(a):\n"),
        (
            "a.py",
            '#!/usr/bin/env python\n"""About\nthis."""\n\nX = 1\n\n\ndef f(a):\n    pass\n',
            "x = json.loads(a)",
            '"""About\nthis."""\n\nimport json\n\nX = 1\n',
        ),
        (
            "a.go",
            "// Package a.\npackage a\n\nfunc f() {\n\tpass\n}\n",
            'fmt.Println("x")',
            'package a\n\nimport "fmt"\n\nfunc',
        ),
        (
            "a.rs",
            "//! About.\n\nfn f() {\n    pass\n}\n",
            "let m = HashMap::new();",
            "//! About.\n\nuse std::collections::HashMap;\n\nfn",
        ),
        ("a.py", "x = 1\r\npass\r\n", "json.loads(x)", "import json\r\n\r\nx = 1\r\n"),
    ],
)
def test_the_first_import_stands_below_what_says_what_the_file_is(
    path: str, text: str, new: str, expected: str
) -> None:
    after = text.replace("pass", new, 1)
    found = drafts(after, text_hunks(path, text, after), after.index(new), path)
    (draft,) = [draft for draft in found if draft.maker == "imports"]
    assert expected in draft.apply(after)
