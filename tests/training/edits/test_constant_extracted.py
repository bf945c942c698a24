"""A constant: its definition first, then its name wherever the value stood."""

from __future__ import annotations

import pytest
from tests.training.edits.told import inserted, told

from calomel.training.edits.constant_extracted import constant_extracted

CASES = {
    "python": (
        "import os\n\nLIMIT = 20\n\n\ndef first(a):\n    return a[:LIMIT]\n\n\ndef rest(a):\n    return a[LIMIT:]\n",
        "import os\n\n\n\ndef first(a):\n    return a[:20]\n\n\ndef rest(a):\n    return a[20:]\n",
        ["\nLIMIT = 20", "LIMIT", "LIMIT"],
    ),
    "typescript": (
        'const EMPTY = "none";\n\nexport function name(x?: string) {\n  return x ?? EMPTY;\n}\n',
        '\nexport function name(x?: string) {\n  return x ?? "none";\n}\n',
        ['const EMPTY = "none";\n', "EMPTY"],
    ),
    "javascript": (
        "'use strict';\nconst size = 8;\n\nmodule.exports = make(size, size);\n",
        "'use strict';\n\nmodule.exports = make(8, 8);\n",
        ["\nconst size = 8;", "size", "size"],
    ),
    "go": (
        "package a\n\nconst limit = 20\n\nfunc f(n int) bool {\n\treturn n > limit\n}\n",
        "package a\n\n\nfunc f(n int) bool {\n\treturn n > 20\n}\n",
        ["\nconst limit = 20", "limit"],
    ),
    "rust": (
        "use std::fmt;\n\nconst LIMIT: usize = 20 * 4;\n\nfn f(n: usize) -> bool {\n    n > LIMIT\n}\n",
        "use std::fmt;\n\n\nfn f(n: usize) -> bool {\n    n > (20 * 4)\n}\n",
        ["\nconst LIMIT: usize = 20 * 4;", "LIMIT"],
    ),
}


@pytest.mark.parametrize("language", CASES)
def test_the_name_goes_where_the_value_stood(language: str) -> None:
    text, before, changes = CASES[language]
    (story,) = told(constant_extracted, language, text)
    assert story.text == before
    assert inserted(story) == changes
    assert story.states()[-1] == text


def test_what_is_computed_from_names_is_no_constant() -> None:
    assert told(constant_extracted, "python", "A = B + C\n\nprint(A)\n") == []


def test_a_name_that_others_import_in_a_string_stays() -> None:
    assert told(constant_extracted, "python", '__all__ = ["LIMIT"]\n\nLIMIT = 2\n\nprint(LIMIT)\n') == []
