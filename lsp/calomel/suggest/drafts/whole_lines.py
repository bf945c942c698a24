"""A line that came beside several lines that begin alike comes beside the others, too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from calomel.prompts.parts import common_prefix
from calomel.suggest.drafts.evidence import EditDraft, Evidence
from calomel.suggest.drafts.text import Rows, indent_of, is_distinctive, is_import, is_prose

MAKER: Final = "whole_lines"
# Characters that neighbours must begin with alike.
_SHORTEST: Final = 8


def whole_lines(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for them (rust-url: a lint above each setter; gorilla: `t.Parallel()` at the head of each test)."""
    came: defaultdict[str, list[int]] = defaultdict(list)
    for each in seen.insertions:
        (line, *more) = each.lines
        if each.row is not None and not more and is_distinctive(line) and not is_import(line):
            came[line.strip()].append(each.row)
    edited = seen.rows()
    for new, places in came.items():
        for behind in (False, True):
            neighbours = [place - 1 if behind else place + 1 for place in places]
            alike = _alike([rows.lines[at] for at in neighbours if 0 <= at < len(rows)])
            if alike is None or len(places) < 2:  # noqa: PLR2004
                continue
            for row, line in enumerate(rows.lines):
                if row in neighbours or row in edited or not line.strip().startswith(alike):
                    continue
                at = min(row + behind, len(rows) - 1)
                if new not in rows.lines[at] and new not in rows.lines[max(0, at - 1)]:
                    text = f"{indent_of(rows.lines[at])}{new}{rows.line_end}"
                    yield EditDraft(rows.start(at), rows.start(at), text, MAKER, len(places), 0.8)


def _alike(neighbours: Sequence[str]) -> str | None:
    """What all of them begin with; None where that says little."""
    first, *others = [line.strip() for line in neighbours] or [""]
    text = first[: min((common_prefix(first, each) for each in others), default=len(first))]
    return text if len(text) >= _SHORTEST and is_distinctive(text) and not is_prose(text) else None
