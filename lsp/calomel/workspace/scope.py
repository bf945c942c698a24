"""What encloses a place in a program, and what a file defines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """A definition that encloses a place.

    Attributes:
        kind: "function", "class", "module" …; "block" where only the indentation is known.
        name: of what is defined; empty when it has none.
        signature: the lines that introduce the body, without the body; no line end behind the last one.
        start, end: offsets of the whole definition, in code points.
    """

    kind: str
    name: str
    signature: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class OutlineItem:
    """One definition of a file.

    Attributes:
        kind, name, signature: as in `Scope`.
        start_line, end_line: the first and the last line of the definition.
        body_line: the first line behind the signature; beyond `end_line` when there is no body.
        depth: how many definitions enclose it.
    """

    kind: str
    name: str
    signature: str
    start_line: int
    end_line: int
    body_line: int
    depth: int
