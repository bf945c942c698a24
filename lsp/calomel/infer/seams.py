"""How an answer joins the text around its hole: with a blank between two words, and with the file's own indentation.

A model ends with a word where a word follows, indents a line that stands indented already, and indents by what most
files have. What an author wrote there stays as it is.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

import regex

from calomel.code.languages import grammar_of, keywords
from calomel.code.lines import LINE_END, indent_of
from calomel.code.names import is_word
from calomel.code.scan import has_to_go_on, knows, loose

_LAST_WORD: Final = regex.compile(r"\w+\Z")
_NEAR: Final = 200
_WORD_BEHIND: Final = regex.compile(r"\w+")
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
    leads = [indent_of(line) for line in lines]
    results = list(leads)
    if blanks != tabs:
        base = _columns(head)
        for row in range(0 if at_start else 1, len(lines)):
            results[row] = _tabbed(leads, lines, row, base) if tabs else leads[row].expandtabs(width_of(around))
    if at_start and head and leads[0]:
        results[0] = _without_own(results[0], head, prefix, language_id)
    if knows(language_id) and len(lines) > 1 and _begins_statement(prefix, lines[0], language_id):
        _nest(results, lines, indent_of(head) + (results[0] if at_start else ""), prefix, suffix)
    if results == leads:
        return text
    ends = [*LINE_END.findall(text), ""]
    return "".join(
        new + line[len(old) :] + end for new, old, line, end in zip(results, leads, lines, ends, strict=True)
    )


_HEAD: Final = re.compile(
    r"[^#]*\{\s*\Z|\s*(?:async\s+)?(?:for|while|if|elif|else|with|def|class|try|except|finally)\b.*:\s*\Z"
)
# Their lines may stand no deeper than their heads, and these no deeper than the lines around them.
_FLAT: Final = re.compile(r"\s*(?:\w+\s+)*(?:namespace|extern|switch|module|select)\b")
_LABEL: Final = re.compile(r"\s*(?:[)\]}#*]|//|/\*|(?:case|default)\b|\w+:)")


# What a statement stands behind: the end of another one, or the head of a block.
_ENDED: Final = re.compile(r"(?:\A|[{};:,]|\*/|(?:#|//)[^\n]*)\s*\Z")


def _begins_statement(prefix: str, text: str, language_id: str) -> bool:
    """Whether the line of the cursor, with this text, is the first one of a statement."""
    line = LINE_END.split(prefix[-_FAR:])[-1]
    before = prefix[: len(prefix) - len(line)]
    ended = language_id == "python" or _ENDED.search(before[-_FAR:]) is not None
    return (
        ended and not loose(before[-_FAR:], language_id).long and not loose(line + text, language_id, whole=True).total
    )


def _nest(results: list[str], lines: list[str], base: str, prefix: str, suffix: str) -> None:
    """Put what stands behind the first head of a block deeper than it, by as much as in the rest of the file."""
    full = [row for row, line in enumerate(lines) if row == 0 or line.strip()]
    if len(set(base.join(results))) > 1:
        return
    above, own = base + lines[0].lstrip(), base
    for row in full[1:]:
        if _HEAD.match(above) is not None:
            flat = base if _FLAT.match(above) else base + " "
            if row == full[1] and base and len(results[row]) < len(flat) and not _LABEL.match(lines[row]):
                # The answer is written as if its first line stood at the margin.
                results[row:] = [base + lead for lead in results[row:]]
            step, usual = len(results[row]) - len(own), _step(prefix, suffix)
            if usual is not None and step in _WIDTHS:
                results[row:] = [_scaled(lead, len(base), step, usual) for lead in results[row:]]
            return
        above, own = lines[row], results[row]


def _scaled(lead: str, base: int, old: int, new: int) -> str:
    """An indentation with other steps beyond a base."""
    steps, rest = divmod(len(lead) - base, old)
    return lead if len(lead) <= base else " " * (base + steps * new + rest)


_ENOUGH: Final = 3


def _step(prefix: str, suffix: str) -> int | None:
    """By how much the blocks of a file stand deeper than their heads, if that is the same for all of several."""
    before = LINE_END.split(prefix[-_FAR:])[len(prefix) > _FAR :]
    steps = []
    for lines in before, LINE_END.split(suffix[:_FAR])[1:]:
        for head, line in pairwise(each for each in lines if each.strip()):
            step = len(indent_of(line)) - len(indent_of(head))
            if step > 0 and _HEAD.match(head):
                steps.append(step)
    return steps[0] if len(steps) >= _ENOUGH and len(set(steps)) == 1 else None


# Characters before the cursor in which its line and block are looked for.
_FAR: Final = 4096


def width_of(text: str) -> int:
    """By how many blanks a text is indented: how many its least indented lines have."""
    return min((match.end() - match.start() for match in _BLANKS.finditer(text)), default=_USUAL_WIDTH)


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
    size = len(indent_of(above[-1]).expandtabs(width)) + (width if block else 0)
    here, own = len(head.expandtabs(width)), len(lead.expandtabs(width))
    if here + own <= size:
        return lead
    left = max(0, size - here, own - here)
    return lead[len(lead) - left :] if left and left < own and "\t" not in lead else "" if not left else lead
