"""Lines that stand for code which stays as it is: `// ... existing code ...` in every language and wording."""

from __future__ import annotations

import re
from typing import Final

# Openers and closers of comments, as many as a line has around its words.
_OPENERS: Final = re.compile(
    r"(?:\{?/\*+|<!--|//+!?|\#+|--+(?:\[\[)?|;+|%+|\(\*|\{\#|<%\#?|\{-|'|rem\b)\s*", re.IGNORECASE
)
_CLOSERS: Final = re.compile(r"\s*(?:\*+/\}?|-->|\*\)|\#\}|%>|-\}|\]\])$")
_DOTS: Final = r"(?:\.{3,}|…)"
_BARE: Final = re.compile(rf"[\[(<{{]?\s*{_DOTS}(?:\s*{_DOTS})*\s*[\])>}}]?")
_EDGED: Final = re.compile(rf"[\[(<{{]?\s*{_DOTS}.*|.*{_DOTS}\s*[\])>}}.]?")
_WORDS: Final = re.compile(
    r"\b(?:existing|rest|remain\w*|unchanged|same|previous\w*|omitted|truncated|elided|untouched|unmodified|keep"
    r"|kept|as before|(?:other|more|original|above|following|prior|surrounding|your|the) (?:\w+ ){0,2}?"
    r"(?:code|functions?|methods?|imports?|fields?|members?|propert\w+|lines?|content|logic|implementation|tests?"
    r"|class\w*|definitions?|statements?|cases?|routes?|styles?|rules?|options?|components?|variables?|constants?"
    r"|types?|entries|items|values|parts?)|snip\w*)\b",
    re.IGNORECASE,
)
# Without dots, only what nobody writes about anything else.
_PLAIN: Final = re.compile(
    r"(?:(?:the )?(?:rest|remainder) of (?:the |your |this )?[\w ]{1,40}?(?:(?:remains?|is|stays?|are) )?"
    r"(?:here|(?:the )?same|unchanged|as is|as before)"
    r"|(?:existing|unchanged|other existing|previous|remaining) (?:code|imports|methods|functions|content|lines)"
    r"(?: (?:here|above|below|(?:remains?|stays?|is|are)? ?(?:the same|unchanged)))?"
    r"|(?:no changes?|unchanged|code omitted|omitted|snip))[.:]?",
    re.IGNORECASE,
)
# Said so, it means nothing else, wherever it stands.
_CERTAIN: Final = re.compile(
    rf"{_DOTS}.*\b(?:existing|unchanged|rest of|remain\w*)\b.*|.*\b(?:existing|unchanged|rest of|remain\w*)\b.*{_DOTS}",
    re.IGNORECASE,
)
_LONGEST: Final = 120
# A whole block on one line, its inside left out.
_FOLDED: Final = re.compile(
    r"^(?P<head>[^\r\n]*\{)\s*(?P<inside>/\*[^\r\n]{0,120}?\*/|\.{3}|…)\s*(?P<tail>\}[^\r\n]*)$"
)


def words_of_comment(line: str) -> str | None:
    """What a line says that is a comment and nothing else; None where it is no comment."""
    text = line.strip()
    found = _OPENERS.match(text)
    if found is None:
        return None
    return _CLOSERS.sub("", text[found.end() :]).strip()


def is_bare(line: str) -> bool:
    """Whether a line is an ellipsis without a comment around it, which is code in some languages."""
    text = line.strip()
    return len(text) <= _LONGEST and _BARE.fullmatch(text) is not None and text[0] in ".…"


def is_marker(line: str) -> bool:
    """Whether a comment stands for code that stays."""
    if len(line) > _LONGEST + 80:
        return False
    words = words_of_comment(line)
    if words is None or len(words) > _LONGEST:
        return False
    if _BARE.fullmatch(words) or _PLAIN.fullmatch(words):
        return True
    return _EDGED.fullmatch(words) is not None and _WORDS.search(words) is not None


def is_certain(line: str) -> bool:
    """Whether a marker is worded so that it cannot be a comment of the program's own."""
    words = words_of_comment(line)
    return words is not None and len(words) <= _LONGEST and _CERTAIN.fullmatch(words) is not None


def unfolded(line: str) -> tuple[str, str, str] | None:
    """Head, marker and tail of a block that is written on one line with its inside left out."""
    if len(line) > 4 * _LONGEST:
        return None
    found = _FOLDED.match(line)
    if found is None:
        return None
    inside = found["inside"]
    if inside.startswith("/*") and not is_marker(inside):
        return None
    return found["head"], inside, found["tail"]
