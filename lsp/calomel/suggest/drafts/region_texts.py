"""What a region could become by the drafts that lie in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from calomel.suggest.completer import Draft
from calomel.suggest.drafts.draft import EditDraft

# Each is read by the model once: a few milliseconds.
_MOST: Final = 6
_TOGETHER: Final = 4


@dataclass(frozen=True, slots=True)
class RegionText:
    """A text for the model to judge, and how many of the last edits agree with it."""

    draft: Draft
    support: int


def region_texts(text: str, start: int, end: int, drafts: Iterable[EditDraft]) -> tuple[RegionText, ...]:
    """The texts that `text[start:end]` could become, best first: all that one maker does to it, then each draft alone.

    Args:
        text: the document's.
        start: where the region starts.
        end: where it ends.
        drafts: of the document, best first.
    """
    inside = [
        draft for draft in drafts if start <= draft.start and draft.end <= end and draft.start < max(end, start + 1)
    ]
    found: dict[str, RegionText] = {}
    sets: list[list[EditDraft]] = []
    for draft in inside:
        together = [draft]
        for other in inside:
            if (
                other.maker == draft.maker
                and not (other.alone or draft.alone)
                and len(together) < _TOGETHER
                and all(_apart(other, each) for each in together)
            ):
                together.append(other)
        if len(together) > 1:
            sets.append(together)
        sets.append([draft])
    for chosen in sets:
        new = _applied(text, start, end, chosen)
        if new != text[start:end] and new not in found:
            found[new] = RegionText(Draft(new, chosen[0].maker), min(draft.support for draft in chosen))
        if len(found) >= _MOST:
            break
    return tuple(found.values())


def _apart(one: EditDraft, other: EditDraft) -> bool:
    """Whether both can be done: they do not touch, and do not begin at one place."""
    return one.end < other.start or other.end < one.start


def _applied(text: str, start: int, end: int, chosen: Sequence[EditDraft]) -> str:
    parts: list[str] = []
    at = start
    for draft in sorted(chosen, key=lambda draft: draft.start):
        parts += (text[at : draft.start], draft.text)
        at = draft.end
    return "".join([*parts, text[at:end]])
