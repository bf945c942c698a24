"""Words, names and places of code, as the rules of failures see them."""

from __future__ import annotations

import re
from typing import Final, Literal

Place = Literal["code", "comment", "string"]

# A word, or one visible sign.
_PIECE: Final = re.compile(r"\w+|[^\w\s]")
_NAME: Final = re.compile(r"[^\W\d]\w{2,}")
_LINE_COMMENT: Final = {"python": "#", "go": "//", "rust": "//", "typescript": "//", "javascript": "//"}
_BLOCK_COMMENT: Final = ("/*", "* ", "*/")

_KEYWORDS: Final = {
    "python": """and as assert async await break class continue def del elif else except False finally for from
        global if import in is lambda None nonlocal not or pass raise return self True try while with yield""",
    "go": """break case chan const continue default defer else fallthrough false for func go goto if import interface
        map nil package range return select struct switch true type var""",
    "rust": """as async await break const continue crate else enum extern false fn for if impl in let loop match mod
        move mut pub ref return self Self static struct super trait true type unsafe use where while""",
    "typescript": """abstract any as async await boolean break case catch class const continue default delete do else
        enum export extends false finally for from function if implements import in instanceof interface let new null
        number of private protected public readonly return static string super switch this throw true try type typeof
        undefined var void while yield""",
}
KEYWORDS: Final = {language: frozenset(text.split()) for language, text in _KEYWORDS.items()}
# Words of one language that the three others do not know, and that nobody gives to a name of his own.
MARKS: Final = {
    "python": frozenset({"def", "elif", "except", "lambda", "None", "nonlocal", "raise", "pass"}),
    "go": frozenset({"func", "chan", "defer", "fallthrough", "nil", "package"}),
    "rust": frozenset({"fn", "impl", "mut", "pub", "crate", "unsafe"}),
    "typescript": frozenset({"function", "undefined", "instanceof", "typeof", "extends", "readonly", "export"}),
}


def pieces(text: str) -> list[str]:
    """Words and visible signs, in order."""
    return _PIECE.findall(text)


def names(text: str, language: str) -> frozenset[str]:
    """Words of three letters and more that are no keyword of the language."""
    return frozenset(_NAME.findall(text)) - keywords(language)


def keywords(language: str) -> frozenset[str]:
    """Of a language; JavaScript's are among TypeScript's. None of one that is not known."""
    return KEYWORDS.get("typescript" if language in {"javascript", "tsx", "jsx"} else language, frozenset())


def foreign_words(language: str) -> frozenset[str]:
    """What only another language says; nothing for a language that is not known."""
    own = keywords(language)
    return frozenset().union(*(marks - own for marks in MARKS.values())) if own else frozenset()


def visible(text: str) -> str:
    """All but white space."""
    return "".join(text.split())


def word_before(prefix: str) -> str:
    """The part of a word that stands right before the cursor."""
    match = re.search(r"\w+\Z", prefix)
    return match[0] if match else ""


def word_behind(suffix: str) -> str:
    """The part of a word that stands right behind the hole."""
    match = re.match(r"\w+", suffix)
    return match[0] if match else ""


def net_brackets(text: str) -> tuple[int, ...]:
    """Of each kind of bracket, how many more are opened than closed; of each quote, whether one is left open."""
    pairs = tuple(text.count(opening) - text.count(closing) for opening, closing in ("()", "[]", "{}"))
    return (*pairs, *(text.count(quote) % 2 for quote in "\"'`"))


def place_of(prefix: str, language: str) -> Place:
    """Where the cursor stands, judged by its line: a comment, a string, or code.

    A docstring is text, too: its line has no sign of code, but an odd number of triple quotes stands above.
    """
    line = prefix.rsplit("\n", 1)[-1]
    mark = _LINE_COMMENT.get(language, "//")
    before, found, _ = line.partition(mark)
    if (found and not _open_quote(before)) or line.lstrip().startswith(_BLOCK_COMMENT):
        return "comment"
    if language == "python" and (prefix.count('"""') % 2 or prefix.count("'''") % 2):
        return "comment"
    return "string" if _open_quote(line) else "code"


def _open_quote(line: str) -> bool:
    """Whether a string that begins on the line is still open at its end."""
    quote = ""
    skip = False
    for sign in line:
        if skip:
            skip = False
        elif sign == "\\":
            skip = True
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'`":
            quote = sign
    return bool(quote)
