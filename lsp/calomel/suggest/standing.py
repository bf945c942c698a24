"""Which of the last edits still stand: what was undone, reverted or reloaded away is no intent any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calomel.prompts.parts import Hunk

# Edits that are looked at: what was done before them was another matter.
_EDITS: Final = 16


def standing(text: str, hunks: Sequence[Hunk], path: str | None) -> tuple[Hunk, ...]:
    """Those of the last edits that are in the text, or in another file; none when the newest took others back.

    The text is played backwards, edit by edit: between two moments at which it was the same, nothing was done.

    Args:
        text: of the document as it is now.
        hunks: the last edits, oldest first.
        path: of the document, as hunks name it; None when all are its own.
    """
    last = hunks[-_EDITS:]
    gone: set[int] = set()
    # For each state of the text the newest edit that was made in it.
    now = _plain(text)
    states = {now: len(last)}
    own = [at for at, hunk in enumerate(last) if path is None or hunk.path == path]
    for at in reversed(own):
        hunk = last[at]
        before, after = _plain(hunk.before), _plain(hunk.after)
        place = place_of(now, hunk.start_line, after)
        if place is None:
            if place_of(now, hunk.start_line, before) is not None:
                gone.add(at)
            continue
        now = now[:place] + before + now[place + len(after) :]
        later = states.setdefault(now, at)
        if later == len(last) == own[-1] + 1:
            return ()
        gone.update(each for each in own if at <= each < later)
    return tuple(hunk for at, hunk in enumerate(last) if at not in gone)


def place_of(text: str, row: int, lines: str) -> int | None:
    """Where `lines` stand: of several places the one nearest to line `row`; None when they do not."""
    wanted = 0
    for _ in range(row):
        wanted = text.find("\n", wanted) + 1
        if not wanted:
            wanted = len(text)
            break
    if not lines:
        return wanted
    places = [at for at in (text.rfind(lines, 0, wanted + len(lines)), text.find(lines, wanted)) if at >= 0]
    return min(places, key=lambda at: abs(at - wanted), default=None)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")
