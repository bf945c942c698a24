"""Texts that nobody writes by hand, as long as wanted: generated tables, minified programs, deep nesting, broken code.

What reads code has to answer about each of them, in any language, as fast as about a person's text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final


def _repeated(piece: str, head: str = "", tail: str = "") -> Callable[[int], str]:
    return lambda size: head + piece * (size // len(piece)) + tail


def _numbered(form: str, head: str = "", tail: str = "") -> Callable[[int], str]:
    """The lines of `form` with each number in the place of `%d`."""
    return lambda size: head + "".join(form.replace("%d", str(at)) for at in range(size // (len(form) + 3))) + tail


def _nested(opening: str, closing: str, head: str = "x = ") -> Callable[[int], str]:
    def made(size: int) -> str:
        depth = size // (len(opening) + len(closing))
        return head + opening * depth + closing * depth + "\n"

    return made


def _broken(size: int) -> str:
    statements = _numbered("value%d = call(%d);\n")
    return statements(size // 2) + "((([[[{{{ ,,, = = = 'open\n" + statements(size // 2)


# A text of about so many characters.
SHAPES: Final[dict[str, Callable[[int], str]]] = {
    "table of rows": _numbered("{0x%d}, {0x%d}, {0xffff%d},\n", "{\n"),
    "closed table": _numbered("  {0x%d, 0x%d},\n", "static int t[] = {\n", "};\n"),
    "one line of statements": _numbered("function f%d(a,b){return a?b:f%d(b,a)}"),
    "one line of numbers": _numbered("%d, ", "x = [", "]\n"),
    "one word": _repeated("a"),
    "nested brackets": _nested("[", "]"),
    "nested parentheses": _nested("(", ")"),
    "nested tags": _nested("<div>", "</div>", ""),
    "unclosed": _repeated("("),
    "unclosed in lines": _repeated("f({\n"),
    "unopened": _repeated(")}]"),
    "chain of operators": _repeated("a + ", "x = ", "a\n"),
    "chain of calls": _repeated(".b()", "x = a", "\n"),
    "unary operators": _repeated("-", "x = ", "1\n"),
    "comments": _numbered("# comment %d\n"),
    "comments of C": _numbered("// comment %d\n", "int f()\n", "{ }\n"),
    "strings": _numbered('"string %d",\n'),
    "an open string": _repeated("a b c\n", 'x = "'),
    "an open comment": _repeated("a b c\n", "/* "),
    "open templates": _repeated("`${"),
    "documents of a shell": _numbered("cat <<E%d\n"),
    "the same name": _repeated("foo(bar, baz)\n"),
    "the same words": _repeated("foo bar\n"),
    "branches": _repeated("else if (a) {}\n", "if (a) {}\n"),
    "functions": _numbered("def f%d(a, b):\n    return a + b\n\n\n"),
    "functions of C": _numbered("int f%d(int a, int b) {\n  return a + b;\n}\n\n"),
    "decorators": _repeated("@a\n", "", "def f(): pass\n"),
    "astral letters": _repeated("\U0001d4b3 = '\U0001f600'\n"),
    "blank lines": _repeated("\n", "a", "b\n"),
    "lines of old systems": _repeated("a = 1\r"),
    "broken in the middle": _broken,
}
