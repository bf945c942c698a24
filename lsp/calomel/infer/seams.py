"""How an answer joins the text around its hole: with a blank between two words, and with the file's own indentation.

A model ends with a word where a word follows, indents a line that stands indented already, and indents by what most
files have. What an author wrote there stays as it is.
"""

from __future__ import annotations

import re
from typing import Final

import regex

from calomel.selectivity.proposal import LINE_END, is_word
from calomel.selectivity.syntax import has_to_go_on, knows, loose
from calomel.workspace.languages import grammar_of, keywords

_LAST_WORD: Final = regex.compile(r"\w+\Z")
_NEAR: Final = 200
_WORD_BEHIND: Final = regex.compile(r"\w+")
_LEAD: Final = re.compile(r"[ \t]*")
# One blank is no indentation: ` * ` goes on with a comment.
_BLANKS: Final = re.compile(r"^ {2,}(?=\S)", re.MULTILINE)
_TABS: Final = re.compile(r"^\t", re.MULTILINE)
_OPENS_BLOCK: Final = re.compile(r"[:{]\s*\Z")
_USUAL_WIDTH: Final = 4
_WIDTHS: Final = (4, 2, 8, 3)


def spaced(text: str, cut: str, prefix: str, suffix: str, language_id: str) -> str:
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


def indented(text: str, prefix: str, suffix: str, language_id: str) -> str:
    """An answer with the file's indentation, without that of its first line where the cursor has it already.

    What is made of a line depends on the lines before it alone, so that a growing answer may be shown line by line.
    """
    lines = LINE_END.split(text)
    head = LINE_END.split(prefix[-_FAR:])[-1]
    at_start = not head.strip()
    if len(lines) == 1 and not (at_start and text[:1] in {" ", "\t"}):
        return text
    around = prefix + suffix
    blanks, tabs = _BLANKS.search(around) is not None, _TABS.search(around) is not None
    leads = [_LEAD.match(line)[0] for line in lines]  # type: ignore[index]
    found = list(leads)
    if blanks != tabs:
        base = _columns(head)
        for row in range(0 if at_start else 1, len(lines)):
            found[row] = _tabbed(leads, lines, row, base) if tabs else leads[row].expandtabs(width_of(around))
    if at_start and head and leads[0]:
        found[0] = _without_own(found[0], head, prefix, language_id)
    if found == leads:
        return text
    ends = [*LINE_END.findall(text), ""]
    return "".join(new + line[len(old) :] + end for new, old, line, end in zip(found, leads, lines, ends, strict=True))


# Characters before the cursor in which its line and block are looked for.
_FAR: Final = 4096


def width_of(text: str) -> int:
    """By how many blanks a text is indented: how many its least indented lines have."""
    return min((found.end() - found.start() for found in _BLANKS.finditer(text)), default=_USUAL_WIDTH)


def _tabbed(leads: list[str], lines: list[str], row: int, base: int) -> str:
    """The indentation of a line in tabs."""
    lead = leads[row]
    if not lead.startswith("  "):
        return lead
    blanks = len(lead.expandtabs(_USUAL_WIDTH))
    first = next(number for number, each in enumerate(leads) if number == row or (number and each.startswith("  ")))
    deeper = base + 1 if first and _OPENS_BLOCK.search(lines[first - 1]) else base
    width = len(leads[first]) / max(1, deeper)
    size = int(width) if width in _WIDTHS else next((each for each in _WIDTHS if len(leads[first]) % each == 0), 1)
    return "\t" * (blanks // size) + " " * (blanks % size)


def _columns(head: str) -> int:
    """The depth of a line that is indented by tabs."""
    return len(head) - len(head.lstrip("\t"))


def _without_own(lead: str, head: str, prefix: str, language_id: str) -> str:
    """The indentation of an answer's first line without what stands before the cursor, if both are too much."""
    above = [line for line in LINE_END.split(prefix[-_FAR:])[:-1] if line.strip()]
    if not above or not knows(language_id):
        return lead
    last = above[-1].split(" #" if language_id == "python" else " //")[0].rstrip()
    around = loose(prefix, language_id)
    if around.long or (around.waiting and around.waiting[-1] in (")]" if language_id != "python" else ")]}")):
        return lead
    width = width_of(prefix) if "\t" not in head else _USUAL_WIDTH
    block = _OPENS_BLOCK.search(last) is not None
    if not block and has_to_go_on(last):
        return lead
    size = len(_LEAD.match(above[-1])[0].expandtabs(width)) + (width if block else 0)  # type: ignore[index]
    here, own = len(head.expandtabs(width)), len(lead.expandtabs(width))
    if here + own <= size:
        return lead
    left = max(0, size - here, own - here)
    return lead[len(lead) - left :] if left and left < own and "\t" not in lead else "" if not left else lead
