"""Lengths in UTF-16 code units, in which editors count."""

from __future__ import annotations


def utf16_length(text: str) -> int:
    """Units that `text` takes: two for each character beyond the basic plane."""
    return len(text) + sum(character > "\uffff" for character in text)
