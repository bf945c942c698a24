"""Tags that stand on lines of their own around parts of a prompt, among text that may hold such tags itself.

A client puts each of its tags at the beginning of a line and nothing behind it. What looks like a tag elsewhere is
the user's text, unless there are none but such ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Final

from calomel.prompts.foreign.errors import ForeignPromptError

# A prompt with twenty snippets has some fifty; a file about prompts may have as many again.
_MOST: Final = 4096


@dataclass(frozen=True, slots=True)
class Tag:
    """One occurrence.

    Attributes:
        name: without `<|`, `/` and `|>`.
        closing: it ends a part.
        start: offset of the tag.
        end: offset behind the tag and the line end that belongs to it.
    """

    name: str
    closing: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Part:
    """What stands between two tags, from `start` to `end`, and with the tags from `outer_start` to `outer_end`."""

    name: str
    outer_start: int
    start: int
    end: int
    outer_end: int

    @property
    def closed(self) -> bool:
        """There is a tag at its end."""
        return self.outer_end > self.end

    def holds(self, other: Part) -> bool:
        """The other one lies in this one."""
        return self.start <= other.outer_start and other.outer_end <= self.end


def tags(text: str, names: Sequence[str], *, anywhere: bool = False) -> list[Tag]:
    """The tags of these names, in order: those on lines of their own, or those within lines too.

    Raises:
        ForeignPromptError: there are more than any client sends.
    """
    found = islice(_pattern(tuple(names), anywhere).finditer(text), _MOST + 1)
    listed = [Tag(each[2], bool(each[1]), each.start(), each.end()) for each in found]
    if len(listed) > _MOST:
        raise ForeignPromptError("The prompt has too many tags.")
    return listed


def outermost(found: Sequence[Tag], length: int) -> list[Part]:
    """The outermost parts: each ends at the tag that closes it, tags of its own name inside it counted.

    A part that holds one tag of its own name too many ends at the last tag that could close it, and one that nothing
    closes at the end of the text, at offset `length`.
    """
    parts: list[Part] = []
    last = {tag.name: at for at, tag in enumerate(found) if tag.closing}
    at = 0
    while at < len(found):
        opening = found[at]
        if opening.closing:
            at += 1
            continue
        depth, close = 0, at
        while close < len(found):
            if found[close].name == opening.name:
                depth += -1 if found[close].closing else 1
                if depth == 0:
                    break
            close += 1
        if close == len(found) and last.get(opening.name, -1) > at:
            close = last[opening.name]
        if close == len(found):
            parts.append(Part(opening.name, opening.start, opening.end, length, length))
        else:
            parts.append(Part(opening.name, opening.start, opening.end, found[close].start, found[close].end))
        at = close + 1
    return parts


@cache
def _pattern(names: tuple[str, ...], anywhere: bool) -> re.Pattern[str]:  # noqa: FBT001
    tag = rf"<\|(/?)({'|'.join(map(re.escape, names))})\|>"
    return re.compile(rf"{tag}(?:[ \t]*\r?\n)?" if anywhere else rf"^{tag}[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
