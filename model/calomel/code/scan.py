"""Strings, comments and brackets of text that no parser can read: the middle of a file, broken between two keys.

A scanner of a few lines finds them. It recognises strings and comments as far as that is possible from the middle of a
file. Where it is wrong, it is wrong about the text before and after a change alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

# Every loop is possessive: an unclosed quote costs one pass over what follows it, never more.
_TRIPLE: Final = r'"""(?:[^"\\]|\\.|"(?!""))*+"""'
_TRIPLE_SINGLE: Final = r"'''(?:[^'\\]|\\.|'(?!''))*+'''"
# Not the beginning of an unclosed triple quote.
_DOUBLE: Final = r'"(?!"")(?:[^"\\\r\n]++|\\.)*+"'
_SINGLE: Final = r"'(?!'')(?:[^'\\\r\n]++|\\.)*+'"
_BACKTICK: Final = r"`(?:[^`\\]++|\\.)*+`"
_BLOCK: Final = r"/\*(?:[^*]++|\*(?!/))*+\*/"
_SLASHES: Final = r"//[^\r\n]*+"
_HASH: Final = r"#[^\r\n]*+"
# A regular expression comes after one of these, a division does not.
_PATTERN: Final = (
    r"/(?:(?<=[=(,:\[!&|?{;]/)|(?<=[=(,:\[!&|?{;] /))(?![*/])(?:\\.|\[(?:\\.|[^\]\\\r\n])*+\]|[^/\\\[\r\n])++/"
)
_CHARACTER: Final = r"'(?:\\(?:u\{[^}']*+\}|x..|.)|[^'\\\r\n])'"
_RAW: Final = (r'"(?<=\br")[^"]*+"', r'"(?<=\br#")(?:[^"]++|"(?!#))*+"#')
# An apostrophe in the text between tags is not a quote: one between letters never is.
_APOSTROPHE: Final = r"'(?<=[^\W\d_]')(?=[^\W\d_])"


def _scanner(notable: str, skipped: tuple[str, ...], long: str, quotes: str) -> re.Pattern[str]:
    """A pattern that finds brackets, the starts of unclosed multi-line strings and comments, and unclosed quotes.

    Args:
        notable: every character that one of the others begins with; anything in between is skipped.
        skipped: strings and comments.
        long: the starts of multi-line ones.
        quotes: the starts of others.
    """
    return re.compile(
        rf"[^()\[\]{{}}{notable}]*+"
        rf"(?:(?P<skipped>{'|'.join(skipped)})|(?P<bracket>[()\[\]{{}}])|(?P<long>{long})|(?P<quote>{quotes})"
        rf"|[{notable}]|\Z)",
        re.DOTALL,
    )


_C: Final = _scanner("/\"'", (_SLASHES, _BLOCK, _DOUBLE, _SINGLE), r"/\*", r"[\"']")
_TEXT_BLOCKS: Final = _scanner("/\"'", (_SLASHES, _BLOCK, _TRIPLE, _DOUBLE, _SINGLE), r"/\*|\"\"\"", r"[\"']")
_SCRIPT: Final = _scanner(
    "/\"'`", (_PATTERN, _SLASHES, _BLOCK, _DOUBLE, _APOSTROPHE, _SINGLE, _BACKTICK), r"/\*|`", r"[\"']"
)
_GO: Final = _scanner("/\"'`", (_SLASHES, _BLOCK, _DOUBLE, _SINGLE, r"`[^`]*+`"), r"/\*|`", r"[\"']")
_RUST: Final = _scanner("/\"'", (_SLASHES, _BLOCK, *_RAW, r'"(?:[^"\\]++|\\.)*+"', _CHARACTER), r"/\*|\"", r"(?!)")
_PYTHON: Final = _scanner("#\"'", (_HASH, _TRIPLE, _TRIPLE_SINGLE, _DOUBLE, _SINGLE), r"\"\"\"|'''", r"[\"']")
_JSON: Final = _scanner('/"', (_SLASHES, _BLOCK, _DOUBLE), r"/\*", '"')

_SCANNERS: Final = {
    "python": _PYTHON,
    **dict.fromkeys(("javascript", "javascriptreact", "javascript.jsx"), _SCRIPT),
    **dict.fromkeys(("typescript", "typescriptreact", "typescript.tsx"), _SCRIPT),
    "go": _GO,
    "rust": _RUST,
    **dict.fromkeys(("c", "cpp", "c++", "cuda", "cuda-cpp", "objective-c", "objective-cpp"), _C),
    **dict.fromkeys(("java", "kotlin", "scala", "csharp", "cs", "swift", "dart"), _TEXT_BLOCKS),
    **dict.fromkeys(("json", "jsonc"), _JSON),
}
# Multi-line strings whose start and end look the same, and heads of definitions.
_MARKS: Final = {
    "python": (('"""', "'''"), ("\n    def ", "\ndef ", "\nclass ")),
    "go": (("`",), ("\nfunc ", "\ntype ")),
}
_LONGEST_STRING: Final = 20_000
CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_NOTABLE: Final = re.compile(r"[()\[\]{}\n]")


