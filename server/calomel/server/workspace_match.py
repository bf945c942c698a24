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
# Of a region that stands alone, so much of it is looked for: a half, a quarter, a few lines.
_PARTS: Final = (2, 4, 1_000_000)
_FEW: Final = 3
# Of the file's lines there, so many must still be in the region, unless the text around it says enough.
_STILL: Final = 0.7
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
    exact = [at for at in _places(file, whole) if _is_lines(file, at, at + len(whole), tail)]
    if len(exact) == 1 and (_tells(whole) or whole.strip() == file.strip()):
        return _around(file, exact[0], exact[0] + len(whole), suffix)
    if exact:
        return None
    for reading in _readings(prefix, region, tail):
        found = list(_spans(file, reading))
        if len(found) == 1:
            return _around(file, *found[0], suffix)
        if found:
            return None
    return None


def _readings(prefix: str, region: str, tail: str) -> Iterator[tuple[str, str, str]]:
    """What is to be found as it is before the region, what may differ, what is to be found behind it.

    Where there is no text on one side, the region's own lines there are looked for. Only when they are new as well, the
    excerpt is taken to begin or to end the file.
    """
    lines = region.split("\n")
    for count in dict.fromkeys(max(_FEW, len(lines) // part) for part in _PARTS if not (prefix and tail)):
        first, last = 0 if prefix else count, len(lines) if tail else len(lines) - count
        if first < last:
            head = prefix or "".join(f"{line}\n" for line in lines[:first])
            yield head, "\n".join(lines[first:last]), tail or "".join(f"\n{line}" for line in lines[last:])
    yield prefix, region, tail


def _spans(file: str, reading: tuple[str, str, str]) -> Iterator[tuple[int, int]]:
    """Where a reading stands in the file, from its first character to its last."""
    prefix, region, tail = reading
    starts = _places(file, prefix) if prefix else [0]
    # A region that ends the file goes up to its last line end, or beyond.
    end = len(file if region.endswith("\n") else file.removesuffix("\n"))
    ends = _places(file, tail) if tail else [end]
    telling = bool(prefix) and bool(tail) and _tells(prefix + tail)
    for start in starts:
        first = start + len(prefix)
        if start and file[start - 1] != "\n":
            continue
        for last in ends:
            if not first <= last <= first + _LONGEST_REGION or not _ends_line(file, last + len(tail), tail):
                continue
            if telling or _alike(file[first:last], region):
                yield start, last + len(tail)


def _places(file: str, text: str) -> list[int]:
    """The first places of a text, one more than can be used."""
    places: list[int] = []
    at = file.find(text) if text else -1
    while at >= 0 and len(places) <= _MOST_PLACES:
        places.append(at)
        at = file.find(text, at + 1)
    return places


def _is_lines(file: str, start: int, end: int, tail: str) -> bool:
    return (start == 0 or file[start - 1] == "\n") and _ends_line(file, end, tail)


def _tells(text: str) -> bool:
    return len("".join(text.split())) >= _TELLING


def _ends_line(file: str, at: int, tail: str) -> bool:
    # A region that nothing follows may end behind a line end.
    return at == len(file) or file[at] == "\n" or (not tail and at > 0 and file[at - 1] == "\n")


def _around(file: str, start: int, end: int, suffix: str) -> Around:
    behind = file[end:]
    # The line end that the excerpt has already.
    return Around(file[:start], behind.removeprefix("\n") if suffix.endswith("\n") else behind)


def _alike(old: str, new: str) -> bool:
    before = Counter(line.strip() for line in old.split("\n") if line.strip())
    kept = before & Counter(line.strip() for line in new.split("\n") if line.strip())
    return kept.total() >= max(1, _STILL * before.total())
