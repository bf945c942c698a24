"""Code in an answer in prose: what stands in its fenced block."""

from __future__ import annotations

import re
from typing import Final

_OPENING: Final = re.compile(r"\s*(?P<fence>`{3,})[^\n`]*\n")
_CLOSING: Final = re.compile(r"(?:^|(?<=\n))(?P<fence>`{3,})[ \t]*(?=\n|$)")
# The end of an unfinished text that may become the closing fence.
_MAY_CLOSE: Final = re.compile(r"\n?`*[ \t]*\Z")


def fence_for(text: str) -> str:
    """A fence that `text` does not hold."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)


def closed(text: str) -> bool:
    """Whether the block, which was opened for the model, is closed."""
    return _end(text) is not None


def inside(text: str, *, whole: bool = True) -> str:
    """What stands in the block, which was opened for the model; one that it opens once more is that block.

    The line end before the closing fence is the fence's. With `whole` false the text goes on, and what may still become
    the closing fence is left out.
    """
    opening = _OPENING.match(text)
    end = _end(text)
    if opening is not None:
        text, end = text[opening.end() :], None if end is None else end - opening.end()
    elif not whole and text.lstrip().startswith("`"):
        return ""
    if end is not None:
        return text[:end].removesuffix("\n").removesuffix("\r")
    return text if whole else _MAY_CLOSE.sub("", text)


def _end(text: str) -> int | None:
    """Where the closing fence starts."""
    opening = _OPENING.match(text)
    found = _CLOSING.search(text, 0 if opening is None else opening.end())
    return None if found is None else found.start()
