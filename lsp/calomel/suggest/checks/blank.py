"""Answers with nothing in them."""

from __future__ import annotations


def is_blank(text: str) -> bool:
    """Whether there is nothing but white space."""
    return not text.strip()


def changes_only_space(removed: str, text: str) -> bool:
    """Whether an edit leaves everything but white space as it was."""
    return "".join(removed.split()) == "".join(text.split())
