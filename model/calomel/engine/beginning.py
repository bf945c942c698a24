"""How far two long contexts agree."""

from __future__ import annotations


def common_beginning(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """How many tokens `one` and `other` have in common at their beginning.

    Slices are compared far faster than one token after another. The first ones are short: most contexts that differ do
    so at once, and what was rendered a keystroke before differs at the end.
    """
    low, high = 0, min(len(one), len(other))
    step = 64
    while low < high:
        stop = min(low + step, high)
        if one[low:stop] != other[low:stop]:
            break
        low, step = stop, step * 8
    else:
        return low
    high = stop - 1
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
