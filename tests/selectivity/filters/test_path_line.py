from __future__ import annotations

import pytest
from tests.selectivity.filters.golden import drops

from calomel.selectivity.filters.path_line import path_line

DROPPED = {
    "a path": "├# Path: src/app.py\nx = 1┤\n",
    "a file": "├# File: app.py┤\n",
    "slashes": "├// Path: src/app.ts\nconst x = 1;┤\n",
    "with backslashes": "├# file path: src\\app.py\nx┤\n",
    "the line of a prompt": "├current_file_path: src/app.py\nx┤\n",
    "an edit": "⌈‸├a→# Path: src/app.py\na┤\n⌉",
    "the second of two edits": "⌈├a→b┤‸\n├# File: app.py\n┤c\n⌉",
    "letters beyond ASCII": "├# Path: src/größe.py┤\n",
    "in an empty file": "├# Path: a/b.py┤",
}
KEPT = {
    "a comment about paths": "├# Path: the way to the file┤\n",
    "a key": "├path: src/app.py┤\n",
    "in the second line": "├x = 1\n# Path: src/app.py┤\n",
    "code": "├path = 'src/app.py'┤\n",
    "letters beyond ASCII": "├# Größe: 3.px┤\n",
}


@pytest.mark.parametrize("case", DROPPED.values(), ids=DROPPED)
def test_the_head_of_an_excerpt_is_dropped(case: str) -> None:
    assert drops(path_line, case)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_other_lines_about_paths_stay(case: str) -> None:
    assert not drops(path_line, case)
