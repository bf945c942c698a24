"""What a next-edit client shows of the user's work, whatever format it has."""

from __future__ import annotations

from dataclasses import dataclass

from calomel.prompts.parts import Excerpt, Hunk


@dataclass(frozen=True, slots=True)
class EditPrompt:
    """One region to rewrite and what is around it.

    `prefix + region + suffix` is the file as the client shows it, byte for byte, without tags.

    Attributes:
        path: of the file; None when the client does not tell. It may be a bare file name, or absolute.
        prefix: the text before the region.
        region: what to rewrite.
        suffix: the text behind it.
        cursor: offset of the cursor in `region`, in characters; None when the client does not show it there.
        edits: what changed lately, oldest first. Line numbers are the client's, and some clients make them up.
        related: excerpts of other files, in the client's order.
    """

    path: str | None
    prefix: str
    region: str
    suffix: str
    cursor: int | None = None
    edits: tuple[Hunk, ...] = ()
    related: tuple[Excerpt, ...] = ()
