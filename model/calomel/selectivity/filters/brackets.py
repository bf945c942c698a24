"""Brackets and quotes of source code without their counterpart: a scanner of a few lines, no parser.

It knows strings and comments as far as they can be known from the middle of a file. Where it is wrong, it is wrong
about a text before and after a change alike.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

# Every loop is possessive: a quote without an end costs one look at what follows it, never more.
_TRIPLE: Final = r'"""(?:[^"\\]|\\.|"(?!""))*+"""'
_TRIPLE_SINGLE: Final = r"'''(?:[^'\\]|\\.|'(?!''))*+'''"
# Not the beginning of a longer one that has no end.
_DOUBLE: Final = r'"(?!"")(?:[^"\\\r\n]++|\\.)*+"'
_SINGLE: Final = r"'(?!'')(?:[^'\\\r\n]++|\\.)*+'"
_BACKTICK: Final = r"`(?:[^`\\]++|\\.)*+`"
_BLOCK: Final = r"/\*(?:[^*]++|\*(?!/))*+\*/"
_SLASHES: Final = r"//[^\r\n]*+"
_HASH: Final = r"#[^\r\n]*+"
# A regular expression stands behind one of these, a division does not.
_PATTERN: Final = (
    r"/(?:(?<=[=(,:\[!&|?{;]/)|(?<=[=(,:\[!&|?{;] /))(?![*/])(?:\\.|\[(?:\\.|[^\]\\\r\n])*+\]|[^/\\\[\r\n])++/"
)
_CHARACTER: Final = r"'(?:\\(?:u\{[^}']*+\}|x..|.)|[^'\\\r\n])'"
_RAW: Final = (r'"(?<=\br")[^"]*+"', r'"(?<=\br#")(?:[^"]++|"(?!#))*+"#')
# An apostrophe in the text between tags is no quote: one between letters never is.
_APOSTROPHE: Final = r"'(?<=[^\W\d_]')(?=[^\W\d_])"


def _scanner(notable: str, skipped: tuple[str, ...], long: str, quotes: str) -> re.Pattern[str]:
    """What finds brackets, the beginnings of what goes over several lines and has no end, and quotes without one.

    Args:
        notable: every character that one of the others begins with; what lies between is passed over.
        skipped: strings and comments.
        long: beginnings of those that go over several lines.
        quotes: beginnings of those that do not.
    """
    return re.compile(
        rf"[^()\[\]{{}}{notable}]*+"
        rf"(?:{'|'.join(skipped)}|(?P<bracket>[()\[\]{{}}])|(?P<long>{long})|(?P<quote>{quotes})|[{notable}]|\Z)",
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
# Strings of several lines whose beginning and end look the same, and heads of definitions.
_MARKS: Final = {
    "python": (('"""', "'''"), ("\n    def ", "\ndef ", "\nclass ")),
    "go": (("`",), ("\nfunc ", "\ntype ")),
}
_LONGEST_STRING: Final = 20_000
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


class Loose(NamedTuple):
    """What has no counterpart.

    Attributes:
        opening: brackets that another one closes, or the end of the file.
        closing: brackets that nothing has opened.
        quotes: beginnings of strings and comments without an end.
        waiting: brackets that are open at the end; the text behind may close them.
        long: whether a string or comment of several lines is open at the end.
    """

    opening: int
    closing: int
    quotes: int
    waiting: tuple[str, ...] = ()
    long: bool = False

    @property
    def total(self) -> int:
        """All that is surely wrong."""
        return self.opening + self.closing + self.quotes


def knows(language_id: str) -> bool:
    """Whether there is a scanner for a language."""
    return language_id in _SCANNERS


def loose(text: str, language_id: str, *, whole: bool = False, before: Loose | None = None) -> Loose:
    """What has no counterpart in some lines of a language that the scanner knows.

    Args:
        text: the lines.
        language_id: of the document.
        whole: nothing stands above them that could have opened what they close.
        before: of the lines directly above, which are counted in.
    """
    opening, closing, quotes, open_above, long = before or (0, 0, 0, (), False)
    waiting = list(open_above)
    for found in _SCANNERS[language_id].finditer(text):
        kind = found.lastgroup
        if kind == "bracket":
            character = found["bracket"]
            if character in _CLOSING:
                waiting.append(_CLOSING[character])
            elif waiting and waiting[-1] == character:
                waiting.pop()
            elif character in waiting:
                while waiting.pop() != character:
                    opening += 1
            elif waiting or whole:
                closing += 1
        elif kind in {"quote", "long"}:
            quotes += 1
            long = long or kind == "long"
    return Loose(opening, closing, quotes, tuple(waiting), long)


def behind_string(text: str, at: int, language_id: str) -> int | None:
    """Behind the string or comment of several lines that `at` is in; `at` itself when it is in none.

    None when it has no end. Its marks are counted, nothing is parsed.
    """
    marks, heads = _MARKS.get(language_id, ((), ()))
    least = max(0, at - _LONGEST_STRING)
    # No string goes over the head of a definition at the beginning of a line.
    start = max((text.rfind(head, least, at) for head in heads), default=0)
    for mark in marks:
        if text.count(mark, max(start, 0), at) % 2:
            end = text.find(mark, at)
            return None if end < 0 else end + len(mark)
    if language_id != "python" and text.rfind("/*", least, at) > text.rfind("*/", least, at):
        end = text.find("*/", at)
        return None if end < 0 else end + 2
    return at
