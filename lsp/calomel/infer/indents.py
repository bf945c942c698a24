"""How the lines of an answer are indented: as the structure of the text before the hole and the file's own steps say.

A model indents a line that stands indented already, loses the indentation of its first line, and indents by what most
files have. What an author wrote there stays as it is.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from calomel.code.lines import LINE_END, indent_of
from calomel.code.scan import has_to_go_on, knows, loose, unmatched

# Characters before the cursor in which its line and block are looked for.
FAR: Final = 4096
# One blank is no indentation: ` * ` goes on with a comment.
_BLANKS: Final = re.compile(r"^ {2,}(?=\S)", re.MULTILINE)
_TABS: Final = re.compile(r"^\t", re.MULTILINE)
_OPENS_BLOCK: Final = re.compile(r"[:{]\s*\Z")
_USUAL_WIDTH: Final = 4
_WIDTHS: Final = (4, 2, 8, 3)


def needs_second_line(text: str, prefix: str) -> bool:
    """Whether only the second line of an answer tells what is made of the indentation of its first one."""
    head = LINE_END.split(prefix[-FAR:])[-1]
    if head or text[:1] in {" ", "\t"}:
        return not head.strip() and text[:1] in {" ", "\t"}
    above = _lines_above(prefix)
    return any(map(indent_of, above)) or _deeper((above or [""])[-1], 1) > 0


def indented(text: str, prefix: str, suffix: str, language_id: str) -> str:
    """An answer with the file's indentation, without that of its first line where the cursor has it already."""
    lines = LINE_END.split(text)
    head = LINE_END.split(prefix[-FAR:])[-1]
    at_start = not head.strip()
    if not text.strip() or (len(lines) == 1 and head and not (at_start and text[:1] in {" ", "\t"})):
        return text
    around = prefix + suffix
    blanks, tabs = _BLANKS.search(around) is not None, _TABS.search(around) is not None
    leads = [indent_of(line) for line in lines]
    results = list(leads)
    if blanks != tabs:
        base = _columns(head)
        for row in range(0 if at_start else 1, len(lines)):
            results[row] = _tabbed(leads, lines, row, base) if tabs else leads[row].expandtabs(_width_of(around))
    if at_start and head and leads[0]:
        results[0] = _without_own(results, lines, head, (prefix, suffix), language_id)
    elif not head and not leads[0] and not _in_text(prefix[-FAR:], language_id):
        known = blanks or tabs  # how far a block stands in
        inside = _inside(prefix, lines[0], len(lines) > 1, around, language_id) if known else ""
        fits = inside and _bears_out(inside, lines, results, (_lines_above(prefix) or [""])[-1])
        results[0] = inside if fits else _lost(results, lines, prefix, suffix, language_id)
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


def opens_block(line: str) -> bool:
    """Whether a line is the head of a block, or ends with a brace that it opens."""
    return _HEAD.match(line) is not None


# Their lines may stand no deeper than their heads, and these no deeper than the lines around them.
_FLAT: Final = re.compile(r"\s*(?:\w+\s+)*(?:namespace|extern|switch|module|select)\b")
_LABEL: Final = re.compile(r"\s*(?:[)\]}#*]|//|/\*|(?:case|default)\b|\w+:)")


# What a statement stands behind: the end of another one, or the head of a block.
_ENDED: Final = re.compile(r"(?:\A|[{};:,]|\*/|(?:#|//)[^\n]*)\s*\Z")


