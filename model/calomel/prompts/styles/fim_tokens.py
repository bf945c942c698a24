"""A hole shown by the fill-in-the-middle tokens that a model was trained with.

[file] path text …  [prefix] prefix [suffix] suffix [middle]  →  middle
[file] path text …  [suffix] suffix [prefix] prefix [middle]  →  middle
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from calomel.prompts.context import diff_text
from calomel.prompts.fim import FimTokens
from calomel.prompts.parts import PromptParts
from calomel.prompts.styles.plain import PlainAnswer
from calomel.prompts.styles.window import window
from calomel.prompts.text_tokenizer import TextTokenizer

_REMEMBERED = 1024
# The name under which edits stand among the files.
_EDITS = "recent.diff"


@dataclass(frozen=True, slots=True)
class FimIds:
    """The tokens of a format. `file` stands before a file's path; None where the format has none."""

    prefix: int
    suffix: int
    middle: int
    suffix_first: bool = False
    file: int | None = None


class FimTokensRenderer(PlainAnswer):
    """Shows a hole, or the hole that a region leaves, between the tokens of a format.

    Args:
        tokenizer: of the model.
        ends: ids that end an answer.
        ids: of the format.
        begin: ids at the start of every context.
    """

    def __init__(self, tokenizer: TextTokenizer, ends: Sequence[int], ids: FimIds, begin: Sequence[int] = ()) -> None:
        super().__init__(tokenizer, ends)
        self._ids = ids
        self._begin = tuple(begin)
        self._file = lru_cache(maxsize=_REMEMBERED)(self._encode_file)

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """The window has all the room that it needs; then edits, then other files, the most useful ones first."""
        heading = self._heading(parts.path)
        room = max_context - len(self._begin) - len(heading) - 3
        before, behind = window(parts.prefix, parts.suffix, room, self._tokenizer)
        files = self._files(parts, room - len(before) - len(behind))
        prefix, suffix = [self._ids.prefix, *before], [self._ids.suffix, *behind]
        front = [*self._begin, *files, *heading, *(suffix if self._ids.suffix_first else prefix)]
        rest = [*(prefix if self._ids.suffix_first else suffix), self._ids.middle]
        kept = len(front) + (len(prefix) if self._ids.suffix_first else 0)
        cut = len(self._tokenizer.decode(before)) < len(parts.prefix)
        return FimTokens((*front, *rest), reuse=kept, cut=cut)

    def _heading(self, path: str | None) -> list[int]:
        if self._ids.file is None or path is None:
            return []
        return [self._ids.file, *self._tokenizer.encode(path + "\n")]

    def _files(self, parts: PromptParts, room: int) -> list[int]:
        """Other files and edits that fit into `room`; the most useful one last."""
        if self._ids.file is None:
            return []
        edits = "".join(diff_text(hunk) for hunk in parts.edits)
        texts = [(excerpt.path, excerpt.text) for excerpt in (*parts.related, *parts.far)]
        files: list[tuple[int, ...]] = []
        for path, text in reversed([*texts, *([(_EDITS, edits)] if edits else [])]):
            ids = self._file(path, text)
            if len(ids) > room:
                continue
            room -= len(ids)
            files.append(ids)
        return [number for ids in reversed(files) for number in ids]

    def _encode_file(self, path: str, text: str) -> tuple[int, ...]:
        return (*self._heading(path), *self._tokenizer.encode(text if text.endswith("\n") else text + "\n"))
