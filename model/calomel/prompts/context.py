"""The prompt of Calomel's own models with everything around the hole.

    (<|file|> path <|prefix|> excerpt)… (<|file|> path <|prefix|> edits)… then the prompt of `calomel.prompts.fim`

Related files come first, then the current file as it was at the last snapshot, then the settled edits, oldest first:
the most stable part is the one that is cached longest. An excerpt looks like the beginning of any file, and one that
goes on where the last one ended needs no heading. An edit is its old lines behind `-` and its new lines behind `+`,
under the name of its file. No text can forge a marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

from calomel.prompts.fim import NEAR_TOKENS, FimPrompt, FimTokens, read_answer, render
from calomel.prompts.parts import Excerpt, Hunk, PromptParts
from calomel.prompts.tokenizer import Tokenizer

# Excerpts and hunks hardly change from one keystroke to the next.
_REMEMBERED: Final = 1024
# Of a prompt about a region; training does the same.
EDITS_SHARE: Final = 0.5


class ContextRenderer:
    """Renders prompts with one tokenizer, and remembers the ids of parts that come again."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._excerpt = lru_cache(maxsize=_REMEMBERED)(self._encode_excerpt)
        self._hunk = lru_cache(maxsize=_REMEMBERED)(self._encode_hunk)
        self._heading = lru_cache(maxsize=_REMEMBERED)(self._encode_heading)

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """Token ids of at most `max_context`.

        The window has all the room that it needs; where a region is to be rewritten, edits may take half of it first:
        without them there is nothing to go on with. What does not fit is left out, whole parts at a time: first related
        excerpts from the least useful one on, then far excerpts from the first on, then the oldest edits.
        """
        edits = self.last_edits(parts.edits, int(max_context * EDITS_SHARE)) if parts.region else []
        size = max_context - len(edits)
        window = render(FimPrompt(parts.prefix, parts.suffix, parts.path, size, parts.region), self._tokenizer)
        room = size - len(window.context)
        if not parts.region:
            edits = self.last_edits(parts.edits, room)
            room -= len(edits)
        far = self._last_excerpts(parts.far, room)
        related = self._last_excerpts(parts.related, room - len(far))
        front = len(related) + len(far) + len(edits)
        ids = (*related, *far, *edits, *window.context) if front else window.context
        return FimTokens(ids, reuse=front + window.reuse, cut=window.cut)

    def read(self, ids: Sequence[int], *, whole: bool = True) -> str:
        """The text of an answer; a beginning is as good as the whole."""
        del whole
        return read_answer(ids, self._tokenizer)

    def shown(self, text: str) -> str:
        """A canvas is the text itself."""
        return text

    def excerpts_tokens(self, excerpts: Sequence[Excerpt]) -> int:
        """How many tokens excerpts take that stand one behind another."""
        return sum(map(len, self._pieces(excerpts)))

    def edits_tokens(self, hunks: Sequence[Hunk]) -> int:
        """How many tokens a stream of edits takes."""
        return len(self.stream(hunks))

    def _last_excerpts(self, excerpts: Sequence[Excerpt], room: int) -> list[int]:
        """The last excerpts that fit, in their order."""
        kept: list[tuple[int, ...]] = []
        behind: Excerpt | None = None
        for excerpt in reversed(excerpts):
            ids = self._excerpt(excerpt)
            heading = len(self._heading(excerpt.path)) if behind and _continues(excerpt, behind) else 0
            room -= len(ids) - heading
            if room < 0:
                break
            if heading:
                kept[-1] = kept[-1][heading:]
            kept.append(ids)
            behind = excerpt
        return list(chain.from_iterable(reversed(kept)))

    def _pieces(self, excerpts: Sequence[Excerpt]) -> list[tuple[int, ...]]:
        """The ids of each; one that goes on where the last one ends needs no heading."""
        pieces: list[tuple[int, ...]] = []
        before: Excerpt | None = None
        for excerpt in excerpts:
            ids = self._excerpt(excerpt)
            pieces.append(ids[len(self._heading(excerpt.path)) :] if before and _continues(before, excerpt) else ids)
            before = excerpt
        return pieces

    def last_edits(self, hunks: Sequence[Hunk], room: int) -> list[int]:
        """The ids of the last edits that fit, oldest first."""
        first = 0
        ids = self.stream(hunks)
        while first < len(hunks) and len(ids) > room:
            first += 1
            ids = self.stream(hunks[first:])
        return ids

    def stream(self, hunks: Sequence[Hunk]) -> list[int]:
        """The ids of a stream of edits, oldest first; hunks of one file after another need one heading."""
        ids: list[int] = []
        path: str | None = None
        for hunk in hunks:
            if hunk.path != path:
                ids += self._heading(hunk.path)
                path = hunk.path
            ids += self._hunk(hunk)
        return ids

    def _encode_excerpt(self, excerpt: Excerpt) -> tuple[int, ...]:
        return (*self._heading(excerpt.path), *self._tokenizer.encode(excerpt.text))

    def _encode_hunk(self, hunk: Hunk) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(diff_text(hunk)))

    def _encode_heading(self, path: str) -> tuple[int, ...]:
        return (self._tokenizer.file, *self._tokenizer.encode(path)[-NEAR_TOKENS:], self._tokenizer.prefix)


def _continues(before: Excerpt, excerpt: Excerpt) -> bool:
    return before.path == excerpt.path and before.start_line + before.text.count("\n") == excerpt.start_line


def diff_text(hunk: Hunk) -> str:
    """An edit as lines behind `-` and `+`, each with a line end."""
    return "".join([*_marked("-", hunk.before), *_marked("+", hunk.after)])


def _marked(sign: str, text: str) -> list[str]:
    return [f"{sign}{line}\n" for line in text.splitlines()]
