"""The prompt of Calomel's own models: the context of a hole, or of a region that may be rewritten.

    (<|file|> path <|prefix|> excerpt)… (<|file|> path <|prefix|> edits)…
    <|file|> path <|suffix|> far suffix <|prefix|> prefix <|near|> near suffix <|middle|>  →  middle <|end|>

Related files come first, then the current file as it was at the last snapshot, then the settled edits, oldest first:
the most stable part stays cached longest. An excerpt looks like the beginning of any file, and one that continues where
the previous one ended needs no heading. An edit is its old lines after `-` and its new lines after `+`, under the name
of its file. No text can forge a marker.

The window comes last, its stable parts first, so that a keystroke leaves the cached front alone: the far suffix starts
at a line and moves in hops, the prefix only grows at its end. The near suffix, a handful of tokens right after the
cursor, is repeated for every request at the very end, where canvas and causal mode both see it. Prefix, middle and
suffix are encoded separately, since the cursor is not a token boundary.

If there is text in the hole already, a region of whole lines that may be rewritten, it comes before the near suffix,
and the answer is its new text:

    … <|prefix|> prefix <|region|> text <|cursor|> text <|near|> near suffix <|middle|>  →  new text <|end|>

The front of both is the same, so that a request about the lines around the cursor finds it in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final, Protocol

from calomel.prompts.parts import EditRegion, Excerpt, Hunk, PromptParts
from calomel.prompts.tokenizer import TextTokenizer, Tokenizer

NEAR_TOKENS: Final = 16
FAR_TOKENS: Final = 256
HOP: Final = 512
# Characters: about a screenful of lines.
FAR_HOP: Final = 384
# A token of code is rarely longer than this on average; only as much text as can fit is encoded at all.
_CHARACTERS_PER_TOKEN: Final = 12
# The average for a token of code. The hop of a window is measured in characters: its front is never encoded.
_CHARACTERS_PER_HOP_TOKEN: Final = 3
_CHARACTERS_PER_ROOM_TOKEN: Final = 4
# Excerpts and hunks hardly change from one keystroke to the next.
_REMEMBERED: Final = 1024
# Share of edits in a prompt about a region; the same as in training.
EDITS_SHARE: Final = 0.5


class Reply(Protocol):
    """How a format encodes the new text of a region in an answer."""

    @property
    def guess(self) -> str:
        """A text that most answers are made of."""

    def answered(self, region: str) -> str:
        """The answer with which a model turns the region into `region`."""

    def read(self, answer: str) -> str | None:
        """The region that an answer gives; None if it is cut off or damaged."""


@dataclass(frozen=True, slots=True)
class FimTokens:
    """A rendered prompt.

    Attributes:
        context: its token ids.
        reuse: how many of them, from the front, are worth keeping in the cache.
        cut: whether the beginning of the prefix was left out.
        suffix: what follows the answer, for models that read in both directions; others have it in `context`.
        closing: what a model writes after the text that it answers with, on a line of its own.
        reply: set if an answer is not the text itself.
    """

    context: tuple[int, ...]
    reuse: int
    cut: bool = False
    suffix: tuple[int, ...] = ()
    closing: str = ""
    reply: Reply | None = None

    def answered(self, text: str) -> str:
        """The answer of a model that answers with `text`."""
        if self.reply is not None:
            return self.reply.answered(text)
        if not self.closing or not text:
            return text or self.closing
        return f"{text}{self.closing}" if text.endswith("\n") else f"{text}\n{self.closing}"


def _window(parts: PromptParts, max_context: int, tokenizer: Tokenizer) -> FimTokens:
    """The window of `parts` alone. The far suffix may take a quarter of the room, the prefix gets the rest."""
    path = tokenizer.encode(parts.path)[-NEAR_TOKENS:] if parts.path else []
    near, far_text = split_suffix(parts.suffix, tokenizer)
    region = region_ids(parts.region, tokenizer) if parts.region else []
    budget = max(1, max_context - len(near) - len(path) - len(region) - 5)
    far_room = min(FAR_TOKENS, budget // 4)
    far = tokenizer.encode(far_text[: far_room * _CHARACTERS_PER_TOKEN])[:far_room]
    prefix, cut = last_tokens(parts.prefix, budget - len(far), tokenizer)
    front = assemble_front(path, far, prefix, tokenizer)
    return FimTokens(tuple(front + assemble_tail((), near, tokenizer, region)), reuse=len(front), cut=cut)


def assemble_front(path: Sequence[int], far: Sequence[int], prefix: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """The cached front of the prompt; without a path or far suffix, its marker is left out too."""
    front = [tokenizer.file, *path] if path else []
    if far:
        front += [tokenizer.suffix, *far]
    return [*front, tokenizer.prefix, *prefix]


def assemble_tail(
    rest: Sequence[int], near: Sequence[int], tokenizer: Tokenizer, region: Sequence[int] = ()
) -> list[int]:
    """The part of one request alone: the `rest` of the prefix (training only), region, near suffix, middle mark."""
    return [*rest, *region, tokenizer.near, *near, tokenizer.middle]


def region_ids(region: EditRegion, tokenizer: Tokenizer) -> list[int]:
    """The mark of a region and its text, with the cursor's mark at the cursor, if it is in the region."""
    if region.cursor is None:
        return [tokenizer.region, *tokenizer.encode(region.text)]
    before, behind = region.text[: region.cursor], region.text[region.cursor :]
    return [tokenizer.region, *tokenizer.encode(before), tokenizer.cursor, *tokenizer.encode(behind)]


