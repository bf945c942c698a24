"""How much of a question a server is shown: what fits its window, and what it can read in time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from calomel.prompts.own import diff_text
from calomel.prompts.parts import Excerpt, Hunk, PromptParts

# Bytes per token of code, as estimated by `calomel.context.window`; the server's tokenizer is not available.
_BYTES_PER_TOKEN: Final = 3
_SUFFIX_SHARE: Final = 4
# Tokens for a heading and its markers.
_HEADING: Final = 16
_EDITS_PATH: Final = "recent_edits.diff"
# What stands behind the cursor may take so many seconds to read at every key, and is at least so many tokens.
_REREAD_SECONDS: Final = 0.25
_LEAST_BEHIND: Final = 32


def fitted(parts: PromptParts, room: int, *, whole: bool) -> PromptParts:
    """What fits into about `room` tokens: first the window, then the last of the other parts, the most useful ones.

    Args:
        parts: of the question.
        room: for the prompt.
        whole: turn the last edits, and excerpts of the same file, into related files, the edits last: formats for holes
            have no other place for them. Otherwise the edits stay edits.
    """
    room = max(1, room - _HEADING - size("" if parts.region is None else parts.region.text))
    behind = _beginning(parts.suffix, max(room // _SUFFIX_SHARE, room - size(parts.prefix)))
    before = _end(parts.prefix, room - size(behind))
    room -= size(before) + size(behind)
    edits: list[Hunk] = []
    for hunk in reversed(parts.edits):
        room -= size(hunk.before) + size(hunk.after) + _HEADING
        if room < 0:
            break
        edits.insert(0, hunk)
    far = [each for each in parts.far if each.text not in parts.prefix + parts.suffix]
    related: list[Excerpt] = []
    for excerpt in reversed((*parts.related, *far)):
        room -= size(excerpt.text) + _HEADING
        if room < 0:
            break
        related.insert(0, excerpt)
    if whole and edits:
        text = "".join(f"--- {hunk.path}\n{diff_text(hunk)}" for hunk in edits)
        related.append(Excerpt(_EDITS_PATH, 0, text))
    kept = () if whole else tuple(edits)
    return replace(parts.with_window(before, behind), related=tuple(related), far=(), edits=kept)


def in_time(behind: str, reading: float) -> str:
    """The beginning of the text behind a cursor that a server reads in time, in steps, and in whole lines if it can.

    Args:
        behind: the text.
        reading: seconds for a token.
    """
    affordable = max(_LEAST_BEHIND, _REREAD_SECONDS / reading)
    tokens = int(2 ** math.floor(math.log2(affordable)))
    if size(behind) <= tokens:
        return behind
    kept = _beginning(behind, tokens)
    line = kept.rfind("\n") + 1
    return kept[:line] if line > len(kept) // 2 else kept


def size(text: str) -> int:
    """The estimated number of tokens of a text."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


def _beginning(text: str, tokens: int) -> str:
    return text.encode("utf-8", "surrogatepass")[: max(0, tokens) * _BYTES_PER_TOKEN].decode("utf-8", "ignore")


def _end(text: str, tokens: int) -> str:
    """The last lines that fit; the end of the last one if that alone is too long."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= max(0, tokens) * _BYTES_PER_TOKEN:
        return text
    kept = data[len(data) - max(0, tokens) * _BYTES_PER_TOKEN :].decode("utf-8", "ignore")
    return kept[kept.find("\n") + 1 :]
