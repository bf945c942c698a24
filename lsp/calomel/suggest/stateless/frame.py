"""What a request shows, in the terms in which an editor's document is known: one text, its last edits, a cursor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from calomel.prompts.edit_prompt import EditPrompt, same_file
from calomel.prompts.parts import Excerpt, Hunk
from calomel.suggest.recent import Past, past_of


@dataclass(frozen=True, slots=True)
class Frame:
    """One request, secrets masked but for `original`.

    Attributes:
        path: of the file, as prompts name it; None when nobody tells.
        original: the file as the client shows it.
        text: the same with every character of a secret replaced; the same length.
        start: where the region begins in it.
        end: where the region ends.
        cursor: offset in the text; None when the client shows none.
        hunks: the last edits, oldest first, under the file's own path where they are its own.
        related: excerpts of other files, the most useful one last.
        past: what the edits of this file did.
    """

    path: str | None
    original: str
    text: str
    start: int
    end: int
    cursor: int | None
    hunks: tuple[Hunk, ...]
    related: tuple[Excerpt, ...]
    past: Past

    @property
    def region(self) -> str:
        """The region as the client sent it."""
        return self.original[self.start : self.end]


def frame(prompt: EditPrompt, mask: Callable[[str], str]) -> Frame:
    """The frame of a prompt; `mask` hides secrets and keeps lengths."""
    original = prompt.prefix + prompt.region + prompt.suffix
    start = len(prompt.prefix)
    hunks = tuple(_named(hunk, prompt.path) for hunk in prompt.edits)
    return Frame(
        path=prompt.path,
        original=original,
        text=mask(original),
        start=start,
        end=start + len(prompt.region),
        cursor=None if prompt.cursor is None else start + prompt.cursor,
        hunks=tuple(replace(hunk, before=mask(hunk.before), after=mask(hunk.after)) for hunk in hunks),
        # A client's first snippet is its best one; ours stands last, next to the file.
        related=tuple(replace(excerpt, text=mask(excerpt.text)) for excerpt in reversed(prompt.related)),
        past=past_of(original, hunks, prompt.path),
    )


def _named(hunk: Hunk, path: str | None) -> Hunk:
    """The hunk under the file's own name: clients call it by its bare name here and by its whole path there."""
    if path is None or hunk.path == path:
        return hunk
    return replace(hunk, path=path) if same_file(hunk.path, path) else hunk
