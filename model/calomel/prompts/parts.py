"""The data of a prompt: what the editor's side knows and a model may see, before any format gives it an order.

Everything here is plain text with plain numbers, so that it crosses a process or a wire as it is. Lines are counted
from 0. Nothing here has been checked for secrets: whoever makes these values masks them first.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some lines of a file, as they are.

    Attributes:
        path: relative to the workspace, with forward slashes.
        start_line: where `text` begins in the file.
        text: whole lines, each with its line end.
    """

    path: str
    start_line: int
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """One settled edit of the diff stream, as a person would name it.

    Attributes:
        path: relative to the workspace, with forward slashes.
        start_line: of the old text, in the file as it was before the edit.
        before: the replaced lines, each with its line end; empty for an insertion.
        after: what stands there since; empty for a deletion.
        predicted: the user accepted it as a suggestion.
    """

    path: str
    start_line: int
    before: str
    after: str
    predicted: bool = False


@dataclass(frozen=True, slots=True)
class EditRegion:
    """The lines around a place that a next-edit model may rewrite.

    `prefix + text + suffix` of the prompt's parts is the window of the file that the model sees.

    Attributes:
        text: the region's current text.
        cursor: offset of the cursor in `text`, in characters; None when the cursor is elsewhere.
    """

    text: str
    cursor: int | None


@dataclass(frozen=True, slots=True)
class PromptParts:
    """What a model sees, most stable part first.

    Attributes:
        related: excerpts of other files, the most useful one last.
        far: excerpts of the current file around the window, as they were at the last snapshot, in file order. The
            window itself may be among them.
        edits: the settled edits, oldest first. Append-only between two snapshots.
        path: of the current file; None when it has none.
        prefix: the window's text before the hole (or the region).
        suffix: the window's text behind it.
        region: what to rewrite; None when the hole is empty, which is fill-in-the-middle.
    """

    related: tuple[Excerpt, ...] = ()
    far: tuple[Excerpt, ...] = ()
    edits: tuple[Hunk, ...] = ()
    path: str | None = None
    prefix: str = ""
    suffix: str = ""
    region: EditRegion | None = None
