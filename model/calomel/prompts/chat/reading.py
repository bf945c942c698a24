"""A chat model's text: what it thought, what it says, and what it wants called, in whole and while it grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.prompts.chat.calls import OPENING, read_calls
from calomel.prompts.chat.conversation import Call, Function

# As Qwen, DeepSeek and their kin write what is not meant for the reader.
THOUGHT_OPENING: Final = "<think>"
THOUGHT_CLOSING: Final = "</think>"


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer's parts: `content` for the reader, `thought` that led to it, `calls` of functions."""

    content: str
    thought: str = ""
    calls: tuple[Call, ...] = ()


def read_reply(text: str, functions: Sequence[Function] = ()) -> Reading:
    """Take a finished answer apart; calls are read when there are `functions` that may be called."""
    thought, said = split_thought(text)
    if not functions:
        return Reading(said, thought)
    spoken = read_calls(said, functions)
    return Reading(spoken.content, thought, spoken.calls)


def split_thought(text: str) -> tuple[str, str]:
    """The thought that `text` begins with, without its tags, and the rest. One that is not closed is all there is."""
    start = text.lstrip()
    if not start.startswith(THOUGHT_OPENING):
        return "", text
    thought, closed, said = start.removeprefix(THOUGHT_OPENING).partition(THOUGHT_CLOSING)
    return thought.strip(), said.lstrip("\n") if closed else ""


def shown_so_far(text: str, functions: Sequence[Function] = ()) -> str:
    """The part of a growing answer's content that stays whatever follows: a beginning of what `read_reply` finds."""
    start = text.lstrip()
    if THOUGHT_OPENING.startswith(start) and len(start) < len(THOUGHT_OPENING):
        return ""
    _, said = split_thought(text)
    if not functions:
        return said
    said = said[: said.index(OPENING)] if OPENING in said else _without_beginning(said)
    # Before a call the line ends are of the format.
    return said.rstrip()


def _without_beginning(text: str) -> str:
    """`text` without what may be the beginning of a call's tag at its end."""
    sizes = range(len(OPENING) - 1, 0, -1)
    size = next((size for size in sizes if text.endswith(OPENING[:size])), 0)
    return text[: len(text) - size]