def split_suffix(suffix: str, tokenizer: Tokenizer) -> tuple[list[int], str]:
    """The near suffix as ids, and the text of the far suffix.

    The far suffix starts at a line, at a number of hops counted from the end of the text, so that it does not change
    while a cursor moves through a file; a rest shorter than a hop is taken whole.
    """
    near = tokenizer.encode(suffix[: NEAR_TOKENS * _CHARACTERS_PER_TOKEN])[:NEAR_TOKENS]
    seen = len(tokenizer.decode(near))
    hops = (len(suffix) - seen) // FAR_HOP
    anchor = len(suffix) - hops * FAR_HOP if hops else seen
    line = anchor if anchor == 0 or suffix[anchor - 1] == "\n" else suffix.find("\n", anchor) + 1
    return near, suffix[line:] if line else ""


def last_tokens(text: str, room: int, tokenizer: TextTokenizer) -> tuple[list[int], bool]:
    """The ids of the last lines of `text` that fit into `room` tokens, and whether its beginning was left out.

    The start moves in whole hops of `HOP` tokens (a quarter of `room` if that is small), counted in characters from the
    start of the text, and is moved to the start of a line: otherwise every keystroke in a long file would shift the
    window and miss the cache. At most two encodings, of at most `room` times `_CHARACTERS_PER_ROOM_TOKEN` characters.
    """
    if room <= 0:
        return [], bool(text)
    hop = max(1, min(HOP, room // 4)) * _CHARACTERS_PER_HOP_TOKEN
    hops = max(0, -(-(len(text) - room * _CHARACTERS_PER_ROOM_TOKEN) // hop))
    start = _line_start(text, hops * hop)
    ids, last = tokenizer.encode_last(text[start:], room)
    if last is None:
        return ids, start > 0
    # The first hop from which at most `room` tokens are left.
    needed = start + last
    for anchor in range(-(-needed // hop) * hop, len(text), hop):
        line = _line_start(text, anchor)
        if line < len(text):
            return tokenizer.encode(text[line:])[-room:], True
    return ids[-room:], True


def _line_start(text: str, position: int) -> int:
    """The first start of a line at or after `position`; `position` itself if there is none."""
    if position <= 0:
        return 0
    return text.find("\n", position - 1) + 1 or position


class ContextRenderer:
    """Renders prompts with one tokenizer, and caches the ids of parts that recur."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._excerpt = lru_cache(maxsize=_REMEMBERED)(self._encode_excerpt)
        self._hunk = lru_cache(maxsize=_REMEMBERED)(lambda hunk: tuple(tokenizer.encode(diff_text(hunk))))
        self._heading = lru_cache(maxsize=_REMEMBERED)(self._encode_heading)

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """Token ids of at most `max_context`.

        The window gets all the room that it needs; if a region is to be rewritten, edits may take half of it first:
        without them there is nothing to continue. What does not fit is left out, whole parts at a time: first related
        excerpts, the least useful first, then far excerpts from the first on, then the oldest edits.
        """
        edits = self.last_edits(parts.edits, int(max_context * EDITS_SHARE)) if parts.region else []
        size = max_context - len(edits)
        window = _window(parts, size, self._tokenizer)
        room = size - len(window.context)
        if not parts.region:
            edits = self.last_edits(parts.edits, room)
            room -= len(edits)
        far = list(chain.from_iterable(self._last_excerpts(parts.far, room)))
        related = list(chain.from_iterable(self._last_excerpts(parts.related, room - len(far))))
        front = len(related) + len(far) + len(edits)
        ids = (*related, *far, *edits, *window.context) if front else window.context
        return FimTokens(ids, reuse=front + window.reuse, cut=window.cut)

    def read(self, ids: Sequence[int], *, whole: bool = True) -> str:
        """The text of an answer; an unfinished one is read the same way."""
        del whole
        return self._tokenizer.decode(ids)

    def shown(self, text: str) -> str:
        """A canvas is the text itself."""
        return text

    def excerpts_tokens(self, excerpts: Sequence[Excerpt]) -> int:
        """How many tokens excerpts take, one after the other."""
        return sum(map(len, self._last_excerpts(excerpts)))

    def edits_tokens(self, hunks: Sequence[Hunk]) -> int:
        """How many tokens a stream of edits takes."""
        return len(self.stream(hunks))

    def _last_excerpts(self, excerpts: Sequence[Excerpt], room: float = math.inf) -> list[tuple[int, ...]]:
        """The ids of the last excerpts that fit, in order; one that continues where another ends needs no heading."""
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
        return kept[::-1]

    def last_edits(self, hunks: Sequence[Hunk], room: int) -> list[int]:
        """The ids of the last edits that fit, oldest first."""
        first = 0
        ids = self.stream(hunks)
        while first < len(hunks) and len(ids) > room:
            first += 1
            ids = self.stream(hunks[first:])
        return ids

    def stream(self, hunks: Sequence[Hunk]) -> list[int]:
        """The ids of a stream of edits, oldest first; consecutive hunks of one file share a heading."""
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

    def _encode_heading(self, path: str) -> tuple[int, ...]:
        return (self._tokenizer.file, *self._tokenizer.encode(path)[-NEAR_TOKENS:], self._tokenizer.prefix)


def _continues(before: Excerpt, excerpt: Excerpt) -> bool:
    return before.path == excerpt.path and before.start_line + before.text.count("\n") == excerpt.start_line


def diff_text(hunk: Hunk) -> str:
    """An edit as lines after `-` and `+`, each with a line end."""
    return "".join([*_marked("-", hunk.before), *_marked("+", hunk.after)])


def _marked(sign: str, text: str) -> list[str]:
    return [f"{sign}{line}\n" for line in text.splitlines()]
