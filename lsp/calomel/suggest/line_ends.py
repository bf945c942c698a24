"""An answer's line ends are those of the document."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
# A document's first lines tell which line ends it has.
_LOOKED_AT: Final = 4096


def line_end_of(text: str) -> str:
    r"""The line end of `text`'s beginning; \n when it has none."""
    found = _LINE_END.search(text, 0, _LOOKED_AT)
    if found and found.group() == "\r" and text[found.end() : found.end() + 1] == "\n":
        return "\r\n"
    return found.group() if found else "\n"


def with_line_ends_between(text: str, before: str, behind: str) -> str:
    """`text`, put between two others, with the end of the line that it is put on; the last line's is the one above."""
    if _LINE_END.search(behind, 0, _LOOKED_AT):
        return with_line_ends_of(text, behind)
    above = _LINE_END.findall(before[-_LOOKED_AT:])
    return with_line_ends_of(text, above[-1] if above else before)


def with_line_ends_like(text: str, old: str, document: str) -> str:
    """`text`, which rewrites `old`, with the ends of its lines; lines that come in end as the document's do."""
    ends = _LINE_END.findall(old)
    if len(set(ends)) < 2:  # noqa: PLR2004 (one kind, as nearly everywhere)
        return with_line_ends_of(text, old if ends else document)
    lines, usual = _LINE_END.split(text), line_end_of(document)
    found = [usual] * len(lines)
    for _, low, high, at, to in SequenceMatcher(None, _LINE_END.split(old), lines, autojunk=False).get_opcodes():
        kept = ends[low:high][: to - at]
        found[at : at + len(kept)] = kept
    found[-1] = ""
    return "".join(line + end for line, end in zip(lines, found, strict=True))


def with_line_ends_of(text: str, document: str) -> str:
    """`text` with every line end as in `document`."""
    if "\n" not in text and "\r" not in text:
        return text
    return _LINE_END.sub(line_end_of(document), text)