class Lexeme(NamedTuple):
    """Anything but plain code.

    Attributes:
        kind: `skipped` is a whole string or comment, `long` and `quote` are starts of unclosed ones.
        start: where it begins.
        end: where it ends.
    """

    kind: Literal["skipped", "bracket", "long", "quote"]
    start: int
    end: int


class Loose(NamedTuple):
    """Unmatched parts of a text.

    Attributes:
        brackets: those closed by another kind, and closing ones without an opening one.
        quotes: starts of unclosed strings and comments.
        waiting: brackets that are open at the end; the text after it may close them.
        long: whether a multi-line string or comment is open at the end.
    """

    brackets: int
    quotes: int
    waiting: tuple[str, ...] = ()
    long: bool = False

    @property
    def total(self) -> int:
        """How many are certainly wrong."""
        return self.brackets + self.quotes

    @property
    def unmatched(self) -> int:
        """How many are unmatched within these lines."""
        return self.total + len(self.waiting)


def knows(language_id: str) -> bool:
    """Whether there is a scanner for a language."""
    return language_id in _SCANNERS


def scan(text: str, language_id: str) -> Iterator[Lexeme]:
    """Brackets, strings and comments of some lines, in order, in a language that the scanner knows."""
    for found in _SCANNERS[language_id].finditer(text):
        kind: Any = found.lastgroup
        if kind is not None:
            yield Lexeme(kind, *found.span(kind))


def marks(text: str, language_id: str) -> Iterator[tuple[int, str]]:
    """Brackets and line ends outside of strings and comments, up to the start of an unclosed multi-line string.

    In a language that the scanner does not know, those in strings and comments count.
    """
    at = 0
    for kind, start, end in scan(text, language_id) if knows(language_id) else ():
        if kind in {"skipped", "long"}:
            yield from ((each.start(), each[0]) for each in _NOTABLE.finditer(text, at, start))
            if kind == "long":
                return
            at = end
    yield from ((each.start(), each[0]) for each in _NOTABLE.finditer(text, at))


def unmatched(text: str, language_id: str) -> tuple[list[tuple[int, str]], list[str]]:
    """Where the unclosed brackets of a text are and what closes each, the outermost first; and the unopened ones."""
    opened: list[tuple[int, str]] = []
    closed: list[str] = []
    for at, mark in marks(text, language_id):
        if mark in CLOSING:
            opened.append((at, CLOSING[mark]))
        elif mark != "\n":
            if opened and opened[-1][1] == mark:
                opened.pop()
            elif not opened:
                closed.append(mark)
    return opened, closed


def loose(text: str, language_id: str, *, whole: bool = False, before: Loose | None = None) -> Loose:
    """What is unmatched in some lines of a language that the scanner knows.

    Args:
        text: the lines.
        language_id: of the document.
        whole: whether nothing above the lines could have opened what they close.
        before: the result for the lines directly above, which is included.
    """
    brackets, quotes, open_above, long = before or (0, 0, (), False)
    waiting = list(open_above)
    for kind, start, _ in scan(text, language_id):
        if kind == "bracket":
            character = text[start]
            if character in CLOSING:
                waiting.append(CLOSING[character])
            elif waiting and waiting[-1] == character:
                waiting.pop()
            elif character in waiting:
                while waiting.pop() != character:
                    brackets += 1
            elif waiting or whole:
                brackets += 1
        elif kind in {"quote", "long"}:
            quotes += 1
            long = long or kind == "long"
    return Loose(brackets, quotes, tuple(waiting), long)


def behind_string(text: str, at: int, language_id: str) -> int | None:
    """The end of the multi-line string or comment that contains `at`; `at` itself if there is none.

    None if it is unclosed. Its marks are counted, nothing is parsed.
    """
    marks, heads = _MARKS.get(language_id, ((), ()))
    least = max(0, at - _LONGEST_STRING)
    # No string contains the head of a definition at the beginning of a line.
    start = max((text.rfind(head, least, at) for head in heads), default=0)
    for mark in marks:
        if text.count(mark, max(start, 0), at) % 2:
            end = text.find(mark, at)
            return None if end < 0 else end + len(mark)
    if language_id != "python" and text.rfind("/*", least, at) > text.rfind("*/", least, at):
        end = text.find("*/", at)
        return None if end < 0 else end + 2
    return at


# A bracket, a colon, a comma, an operator, or a word that must be continued, at the end of a line.
_OPEN: Final = re.compile(
    r"(?:[(\[{:,.=+\-*/%&|<>?!^~\\@]|\b(?:and|or|not|in|is|return|if|else|elif|do|then|begin|function|def|class|new|"
    r"throw|raise|import|from|async|await|yield|const|let|var|case|where|try|finally|type|struct|enum|impl|fn|func))\s*\Z"
)


def has_to_go_on(line: str) -> bool:
    """Whether a line ends in something that must continue, on this line or on the next."""
    return _OPEN.search(line[-200:]) is not None
