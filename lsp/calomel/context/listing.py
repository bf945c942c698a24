"""A context as a person reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calomel.prompts.context import diff_text
from calomel.prompts.parts import Excerpt, Hunk, PromptParts


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text of a context.

    Attributes:
        heading: where it comes from.
    """

    part: Literal["related", "far", "edits", "suffix", "prefix", "region"]
    heading: str
    text: str


def pieces(parts: PromptParts) -> tuple[Piece, ...]:
    """All text of a context, in the order in which a model reads it."""
    name = parts.path or "this file"
    found = [Piece("related", place(excerpt), excerpt.text) for excerpt in parts.related]
    if parts.far:
        found.append(Piece("far", place(parts.far[0]), "".join(excerpt.text for excerpt in parts.far)))
    found += [Piece("edits", place(hunk), diff_text(hunk)) for hunk in parts.edits]
    found.append(Piece("suffix", f"{name}, behind the cursor", parts.suffix))
    found.append(Piece("prefix", f"{name}, up to the cursor", parts.prefix))
    if parts.region is not None:
        found.append(Piece("region", f"{name}, to be rewritten", parts.region.text))
    return tuple(found)


def part_texts(parts: PromptParts) -> dict[str, str]:
    """The text of each part as one, with a heading before each excerpt and each edit."""
    found: dict[str, list[str]] = {name: [] for name in ("related", "far", "edits", "suffix", "prefix")}
    for piece in pieces(parts):
        window = piece.part in {"suffix", "prefix", "region"}
        found.setdefault(piece.part, []).append(piece.text if window else f"--- {piece.heading}\n{piece.text}")
    return {name: "\n".join(texts) for name, texts in found.items()}


def place(value: Excerpt | Hunk) -> str:
    """`path:line`, the line counted from 1."""
    return f"{value.path}:{value.start_line + 1}"
