"""What is known around a cursor: everything that a prompt may be made of, already free of secrets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from calomel.prompts.parts import Excerpt, Hunk


@dataclass(frozen=True, slots=True)
class Situation:
    """One cursor in one document.

    Attributes:
        uri: of the document.
        path: as prompts name it.
        language_id: as the editor says.
        text: the whole document, secrets masked; same length as the editor's text.
        offset: of the cursor, in code points.
        revision: of the document.
        hunks: the settled edits, oldest first; append-only while `hops` stays the same.
        hops: grows whenever the beginning of `hunks` was let go.
        related: excerpts of other files, the most useful one last.
        blocks: lines of the document, ascending, at which an excerpt may begin well.
        masked: spans of `text` that were masked, as (start, end).
        permits: whether a file, by the name that prompts have for it, may still be shown: what was taken earlier may be
            kept only then.
    """

    uri: str
    path: str | None
    language_id: str
    text: str
    offset: int
    revision: int
    hunks: tuple[Hunk, ...] = ()
    hops: int = 0
    related: tuple[Excerpt, ...] = ()
    blocks: tuple[int, ...] = ()
    masked: tuple[tuple[int, int], ...] = ()
    permits: Callable[[str], bool] = field(default=lambda _name: True, compare=False, repr=False)
