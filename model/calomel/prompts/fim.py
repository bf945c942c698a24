"""The fill-in-the-middle prompt of Calomel's own models.

    <|file|> path <|suffix|> far suffix <|prefix|> prefix <|near|> near suffix <|middle|>  →  middle <|end|>

Stable parts come first, so that a keystroke leaves the cached front alone: the far suffix is anchored to the start of a
line and moves in hops, the prefix only grows at its end. The near suffix, a handful of tokens right behind the cursor,
is repeated for every request at the very end, where canvas and causal mode both see it. Prefix, middle and suffix are
encoded apart, since the cursor is no token boundary.

Where there is text in the hole already, a region of whole lines that may be rewritten, it stands before the near
suffix, and the answer is its new text:

    … <|prefix|> prefix <|region|> text <|cursor|> text <|near|> near suffix <|middle|>  →  new text <|end|>

The front of both is the same, so that a question about the lines around the cursor finds it in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.prompts.parts import EditRegion
from calomel.prompts.text_tokenizer import TextTokenizer
from calomel.prompts.tokenizer import Tokenizer

NEAR_TOKENS: Final = 16
FAR_TOKENS: Final = 256
HOP: Final = 512
# Characters: about a screenful of lines.
FAR_HOP: Final = 384
# A token of code is rarely longer than this on average; only as much text as can fit is encoded at all.
_CHARACTERS_PER_TOKEN: Final = 12
# What a token of code has on average. The hop of a window is measured in characters: its front is never encoded.
_CHARACTERS_PER_HOP_TOKEN: Final = 3
_CHARACTERS_PER_ROOM_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class FimPrompt:
    """A hole in a text.

    Attributes:
        prefix: everything before the hole.
        suffix: everything behind it.
        path: the file's path as shown to the model; None when unknown.
        max_context: how many tokens the rendered prompt may have.
        region: what stands in the hole and may be rewritten; None when it is empty.
    """

    prefix: str
    suffix: str = ""
    path: str | None = None
    max_context: int = 2048
    region: EditRegion | None = None


@dataclass(frozen=True, slots=True)
class FimTokens:
    """A rendered prompt.

    Attributes:
        context: its token ids.
        reuse: how many of them, from the front, are worth keeping in the cache.
        cut: the beginning of the prefix was left out.
        suffix: what stands behind the answer, for models that read in both directions; others have it in `context`.
    """

    context: tuple[int, ...]
    reuse: int
    cut: bool = False
    suffix: tuple[int, ...] = ()


def render(prompt: FimPrompt, tokenizer: Tokenizer) -> FimTokens:
    """Render `prompt` within its budget. The far suffix may take a quarter of it, the prefix has the rest."""
    path = tokenizer.encode(prompt.path)[-NEAR_TOKENS:] if prompt.path else []
    near, far_text = split_suffix(prompt.suffix, tokenizer)
    region = region_ids(prompt.region, tokenizer) if prompt.region else []
    budget = max(1, prompt.max_context - len(near) - len(path) - len(region) - 5)
    far_room = min(FAR_TOKENS, budget // 4)
    far = tokenizer.encode(far_text[: far_room * _CHARACTERS_PER_TOKEN])[:far_room]
    prefix, cut = _last_tokens(prompt.prefix, budget - len(far), tokenizer)
    front = assemble_front(path, far, prefix, tokenizer)
    return FimTokens(tuple(front + assemble_tail((), near, tokenizer, region)), reuse=len(front), cut=cut)


def assemble_front(path: Sequence[int], far: Sequence[int], prefix: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """The cached front of the prompt; an absent path or far suffix takes its marker with it."""
    front = [tokenizer.file, *path] if path else []
    if far:
        front += [tokenizer.suffix, *far]
    return [*front, tokenizer.prefix, *prefix]


def assemble_tail(
    rest: Sequence[int], near: Sequence[int], tokenizer: Tokenizer, region: Sequence[int] = ()
) -> list[int]:
    """What belongs to one request alone: the `rest` of the prefix (training only), region, near suffix, middle mark."""
    return [*rest, *region, tokenizer.near, *near, tokenizer.middle]


def region_ids(region: EditRegion, tokenizer: Tokenizer) -> list[int]:
    """The mark of a region and its text; the cursor's mark stands where the cursor is, if it is in the region."""
    if region.cursor is None:
        return [tokenizer.region, *tokenizer.encode(region.text)]
    before, behind = region.text[: region.cursor], region.text[region.cursor :]
    return [tokenizer.region, *tokenizer.encode(before), tokenizer.cursor, *tokenizer.encode(behind)]


def split_suffix(suffix: str, tokenizer: Tokenizer) -> tuple[list[int], str]:
    """The near suffix as ids, and the text of the far suffix.

    The far suffix starts at a line. Where it starts is counted from the end of the text in hops, so that a cursor that
    moves through a file leaves it alone; of a rest shorter than a hop everything is taken.
    """
    near = tokenizer.encode(suffix[: NEAR_TOKENS * _CHARACTERS_PER_TOKEN])[:NEAR_TOKENS]
    seen = len(tokenizer.decode(near))
    hops = (len(suffix) - seen) // FAR_HOP
    anchor = len(suffix) - hops * FAR_HOP if hops else seen
    line = anchor if anchor == 0 or suffix[anchor - 1] == "\n" else suffix.find("\n", anchor) + 1
    return near, suffix[line:] if line else ""


def last_tokens(text: str, room: int, tokenizer: TextTokenizer) -> list[int]:
    """The ids of the last lines of `text` that fit into `room` tokens.

    The start is a function of whole hops of `HOP` tokens (a quarter of `room` in a small one), counted in characters
    from the start of the text, and anchored to a line: otherwise every keystroke in a long file would shift the window
    and miss the cache. At most two encodings, of at most `room` times `_CHARACTERS_PER_ROOM_TOKEN` characters.
    """
    return _last_tokens(text, room, tokenizer)[0]


def _last_tokens(text: str, room: int, tokenizer: TextTokenizer) -> tuple[list[int], bool]:
    """The same, and whether the beginning of the text was left out."""
    if room <= 0:
        return [], bool(text)
    hop = max(1, min(HOP, room // 4)) * _CHARACTERS_PER_HOP_TOKEN
    hops = max(0, -(-(len(text) - room * _CHARACTERS_PER_ROOM_TOKEN) // hop))
    start = _line_start(text, hops * hop)
    ids, last = tokenizer.encode_last(text[start:], room)
    if last is None:
        return ids, start > 0
    # The first hop from which on no more than `room` tokens are left.
    needed = start + last
    for anchor in range(-(-needed // hop) * hop, len(text), hop):
        line = _line_start(text, anchor)
        if line < len(text):
            return tokenizer.encode(text[line:])[-room:], True
    return ids[-room:], True


def _line_start(text: str, position: int) -> int:
    """The first start of a line at or behind `position`; `position` itself when the line is the last one."""
    if position <= 0:
        return 0
    return text.find("\n", position - 1) + 1 or position


def read_answer(ids: Sequence[int], tokenizer: TextTokenizer) -> str:
    """The text to insert, from the ids of an answer (the end token and what follows it already dropped)."""
    return tokenizer.decode(ids)
