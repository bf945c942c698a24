"""The region of a file that a next-edit model may rewrite, and what its rewriting comes to."""

from __future__ import annotations

from dataclasses import replace

from calomel.prompts.parts import EditRegion, PromptParts
from calomel.suggest.checks.blank import changes_only_space
from calomel.suggest.completer import Candidate
from calomel.suggest.diff import minimal_edits
from calomel.suggest.line_ends import with_line_ends_like
from calomel.suggest.planned import Planned
from calomel.suggest.silence import SilenceReason


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


def read_rewrite(candidate: Candidate, text: str, start: int, end: int) -> tuple[Planned, ...] | SilenceReason:
    """The edits that a rewriting of `text[start:end]` comes to; or why there are none.

    Edits of mere white space are left out where there are others.

    Args:
        candidate: its text is what the region becomes.
        text: the document's as the model saw it, secrets masked.
        start: where the region starts.
        end: where it ends.
    """
    old = text[start:end]
    new = with_line_ends_like(candidate.text, old, text)
    if old.endswith(("\n", "\r")) and new and not new.endswith(("\n", "\r")):
        new += "\r\n" if old.endswith("\r\n") else old[-1]
    if new == old:
        return SilenceReason.NO_CHANGE
    if not new.strip() and old.strip():
        return SilenceReason.EMPTY
    edits = minimal_edits(text, start, end, new)
    return tuple(edit for edit in edits if not changes_only_space(edit.removed, edit.text)) or edits
