"""How much of a question fits into the window of a server whose tokenizer is not here."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from calomel.prompts.own import diff_text
from calomel.prompts.parts import Excerpt, Hunk, PromptParts

# Bytes of a token of code, as `calomel.context.budget` estimates: the server's own tokenizer is not here.
_BYTES_PER_TOKEN: Final = 3
_SUFFIX_SHARE: Final = 4
# Tokens of a heading and of the marks.
_HEADING: Final = 16
_EDITS_PATH: Final = "recent_edits.diff"


def fitted(parts: PromptParts, room: int, *, whole: bool) -> PromptParts:
    """What fits into about `room` tokens: the window first, of the rest the last parts, which are the most useful.

    Args:
        parts: of the question.
        room: for the prompt.
        whole: the last edits and excerpts of the same file become related files, the edits last: formats for holes have
            no other place for them. Without, they stay what they are.
    """
    room = max(1, room - _HEADING - _size("" if parts.region is None else parts.region.text))
    behind = _beginning(parts.suffix, max(room // _SUFFIX_SHARE, room - _size(parts.prefix)))
    before = _end(parts.prefix, room - _size(behind))
    room -= _size(before) + _size(behind)
    edits: list[Hunk] = []
    for hunk in reversed(parts.edits):
        room -= _size(hunk.before) + _size(hunk.after) + _HEADING
        if room < 0:
            break
        edits.insert(0, hunk)
    far = [each for each in parts.far if each.text not in parts.prefix + parts.suffix]
    related: list[Excerpt] = []
    for excerpt in reversed((*parts.related, *far)):
        room -= _size(excerpt.text) + _HEADING
        if room < 0:
            break
        related.insert(0, excerpt)
    if whole and edits:
        told = "".join(f"--- {hunk.path}\n{diff_text(hunk)}" for hunk in edits)
        related.append(Excerpt(_EDITS_PATH, 0, told))
    kept = () if whole else tuple(edits)
    return replace(parts, related=tuple(related), far=(), edits=kept, prefix=before, suffix=behind)


def _size(text: str) -> int:
    """About how many tokens a text has."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


def _beginning(text: str, tokens: int) -> str:
    return text.encode("utf-8", "surrogatepass")[: max(0, tokens) * _BYTES_PER_TOKEN].decode("utf-8", "ignore")


def _end(text: str, tokens: int) -> str:
    """The last lines that fit; a part of the last one where it alone is too long."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= max(0, tokens) * _BYTES_PER_TOKEN:
        return text
    kept = data[len(data) - max(0, tokens) * _BYTES_PER_TOKEN :].decode("utf-8", "ignore")
    return kept[kept.find("\n") + 1 :]
