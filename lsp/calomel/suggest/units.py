"""Lengths in UTF-16 code units, in which editors count."""

from __future__ import annotations


def utf16_length(text: str) -> int:
    """Units that `text` takes: two for each character beyond the basic plane."""
    return len(text) + sum(character > "\uffff" for character in text)


def utf16_prefix(text: str, units: int) -> str:
    """The first `units` of `text`; a character that they cut in two is left out."""
    if units >= utf16_length(text):
        return text
    count = 0
    for at, character in enumerate(text):
        count += 2 if character > "\uffff" else 1
        if count > units:
            return text[:at]
    return text
