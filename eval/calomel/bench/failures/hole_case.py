"""A hole that was asked about: what the model saw, what was there, and what it said."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HoleCase:
    """One question and its answer.

    Attributes:
        language: of the file.
        prefix: before the hole.
        suffix: behind it.
        truth: what was there.
        answer: what was said.
        seen: the text that the model saw, without the hole.
        cut: the answer was ended by the bound on its tokens.
    """

    language: str
    prefix: str
    suffix: str
    truth: str
    answer: str
    seen: str
    cut: bool = False
