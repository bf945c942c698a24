"""What clients show of other files, and what they pass off as other files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from calomel.prompts.foreign.unified_diff import parse_edits
from calomel.prompts.parts import Excerpt, Hunk

_KEPT: Final = 64
# Diagnostics are prose about code: the models read excerpts of files and take it for one, so it is left out.
_DIAGNOSTICS: Final = frozenset({"diagnostics"})
_SYNTAX: Final = frozenset({"treesitter_context", "context/treesitter"})
_DIFF: Final = frozenset({"staged_git_diff", "context/staged_diff"})
_SYNTAX_LINE: Final = re.compile(r"(?:Enclosing scope|Sibling(?:: line \d{1,9})?|Import): (.*)")


def sort_snippets(
    snippets: Iterable[tuple[str | None, str]], current: str | None
) -> tuple[tuple[Excerpt, ...], tuple[Hunk, ...]]:
    """Excerpts and edits out of snippets, each a path and a text, in their order.

    Signatures around the cursor become an excerpt of the file `current`; what is about to be committed becomes edits.
    """
    excerpts: list[Excerpt] = []
    staged: tuple[Hunk, ...] = ()
    for path, text in snippets:
        if path in _DIFF:
            staged = parse_edits(text)
        elif path in _DIAGNOSTICS or len(excerpts) >= _KEPT:
            continue
        elif path in _SYNTAX:
            lines = (_SYNTAX_LINE.match(line) for line in text.split("\n"))
            excerpts.append(Excerpt(current or "", 0, "".join(f"{line[1]}\n" for line in lines if line)))
        else:
            excerpts.append(Excerpt(path or "", 0, text))
    return tuple(excerpt for excerpt in excerpts if excerpt.text.strip()), staged
