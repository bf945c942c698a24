"""Prompts in zeta2.1, put together the way Zed does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tests.editors.zed.blocks import boundaries
from tests.editors.zed.events import Event
from tests.editors.zed.excerpts import Excerpt, excerpt, tokens

MOST_TOKENS: Final = int(4096 * 0.9)
MOST_EVENTS: Final = 6
STOP: Final = ("<[end▁of▁sentence]>",)
_CURSOR: Final = "<|user_cursor|>"


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt, and what the editor keeps for its answer."""

    prompt: str
    file: str
    excerpt: Excerpt
    markers: tuple[int, ...]

    @property
    def region(self) -> str:
        """What may be rewritten."""
        return self.file[self.excerpt.region_start : self.excerpt.region_end]


def ask(
    path: str, text: str, cursor: int, events: Sequence[Event] = (), related: Sequence[tuple[str, Sequence[str]]] = ()
) -> Asked | None:
    """The prompt at a cursor; None where it would be too long, so that the editor does not ask.

    Args:
        path: with the name of the worktree's folder in front.
        text: of the file, with LF line ends.
        cursor: offset in it.
        events: oldest first.
        related: files, each with its excerpts, the most useful one first.
    """
    shown = excerpt(path, text, cursor)
    region = text[shown.region_start : shown.region_end]
    markers = boundaries(region)
    suffix = _line("<[fim-suffix]>" + text[shown.region_end : shown.end])
    front = text[shown.start : shown.region_start]
    current = _line(f"<filename>{path}\n{front}{_marked(region, markers, cursor - shown.region_start)}")
    left = MOST_TOKENS - tokens(suffix) - tokens(current) - tokens("<[fim-prefix]><[fim-middle]>")
    history, left = _history(events, left)
    files, left = _files(related, left)
    if left < 0:
        return None
    prompt = f"{suffix}<[fim-prefix]>{files}{history}{current}<[fim-middle]>"
    return Asked(prompt, text, shown, markers)


def _marked(region: str, markers: tuple[int, ...], cursor: int) -> str:
    text = ""
    blocks = list(pairwise(markers))
    for number, (start, end) in enumerate(blocks, 1):
        text += f"<|marker_{number}|>"
        last = number == len(blocks)
        if start <= cursor < end or (last and cursor == end):
            text += region[start:cursor] + _CURSOR + region[cursor:end]
        else:
            text += region[start:end]
    return f"{text}<|marker_{len(markers)}|>"


def _history(events: Sequence[Event], left: int) -> tuple[str, int]:
    taken: list[str] = []
    for event in list(reversed(events))[:MOST_EVENTS]:
        if tokens(event.text) > left:
            break
        left -= tokens(event.text)
        taken.insert(0, event.text)
    return (f"<filename>edit_history\n{''.join(taken)}\n" if taken else ""), left


def _files(related: Sequence[tuple[str, Sequence[str]]], left: int) -> tuple[str, int]:
    text = ""
    for path, pieces in related:
        section = f"<filename>{path}\n" + "".join(f"{_line(piece)}...\n" for piece in pieces) + "\n"
        if tokens(section) <= left:
            left -= tokens(section)
            text += section
    return text, left


def _line(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"
