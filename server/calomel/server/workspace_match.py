"""Where an excerpt that a client sends stands in a file: in one place and no other, or nowhere.

The text around the region must be in the file as it is. The region itself may differ: it is what was typed since the
file was saved, and the client's word counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# Around the region: less than that stands in too many files to say which one is meant.
_TELLING: Final = 40
# A region may have been cut by as much, or be longer than what the file has by anything.
_LONGEST_REGION: Final = 32_768
# Of the file's lines there, so many must still be in the region, unless the text around it says enough.
_STILL: Final = 0.5
# A text that stands in the file more often is no address.
_MOST_PLACES: Final = 32


@dataclass(frozen=True, slots=True)
class Around:
    """What the file has before and behind an excerpt."""

    before: str
    behind: str


def around(file: str, prefix: str, region: str, suffix: str) -> Around | None:
    """What stands around `prefix + region + suffix` in `file`; None when it is not there, or there more than once.

    Args:
        file: with LF line ends.
        prefix: whole lines before the region; empty where the region begins the file.
        region: may differ from the file's.
        suffix: text behind it, up to a line's end; empty where the region ends the file.
    """
    # Clients end their excerpts with a line end that the file may not have there.
    tail = suffix.removesuffix("\n")
    whole = prefix + region + tail
    exact = [at for at in _places(file, whole) if _is_lines(file, at, at + len(whole))]
    if len(exact) == 1 and (_tells(whole) or whole.strip() == file.strip()):
        return _around(file, exact[0], exact[0] + len(whole), suffix)
    if exact:
        return None
    found = list(_spans(file, prefix, tail, at_end=not suffix))
    if len(found) != 1:
        return None
    start, first, last, end = found[0]
    if not _tells(prefix + tail) and not _alike(file[first:last], region):
        return None
    return _around(file, start, end, suffix)


def _spans(file: str, prefix: str, tail: str, *, at_end: bool) -> Iterator[tuple[int, int, int, int]]:
    """Where prefix and tail stand with a region between them: both ends of the whole, and of the region."""
    starts = _places(file, prefix) if prefix else [0]
    ends = [len(file)] if at_end else _places(file, tail)
    for start in starts:
        first = start + len(prefix)
        if start and file[start - 1] != "\n":
            continue
        for last in ends:
            if first <= last <= first + _LONGEST_REGION and _ends_line(file, last + len(tail)):
                yield start, first, last, last + len(tail)


def _places(file: str, text: str) -> list[int]:
    """The first places of a text, one more than can be used."""
    places: list[int] = []
    at = file.find(text) if text else -1
    while at >= 0 and len(places) <= _MOST_PLACES:
        places.append(at)
        at = file.find(text, at + 1)
    return places


def _is_lines(file: str, start: int, end: int) -> bool:
    return (start == 0 or file[start - 1] == "\n") and _ends_line(file, end)


def _tells(text: str) -> bool:
    return len("".join(text.split())) >= _TELLING


def _ends_line(file: str, at: int) -> bool:
    return at == len(file) or file[at] == "\n" or (at > 0 and file[at - 1] == "\n")


def _around(file: str, start: int, end: int, suffix: str) -> Around:
    behind = file[end:]
    # The line end that the excerpt has already.
    return Around(file[:start], behind.removeprefix("\n") if suffix.endswith("\n") else behind)


def _alike(old: str, new: str) -> bool:
    before = Counter(line.strip() for line in old.split("\n") if line.strip())
    kept = before & Counter(line.strip() for line in new.split("\n") if line.strip())
    return kept.total() >= _STILL * before.total()
