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

# A rewriting that loses more lines than this was probably cut; deleted lines are what users complain of most.
_LOST_LINES: Final = 3


def region_parts(
    parts: PromptParts, text: str, offset: int, start: int, end: int, cursor: int | None
) -> PromptParts | None:
    """The parts of a prompt for `offset`, with `start:end` of `text` as the region to rewrite.

    None when the window of `parts` does not hold the region.
    """
    if parts.region is not None:
        return parts
    above, below = offset - start, end - offset
    if above > len(parts.prefix) or below > len(parts.suffix):
        return None
    return replace(
        parts,
        prefix=parts.prefix[: len(parts.prefix) - above],
        suffix=parts.suffix[below:],
        region=EditRegion(text[start:end], cursor - start if cursor is not None and start <= cursor <= end else None),
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
