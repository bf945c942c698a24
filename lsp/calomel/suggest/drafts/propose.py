"""All drafts for one moment, best first."""

from __future__ import annotations

from collections.abc import Sequence

from calomel.prompts.parts import Hunk
from calomel.suggest.drafts.draft import EditDraft


def drafts(text: str, hunks: Sequence[Hunk], cursor: int, path: str | None = None) -> tuple[EditDraft, ...]:
    """What would go on with the last edits, best first, one for each text that would result.

    Args:
        text: the document's.
        hunks: the last edits, newest last, the one that is being made included.
        cursor: offset.
        path: of the document, as hunks name it; None when all hunks are its own.
    """
    del text, hunks, cursor, path
    return ()
