"""Texts as words, spaces and signs, and what two of them have in common."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Final

from rapidfuzz.distance import LCSseq

_TOKEN: Final = re.compile(r"\w+|\s|[^\w\s]")


def words(text: str) -> list[str]:
    """Words; every space and every sign by itself. Joined they are the text."""
    return _TOKEN.findall(text)


def in_common(one: Sequence[str], other: Sequence[str]) -> list[bool]:
    """Which tokens of `one` belong to a longest common subsequence of both."""
    shared = [False] * len(one)
    for block in LCSseq.opcodes(one, other):
        if block.tag == "equal":
            shared[block.src_start : block.src_end] = [True] * (block.src_end - block.src_start)
    return shared


def common_characters(one: str, other: str) -> int:
    """Length of a longest common subsequence of characters."""
    return int(LCSseq.similarity(one, other))


def hunks(before: str, after: str) -> list[tuple[int, int, str]]:
    """The edits from one text to the other by words: start and end in `before`, and the new text."""
    old, new = words(before), words(after)
    # Ends that are equal make up most of a file, and the comparison's time grows with the square of the rest.
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    starts = [0]
    for token in old:
        starts.append(starts[-1] + len(token))
    changed = new[head : len(new) - tail]
    matcher = difflib.SequenceMatcher(None, old[head : len(old) - tail], changed, autojunk=False)
    return [
        (starts[head + first], starts[head + last], "".join(changed[new_first:new_last]))
        for tag, first, last, new_first, new_last in matcher.get_opcodes()
        if tag != "equal"
    ]
