"""An answer's line ends are those of the document."""

from __future__ import annotations

import re
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


def with_line_ends_of(text: str, document: str) -> str:
    """`text` with every line end as in `document`."""
    if "\n" not in text and "\r" not in text:
        return text
    return _LINE_END.sub(line_end_of(document), text)
