"""Callers name what they gave by place."""

from __future__ import annotations

import pytest
from tests.training.edits.told import told

from calomel.training.edits.options_object import options_object

CASES = {
    "python": (
        "def scan(a, size=1):\n    return a\n\n\nscan(1, 2)\nscan(3, size=4)\n",
        {
            "def scan(*, a, size=1):\n    return a\n\n\nscan(a=1, size=2)\nscan(a=3, size=4)\n",
            "def scan(a, *, size=1):\n    return a\n\n\nscan(1, size=2)\nscan(3, size=4)\n",
        },
    ),
    "typescript": (
        "function scan(a: A, size = 1, last?: B) {\n  return a;\n}\n\nscan(a, 2);\nscan(f(1), 3, last);\n",
        {
            (
                "function scan({ a, size = 1, last }: { a: A; size?: number; last?: B }) {\n  return a;\n}\n\n"
                "scan({ a, size: 2 });\nscan({ a: f(1), size: 3, last });\n"
            ),
            (
                "function scan(a: A, { size = 1, last }: { size?: number; last?: B }) {\n  return a;\n}\n\n"
                "scan(a, { size: 2 });\nscan(f(1), { size: 3, last });\n"
            ),
        },
    ),
    "javascript": (
        "function scan(a, size) {\n  return a;\n}\n\nscan(1, 2);\n",
        {"function scan({ a, size }) {\n  return a;\n}\n\nscan({ a: 1, size: 2 });\n"},
    ),
    "go": (
        (
            "package a\n\n// scan scans.\nfunc scan(ctx context.Context, a int, size string) int {\n\tb := B{a: a}\n"
            '\treturn b.a + len(size)\n}\n\nvar c = scan(d, 1, "x")\n'
        ),
        {
            (
                "package a\n\ntype scanOptions struct {\n\tA    int\n\tSize string\n}\n\n// scan scans.\n"
                "func scan(ctx context.Context, opts scanOptions) int {\n\tb := B{a: opts.A}\n"
                '\treturn b.a + len(opts.Size)\n}\n\nvar c = scan(d, scanOptions{A: 1, Size: "x"})\n'
            ),
        },
    ),
    "rust": (
        (
            "use a;\n\nimpl T {\n    pub fn scan(&self, a: &str, size: u8) -> u8 {\n        size\n    }\n\n"
            '    fn b(&self, size: u8) {\n        self.scan("x", size);\n    }\n}\n'
        ),
        {
            (
                "use a;\n\npub struct ScanOptions<'a> {\n    pub a: &'a str,\n    pub size: u8,\n}\n\nimpl T {\n"
                "    pub fn scan(&self, options: ScanOptions<'_>) -> u8 {\n"
                "        let ScanOptions { a, size } = options;\n"
                "        size\n    }\n\n    fn b(&self, size: u8) {\n"
                '        self.scan(ScanOptions { a: "x", size });\n    }\n}\n'
            ),
        },
    ),
}


@pytest.mark.parametrize("language", CASES)
def test_what_stood_by_place_is_named(language: str) -> None:
    before, after = CASES[language]
    assert {story.states()[-1] for story in told(options_object, language, before)} == after


def test_a_long_signature_is_broken_into_lines() -> None:
    name = "a_rather_long_name_of_something"
    text = f"function scan({name}: Something, other_{name}: Something) {{}}\n\nscan(1, 2);\n"
    (story,) = told(options_object, "typescript", text)
    assert story.states()[-1].startswith(
        f"function scan({{\n    {name},\n    other_{name},\n}}: {{\n    {name}: Something;\n"
        f"    other_{name}: Something;\n}}) {{}}"
    )


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "def scan(a, *b):\n    return a\n\n\nscan(1, 2)\n"),
        ("go", "package a\n\nfunc scan(a int) {\n}\n\nfunc b() {\n\tscan(1)\n}\n"),
        ("rust", "fn scan<T>(a: T, b: T) {}\n\nfn b() {\n    scan(1, 2);\n}\n"),
        ("typescript", "function scan(a: A, b: B) {}\n\nscan(...c);\n"),
    ],
)
def test_what_cannot_be_named_has_no_story(language: str, text: str) -> None:
    assert told(options_object, language, text) == []
