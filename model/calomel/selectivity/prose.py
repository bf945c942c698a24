"""What is written in comments and documentation: the text of one up to the cursor, and what may end it."""

from __future__ import annotations

import re
from typing import Final

from calomel.code.lines import LINE_END, head_of
from calomel.code.scan import behind_string, knows, scan, unmatched

# Characters before the cursor in which a comment's start is looked for.
_NEAR: Final = 4000
# Languages in which `/*` begins no comment: it is a pattern of paths.
_NO_BLOCKS: Final = frozenset(
    {"python", "ruby", "shellscript", "yaml", "makefile", "dockerfile", "toml", "perl", "lua"}
)
_BLOCKS: Final = (("/*", "*/"), ("<!--", "-->"))
_LINE: Final = re.compile(r"\s*(?:#(?![!\[])|//|--\s|;;)")
_TRIPLE: Final = re.compile(r"\"{3}|'{3}")
_CLOSER: Final = re.compile(r"\s*(?:\*+/|-->|\"{3}|'{3})\s*")
_SENTENCE: Final = re.compile(r"[.!?:)\]}>`]\s*\Z")
# The start of a line in a comment, with nothing said yet.
_FRESH: Final = re.compile(r"\s*(?:\*|//+[/!]?|#+)?\s*\Z")
# `a)` and `1)` count items.
_COUNTED: Final = re.compile(r"(?<![\w(])\w{1,2}\)")


def comment_before(text: str, at: int, language_id: str) -> str | None:
    """The comment or docstring that an offset is in, up to there; None where it is in neither."""
    near, head = text[max(0, at - _NEAR) : at], head_of(text, at)
    if language_id not in _NO_BLOCKS:
        for opener, closer in _BLOCKS:
            start = near.rfind(opener)
            if start > near.rfind(closer):
                return near[start + len(opener) :]
    if language_id == "python" and behind_string(text, at, language_id) != at:
        starts = [found.end() for found in _TRIPLE.finditer(near)]
        return near[starts[-1] :] if starts else near
    if _LINE.match(head):
        lines = LINE_END.split(near)
        first = next((row for row in range(len(lines) - 1, -1, -1) if not _LINE.match(lines[row])), -1) + 1
        return "\n".join(lines[first:])
    if not knows(language_id):
        return None
    last = next((each for each in reversed(list(scan(head, language_id))) if each.kind == "skipped"), None)
    is_last = last is not None and last.end == len(head) and head.startswith(("#", "//"), last.start)
    return head[last.start :] if last is not None and is_last else None


def ends_comment_early(before: str, new: str) -> bool:
    """Whether a text is nothing but the end of the comment with `before` in it, in the middle of a sentence."""
    line = LINE_END.split(before)[-1]
    return _CLOSER.fullmatch(new) is not None and not _FRESH.match(line) and not _SENTENCE.search(line)


def closes_unopened(before: str, new: str) -> bool:
    """Whether a text in a comment with `before` in it closes a bracket that nobody opened there."""
    new = _COUNTED.sub("", new)
    return len(unmatched(before + new, "")[1]) > len(unmatched(before, "")[1])