def _begins_statement(prefix: str, text: str, language_id: str) -> bool:
    """Whether the line of the cursor, with this text, is the first one of a statement."""
    line = LINE_END.split(prefix[-FAR:])[-1]
    before = prefix[: len(prefix) - len(line)]
    ended = language_id == "python" or _ENDED.search(before[-FAR:]) is not None
    return (
        ended and not loose(before[-FAR:], language_id).long and not loose(line + text, language_id, whole=True).total
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
            if not base and indent_of((_lines_above(prefix) or [""])[-1]):
                return  # the first line may have lost its own indentation, and not the others
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
    before = LINE_END.split(prefix[-FAR:])[len(prefix) > FAR :]
    steps = []
    for lines in before, LINE_END.split(suffix[:FAR])[1:]:
        for head, line in pairwise(each for each in lines if each.strip()):
            step = len(indent_of(line)) - len(indent_of(head))
            if step > 0 and _HEAD.match(head):
                steps.append(step)
    return steps[0] if len(steps) >= _ENOUGH and len(set(steps)) == 1 else None


def _width_of(text: str, usual: int = _USUAL_WIDTH) -> int:
    """By how many blanks a text is indented: how many its least indented lines have; `usual` without any."""
    return min((match.end() - match.start() for match in _BLANKS.finditer(text)), default=usual)


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


# What stands deeper than these: a list's item, a tag's content, what is in a bracket.
_OPENS: Final = re.compile(
    r"[:{(\[]\s*\Z|:\s+[|>][+-]?\s*\Z|\b(?:do|then|else|begin|try)\s*\Z"
    r"|\A\s*(?:local\s+)?(?:def|class|module|function|sub|proc)\b[^;{}=]*\Z"
)
_TAG: Final = re.compile(r"\s*<(?!(?:br|hr|img|input|link|meta)\b)[A-Za-z][\w.:-]*(?:\s[^<>]*)?(?<![/=-])>[^<>]*\Z")
_ITEM: Final = re.compile(r"[ \t]*((?:[-*+]|\d+[.)]) +)\S")
_GOES_ON_WITH: Final = re.compile(r"\s*(?:[.)\]}&|?:,=+*/<>-]|#|//|/\*)")
# Has its body on the next line.
_HEADS: Final = re.compile(r"\s*(?:if|else|for|while|do)\b")
# What stands at the margin anyway, or closes what is open.
_AT_MARGIN: Final = re.compile(r"[)\]}]|(?:case|default|else|public|private|protected)\b|\w+:\s*\Z|#\s?[a-z]+\b|</")
# A comment behind code; `#` before a letter may be a color.
_BEHIND: Final = re.compile(r"\s(?:#[^\w]|//)")
_ENDS_BLOCK: Final = re.compile(r"[)\]}]|end\b|</")
_PAIR: Final = re.compile(r"\s*[\"']?[\w.-]+[\"']?\s*:\s+\S")
_ELEMENT: Final = re.compile(r"\s*<([\w.:-]+)\b.*(?:</\1>|/>)\s*\Z")


def _lines_above(prefix: str) -> list[str]:
    """The lines with text above the cursor's, as far as they are near."""
    return [line for line in LINE_END.split(prefix[-FAR:])[:-1] if line.strip()]


def _deeper(line: str, width: int) -> int:
    """By how many columns what a line opens stands deeper; 0 if it opens nothing."""
    item = _ITEM.match(line)
    code = _BEHIND.split(line)[0]
    if _OPENS.search(code) or _TAG.match(code):
        return width + (len(item[1]) if item else 0)
    return len(item[1]) if item else 0


def _without_own(results: list[str], lines: list[str], head: str, around: tuple[str, str], language_id: str) -> str:
    """The indentation of an answer's first line without what stands before the cursor.

    A model that indents where the cursor stands indented already repeats that. It goes on only where the line would
    stand nowhere otherwise, or where the second line says so.
    """
    lead, prefix, above = results[0], around[0][-FAR:], _lines_above(around[0])
    if not above:
        return lead
    unit = _USUAL_WIDTH if "\t" in head + above[-1] else _width_of("".join(around), 0)
    here, own = (len(each.expandtabs(unit or _USUAL_WIDTH)) for each in (head, lead))
    depth = len(indent_of(above[-1]).expandtabs(unit or _USUAL_WIDTH))
    width = unit or (here - depth if here > depth else _USUAL_WIDTH)  # a level is there if nothing else tells its size
    absolute, relative = max(here, own), here + own
    opened = unmatched(prefix, language_id)[0]
    aligned = _after_bracket(prefix, opened)
    first_below = _goes_on_deeper(above, prefix, language_id, within=bool(opened) or len(around[0]) > FAR)
    second = next((row for row in range(1, len(lines)) if lines[row].strip()), 0)
    deeper = _deeper(lines[0], width)
    sibling = second and not _ENDS_BLOCK.match(lines[second].lstrip())
    told = len(results[second].expandtabs(width)) - deeper if sibling else -1
    if aligned == relative or (deeper and told == relative != absolute):
        return lead
    if told != absolute:
        if first_below and here == depth and not _deeper(above[-1], width) and relative - depth in {width, 2 * width}:
            return lead
        allowed = _allowed(above, lines[0], width)
        if opened and lines[0].lstrip()[:1] in {")", "]", "}"}:
            allowed = {len(indent_of(LINE_END.split(prefix[: opened[-1][0]])[-1]).expandtabs(width))}
        if here - depth >= width:
            allowed.add(absolute)
        if relative in allowed and absolute not in allowed:
            return lead
    left = max(0, own - here)
    return lead[len(lead) - left :] if left and "\t" not in lead else lead.removeprefix(head) if left else ""


def _after_bracket(prefix: str, opened: list[tuple[int, str]]) -> int:
    """The column behind the innermost open bracket, if text follows it on its line; else -1."""
    if not opened:
        return -1
    at = opened[-1][0]
    if not LINE_END.split(prefix[at + 1 :])[0].strip():
        return -1
    return len(LINE_END.split(prefix[:at])[-1]) + 1


def _allowed(above: list[str], first: str, width: int) -> set[int]:
    """The columns at which a line may stand below others: deeper than what opens a block, else as one of those around.

    Args:
        above: the lines above it, with text.
        first: the line.
        width: columns of a level.
    """
    depth = len(indent_of(above[-1]).expandtabs(width))
    item, deeper = _ITEM.match(above[-1]), _deeper(above[-1], width)
    opens = deeper > 0 and not (item and deeper == len(item[1]))
    around = {depth}
    for line in reversed(above):
        column = len(indent_of(line).expandtabs(width))
        if column < min(around):
            around.add(column)
    if not opens:
        return around | ({depth + deeper} if deeper else set())
    return {depth + deeper} | ({depth} if _AT_MARGIN.match(first) or _ITEM.match(first) else set())


def _goes_on_deeper(above: list[str], prefix: str, language_id: str, *, within: bool) -> bool:
    """Whether the cursor's line continues the line above as the first one that does, so that it may stand deeper."""
    if _in_text(prefix, language_id) or LINE_END.split(prefix)[-2] != above[-1]:
        return False
    before, last = (["", *above])[-2:]
    again = _goes_on(before, language_id, within=within) and not _deeper(before, 1)
    return _goes_on(last, language_id, within=within) and not again


def _in_text(prefix: str, language_id: str) -> bool:
    """Whether the cursor is in a string or a comment of several lines."""
    return knows(language_id) and loose(prefix, language_id).long


def _goes_on(line: str, language_id: str, *, within: bool) -> bool:
    """Whether a line is continued on the next one; in a bracket, what follows a comma is a line of its own."""
    code = _BEHIND.split(line)[0].rstrip()
    if unmatched(code, language_id)[0]:
        return True
    if code.endswith(","):
        return not within
    return has_to_go_on(code) and not code.endswith(">" if knows(language_id) else (">", "/"))


def _lost(results: list[str], lines: list[str], prefix: str, suffix: str, language_id: str) -> str:
    """The indentation that an answer's first line has lost, if the line behind it has the file's; else none.

    It is one that the lines above allow: that of a block which is open at the cursor.
    """
    row = next((row for row in range(1, len(lines)) if lines[row].strip()), 0)
    above, first, second = _lines_above(prefix), lines[0], results[row]
    if not row or not second or not above or not first.strip() or _AT_MARGIN.match(first):
        return ""
    braces = knows(language_id) and language_id != "python"
    opened = unmatched(prefix[-FAR:], language_id)[0]
    if braces and not opened:
        return ""
    unit = 1 if second.startswith("\t") else _width_of(prefix + suffix)
    inner = indent_of(above[-1]) + second[: _deeper(above[-1], unit)]
    deeper = 1 if first.startswith("/*") and lines[row].lstrip().startswith("*") else _deeper(first, unit)
    if deeper:
        lead = second[: len(second) - deeper]
        below = next((line for line in LINE_END.split(suffix[:FAR])[1:] if line.strip()), "")
        unsure = not braces and len(second) <= _USUAL_WIDTH and not _ITEM.match(first)
        if unsure and not indent_of(below) and not _ENDS_BLOCK.match(below):
            return ""  # it may as well be a block at the margin, whose lines stand deeper than in the rest of the file
        return lead if lead in {inner, *map(indent_of, above)} else ""
    if _goes_on(first, language_id, within=bool(opened)) or _HEADS.match(first) or inner != second:
        return ""
    alike = any(each.match(first) and each.match(lines[row]) for each in (_PAIR, _ELEMENT))
    return inner if alike or (knows(language_id) and not _GOES_ON_WITH.match(lines[row])) else ""


# Stands at the margin whatever is around it, or continues the line above.
_ELSEWHERE: Final = re.compile(
    r"\Z|(?:case|default|public|private|protected)\b|\w+:\s*\Z|#\s?[a-z]+\b|[.?:&|+*=<>%^-]|/(?![/*])"
)


def _inside(prefix: str, first: str, several: bool, around: str, language_id: str) -> str:  # noqa: FBT001
    """The indentation of a new line in the block that is open at the cursor; empty if nothing tells it.

    Args:
        prefix: the text before the line.
        first: the line.
        several: others follow it, which bear it out.
        around: a text that tells the size of a level.
        language_id: of the document.
    """
    near = prefix[-FAR:]
    if _ELSEWHERE.match(first):
        return ""
    opened = unmatched(near, language_id)[0]
    step = "\t" if _TABS.search(around) else " " * _width_of(around)
    if not opened:
        last = (_lines_above(prefix) or [""])[-1]
        deeper = language_id == "python" and _OPENS_BLOCK.search(_BEHIND.split(last)[0])
        return indent_of(last) + step if deeper else ""
    at = opened[-1][0]
    line, behind = LINE_END.split(near[:at])[-1], LINE_END.split(near[at + 1 :])
    outer, known = indent_of(line), knows(language_id) or (several and near[at] == "{")
    if not known or _BEHIND.split(" " + behind[0])[0].strip() or _FLAT.match(line):
        return ""
    if first[0] in ")]}":
        return outer
    inner = [indent_of(each) for each in behind[1:] if not _ELSEWHERE.match(each.lstrip())][:1]
    return next((each if len(each) > len(outer) else "" for each in inner), outer + step)


# Stands at the margin in Python.
_TOP: Final = re.compile(r"(?:async\s+)?(?:def|class)\b|@|if __name__\b")


def _bears_out(lead: str, lines: list[str], results: list[str], last: str) -> bool:
    """Whether the second line of an answer, if there is one, stands as it does behind a first one indented by that."""
    row = next((row for row in range(1, len(lines)) if lines[row].strip()), 0)
    # What the first line opens stands as if that were at the margin, or deeper: it is moved along, or right.
    if not row or _deeper(lines[0], 1):
        return True
    second = lines[row].lstrip()
    return (
        len(results[row]) >= len(lead)
        or _ENDS_BLOCK.match(second) is not None
        or (_OPENS_BLOCK.search(last) is not None and (results[row] != "" or _TOP.match(second) is not None))
    )
