"""The region of a file that a next-edit model may rewrite, and what its rewriting comes to."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from calomel.prompts.parts import EditRegion, PromptParts
from calomel.suggest.checks.blank import changes_only_space
from calomel.suggest.checks.masked import has_mask
from calomel.suggest.completer import Candidate
from calomel.suggest.diff import minimal_edits, split_lines
from calomel.suggest.line_ends import with_line_ends_of
from calomel.suggest.planned import Planned
from calomel.suggest.silence import SilenceReason

# Lines around the cursor's; the numbers are those of Copilot and of Sweep.
LINES_ABOVE: Final = 2
LINES_BELOW: Final = 5
# After an accepted edit there is more of the same to do (Copilot's autoExpandEditWindowLines).
EXTENDED_BELOW: Final = 10
# A region of minified code is no region.
_LONGEST: Final = 6000
# A rewriting that loses more lines than this was probably cut; deleted lines are what users complain of most.
_LOST_LINES: Final = 3


def region_around(text: str, cursor: int, *, extended: bool = False) -> tuple[int, int]:
    """From where to where the lines around the cursor go; only its own line when they are too long."""
    start = _line_start(text, cursor)
    end = _line_end(text, cursor)
    own = start, end
    for _ in range(LINES_ABOVE):
        if start > 0:
            start = _line_start(text, start - (2 if text[start - 2 : start] == "\r\n" else 1))
    for _ in range(EXTENDED_BELOW if extended else LINES_BELOW):
        if end < len(text):
            end = _line_end(text, end)
    return (start, end) if end - start <= _LONGEST else own


def region_parts(parts: PromptParts, text: str, cursor: int, start: int, end: int) -> PromptParts | None:
    """The parts of a prompt for the cursor, with `start:end` of `text` as the region to rewrite.

    None when the window of `parts` does not hold the region.
    """
    if parts.region is not None:
        return parts
    above, below = cursor - start, end - cursor
    if above > len(parts.prefix) or below > len(parts.suffix):
        return None
    return replace(
        parts,
        prefix=parts.prefix[: len(parts.prefix) - above],
        suffix=parts.suffix[below:],
        region=EditRegion(text[start:end], above),
    )


def read_rewrite(candidate: Candidate, text: str, start: int, end: int) -> tuple[Planned, ...] | SilenceReason:  # noqa: PLR0911 (one for each reason)
    """The edits that a rewriting of `text[start:end]` comes to; or why it is nothing to offer.

    Args:
        candidate: its text is what the region becomes.
        text: the document's as the model saw it, secrets masked.
        start: where the region starts.
        end: where it ends.
    """
    old = text[start:end]
    new = with_line_ends_of(candidate.text, text)
    if candidate.finish_reason != "stop":
        return SilenceReason.DELETES_TOO_MUCH  # half a region would delete the other half
    if old.endswith(("\n", "\r")) and new and not new.endswith(("\n", "\r")):
        new += "\r\n" if old.endswith("\r\n") else old[-1]
    if new == old:
        return SilenceReason.NO_CHANGE
    if not new.strip() and old.strip():
        return SilenceReason.EMPTY
    if _filled_lines(old) - _filled_lines(new) > _LOST_LINES:
        return SilenceReason.DELETES_TOO_MUCH
    edits = minimal_edits(text, start, end, new)
    meant = tuple(edit for edit in edits if not changes_only_space(edit.removed, edit.text))
    if not meant:
        return SilenceReason.WHITESPACE_ONLY
    if any(has_mask(edit.text) for edit in meant):
        return SilenceReason.SECRET
    return meant


def _filled_lines(text: str) -> int:
    return sum(1 for line in split_lines(text) if line.strip())


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def _line_end(text: str, offset: int) -> int:
    """Behind the line end."""
    ends = [at for at in (text.find("\n", offset), text.find("\r", offset)) if at >= 0]
    if not ends:
        return len(text)
    return min(ends) + (2 if text[min(ends) : min(ends) + 2] == "\r\n" else 1)
