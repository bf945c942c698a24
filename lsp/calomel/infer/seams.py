"""How an answer joins the text around its hole: nothing comes twice, and words stay apart.

A model begins the line of the cursor anew, and ends with a word where a word follows. What an author wrote there stays
as it is. How its lines are indented: `calomel.infer.indents`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import regex

from calomel.code.languages import grammar_of, keywords
from calomel.code.lines import LINE_END, indent_of
from calomel.code.names import is_word
from calomel.code.scan import has_to_go_on, unmatched
from calomel.infer.indents import FAR, indented, opens_block

_LAST_WORD: Final = regex.compile(r"\w+\Z")
_NEAR: Final = 200
_WORD_BEHIND: Final = regex.compile(r"\w+")


def begun(text: str, prefix: str, suffix: str, language_id: str) -> str:
    """An answer without what of the cursor's line it repeats, and with the file's indentation.

    What is made of a line depends on the lines before it alone, and of the first one on the second, so that a growing
    answer may be shown line by line.
    """
    head = LINE_END.split(prefix[-FAR:])[-1]
    if head.strip():
        if _INDENTED.match(text) and opens_block(head):
            text = f"{_line_end(prefix, suffix)}{text}"
        names = keywords(grammar_of(language_id))
        text = _without_repeated(text, head, (prefix[: -len(head)], suffix), names)
        text = text[_doubled(head, text, (prefix, suffix)) :]
    return indented(text, prefix, suffix, language_id)


# One blank parts two words; what stands behind more, and is no operator or comment, has a line of its own.
_INDENTED: Final = re.compile(r"( {2,}|\t[ \t]*)[\w\"'`()\[\]{}@<$&*!~]")
_NO_CODE: Final = re.compile(r"\s*(?:#|//|/?\*|--|;|%|<!--)")
# Lines whose indentation is compared.
_AROUND: Final = 40


def _line_end(prefix: str, suffix: str) -> str:
    found = LINE_END.search(suffix) or LINE_END.search(prefix[-FAR:])
    return found[0] if found else "\n"


def _is_indented(rest: str, prefix: str, suffix: str) -> bool:
    """Whether the rest of a line stands as other lines do, or within a block, and is not aligned with something."""
    found = _INDENTED.match(rest)
    if found is None:
        return False
    above = [line for line in LINE_END.split(prefix[-FAR:])[-_AROUND:] if line.strip()]
    below = [line for line in LINE_END.split(suffix[:FAR])[1:_AROUND] if line.strip()]
    inner = bool(above) and opens_block(above[-1]) and len(found[1]) > len(indent_of(above[-1]))
    return inner or any(indent_of(line) == found[1] for line in (*above, *below))


def is_other_line(prefix: str, suffix: str) -> bool:
    """Whether the cursor is before a line that is indented behind it: what is written there is another line."""
    head, rest = LINE_END.split(prefix[-FAR:])[-1], LINE_END.split(suffix[:FAR])[0]
    return not head.strip() and _is_indented(rest, prefix, suffix)


def parted(text: str, prefix: str, suffix: str, language_id: str, breaks: Callable[[str], object]) -> str:
    """An answer, with the line end that it lacks before the rest of the cursor's line, if that has to be another line.

    It has to where it is indented itself, behind several lines that began on a line of their own, and where only so
    the text is right (`breaks`, of a text in the hole).
    """
    rest, lines = LINE_END.split(suffix[:FAR])[0], LINE_END.split(text)
    last = lines[-1]
    if not rest.strip() or not last.strip() or last[-1] in " \t([" or _NO_CODE.match(last):
        return text
    if has_to_go_on(last) or any(closer in ")]" for _, closer in unmatched(last, language_id)[0]):
        return text
    head, end = LINE_END.split(prefix[-FAR:])[-1], _line_end(prefix, suffix)
    begins = len(lines) > 1 and not lines[0].strip()
    if is_other_line(prefix, suffix) or (begins and _is_indented(rest, prefix, suffix)):
        # The cursor may be within the indentation of what follows it.
        inner = f"{text}{end}{'' if head.strip() else head}"
        return f"{text}{end}" if breaks(inner) else inner
    ended = len(lines) > 1 and not head.strip() and last[-1] in ";)]}"
    if not is_word(rest[0]) or not (ended or breaks(text)):
        return text
    lined = f"{text}{end}{indent_of(head)}"
    return text if breaks(lined) else lined


_TOKEN: Final = regex.compile(r"\w+|[^\w\s]")
_NAME: Final = regex.compile(r"[^\W\d]\w*")
_WORD: Final = regex.compile(r"[^\W\d]\w+")
# Several words, but no operator with an operand.
_PHRASE: Final = regex.compile(r"(?!(?:and|or)\b)[^\W\d]\w+(?:[ \t-]+[^\W\d]\w+)++")
# Fewer letters than this may be intended: "a" before "a" is not a repetition.
_MIN_LETTERS: Final = 3
_OWN: Final = re.compile(r"(?<!\w)((?:self|this|cls)\.)\Z")
# Words that may be doubled: `not not x`, `long long x`.
_TWICE: Final = frozenset({"not", "long"})
# What begins a comment, a heading, a quotation or an item of a list, with the blank behind it.
_MARKER: Final = re.compile(r"(?:#+|//+!?|--|[-*+>]|\d+[.)])[ \t]+")
# Statements and declarations stand in nothing like them; a call may stand in a call of the same function.
_STATEMENT: Final = re.compile(r"\w\s+\w|(?<![=!<>])=(?!=)|\A(?:if|elif|for|foreach|while|until|switch|match|catch)\b")
# A string, tag, directive or decorator that was begun has no other one in it.
_ALONE: Final = frozenset("\"'<#@")
# So many words and marks are a line that was begun, and not an operand.
_SOME: Final = 3
# What the same text may follow again: a call in a call, an item beside another, a tag in a tag.
_BEFORE_OPERANDS: Final = "([{,>"
# `name =`, `"name":`, `name :`
_NAMED: Final = regex.compile(r"([\"'\x60]?)[^\W\d][\w.-]*\1\s*(?:=|(?<!:):)")


def _without_repeated(text: str, head: str, around: tuple[str, str], names: frozenset[str]) -> str:
    """`text` without a start that repeats the line before the cursor, or its last tokens.

    They are a repetition only where twice they make no sense: two words that become one, a line begun in its middle, a
    word behind itself, `name = name =`. `foo(foo(`, `x, x` and `--` are none.
    """
    if head[:1] == "\t" or head[:2] == "  ":
        anew = text.removeprefix(head.rstrip())
        if anew != text:  # nobody else writes the line's own indentation
            return anew.lstrip(" \t") if head[-1].isspace() else anew
    own = _OWN.search(head)
    if own is not None:
        return text.removeprefix(own[1])
    starts = [found.start() for found in _TOKEN.finditer(head)]
    while True:
        for start in starts:
            again, said = head[start:].rstrip(), text if start > starts[0] else text.lstrip(" \t")
            if said.startswith(again) and _is_repeated(again, head, said, around, names, whole=start == starts[0]):
                left = said[len(again) :]
                text = left.lstrip(" \t") if head[-1].isspace() else left
                break
        else:
            return text


def _is_repeated(
    again: str, head: str, said: str, around: tuple[str, str], names: frozenset[str], *, whole: bool
) -> bool:
    """Whether `again`, the end of the line or the whole of it, is not meant where `said` begins with it."""
    behind, apart = said[len(again) :], head[-1].isspace()
    words, single = _WORD.findall(again), _NAME.fullmatch(again) is not None
    goes_on = is_word(again[-1]) and is_word(behind[:1])
    if apart and single:
        return again not in _TWICE and re.match(r"[ \t]|\Z", behind) is not None
    if not words:
        marker = apart and _MARKER.fullmatch(head.lstrip()) and _MARKER.match(said)
        sign = again in _ALONE and re.match(r"[^\W\d]|/[a-zA-Z]", behind)
        anew = len(_TOKEN.findall(again)) >= _SOME and _NAME.search(again) and again[-1] not in _BEFORE_OPERANDS
        return whole and not goes_on and bool(marker or sign or anew or _NAMED.fullmatch(again))
    if is_word(head[-1]) and is_word(said[0]):  # two words become one
        first = _WORD_BEHIND.findall(said)[0]
        meant = _is_known(_LAST_WORD.findall(head)[-1] + first, around, names)
        half = goes_on and single and not (whole and _is_known(first, around, names))
        return not (meant or half or (single and len(again) < _MIN_LETTERS))
    if _NAMED.fullmatch(again) or (apart and re.match(r"\s|\Z", behind) and _PHRASE.fullmatch(again)):
        return True
    return whole and (not goes_on or not apart) and _begins_anew(again, said, around[1], len(words))


def _begins_anew(again: str, said: str, suffix: str, words: int) -> bool:
    """Whether a line that an answer begins with as well is not meant to stand in itself, as `max(a, max(a, b))` may."""
    if _STATEMENT.search(again) or (again[0] in _ALONE and is_word(again[-1])):
        return True
    if again[-1] not in _BEFORE_OPERANDS:
        return words > 1 or again[-1] == "." or len(_TOKEN.findall(again)) >= _SOME
    first, rest = LINE_END.split(said)[0], LINE_END.split(suffix)[0]
    nested, once = (any(unmatched(line + rest, "")) for line in (again + first, first))
    return nested and not once


_COMMENT: Final = re.compile(r"(?:#|--)(?!\w)|//|<!--|;|$", re.MULTILINE)
_ALIGNED: Final = re.compile(r"(?<=\S) {2,}(?=\S)")


def _doubled(before: str, after: str, around: tuple[str, str]) -> int:
    """How many blanks of `after` stand behind the one that `before` ends with, and align nothing.

    Two blanks are right before a comment, behind a full stop in a text that has them there, and in columns.
    """
    size = len(after) - len(after.lstrip(" "))
    if not size or before[-1:] != " " or before[-2:-1].isspace():
        return 0
    if _COMMENT.match(after, size) and not _COMMENT.match(LINE_END.split(before)[-1].lstrip() or "x"):
        return 0
    if before.endswith(". ") and any(".  " in text for text in around):
        return 0
    above, below = LINE_END.split(around[0][-FAR:])[-4:-1], LINE_END.split(around[1][:FAR])[1:4]
    column = len(LINE_END.split(before)[-1]) + size
    return 0 if any(found.end() == column for line in above + below for found in _ALIGNED.finditer(line)) else size


def apart(text: str, cut: str, prefix: str, suffix: str, language_id: str) -> str:
    """`cut`, the start of the answer `text`, with one blank between two words at either side of it."""
    made, near = _spaced(text, cut, prefix, suffix, language_id), prefix[-FAR:]
    left = made.rstrip(" ")
    if not left or left == made or suffix[:1] != " " or suffix[1:2].isspace():
        return made
    return left if _doubled(f"{near}{left} ", made[len(left) :] + suffix[1:], (prefix, suffix)) else made


def _spaced(text: str, cut: str, prefix: str, suffix: str, language_id: str) -> str:
    """`cut`, the start of the answer `text`, with a blank where one of its words would become one with a neighbour.

    Words stay joined where the joined word stands in the file, where a cursor splits a word, and where nothing says
    that they are two: half a word is no word of the file.
    """
    if not cut or (is_word(prefix[-1:]) and is_word(suffix[:1])):
        return cut
    names = keywords(grammar_of(language_id))
    behind = (_WORD_BEHIND.match(suffix) or [""])[0]
    around = (prefix, suffix[len(behind) :])
    first = _WORD_BEHIND.match(cut)
    if first is not None and is_word(prefix[-1:]):
        last = _LAST_WORD.findall(prefix[-_NEAR:])[-1]
        if last in names and not _is_known(last + first[0], around, names) and _is_known(first[0], around, names):
            cut = " " + cut
    if is_word(cut[-1:]) and behind:
        last = _LAST_WORD.findall((prefix + cut if is_word(cut[0]) else cut)[-_NEAR:])[-1]
        apart = len(cut.lstrip()) < len(text.lstrip()) or last in names or _is_known(behind, around, names)
        if apart and not _is_known(last + behind, around, names):
            cut += " "
    return cut


def _is_known(word: str, around: tuple[str, str], names: frozenset[str]) -> bool:
    """Whether a word is one of the text around the hole or of its language."""
    whole = regex.compile(rf"(?<!\w){regex.escape(word)}(?!\w)")
    return word in names or any(map(whole.search, around))
