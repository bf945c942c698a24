"""Which lines Zed shows around a cursor, and which of them it lets be rewritten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from calomel.workspace.languages import grammar_of, parser_for

EDITABLE_TOKENS: Final = 350
CONTEXT_TOKENS: Final = 150
CURSOR_TOKENS: Final = 8192
_BYTES_A_TOKEN: Final = 3
_SYMMETRIC: Final = 0.75

Rows = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Offsets into the file: of what is shown, and of what may be rewritten. Both end before a line end."""

    start: int
    end: int
    region_start: int
    region_end: int


def tokens(text: str) -> int:
    """As Zed estimates them."""
    return max(1, len(text.encode()) // _BYTES_A_TOKEN)


def excerpt(path: str, text: str, cursor: int) -> Excerpt:
    """The excerpt around a cursor, by lines and by the syntax around it."""
    lines = text.split("\n")
    row = text.count("\n", 0, cursor)
    nodes = _enclosing(path, text, cursor)
    known = _linewise(lines, (row, row), CURSOR_TOKENS)
    nodes = [node for node in nodes if known[0] <= node[0] and node[1] <= known[1]]
    region = _linewise(lines, (row, row), int(EDITABLE_TOKENS * _SYMMETRIC), known)
    region = _syntactic(lines, region, nodes, EDITABLE_TOKENS)
    region = _linewise(lines, region, EDITABLE_TOKENS, known, around=row)
    shown = _syntactic(lines, region, nodes, EDITABLE_TOKENS + CONTEXT_TOKENS)
    if shown == region:
        shown = _linewise(lines, region, _cost(lines, region) + CONTEXT_TOKENS, known)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    ends = [start + len(line) for start, line in zip(starts, lines, strict=False)]
    return Excerpt(starts[shown[0]], ends[shown[1]], starts[region[0]], ends[region[1]])


def _cost(lines: list[str], rows: Rows) -> int:
    return sum(tokens(line + "\n") for line in lines[rows[0] : rows[1] + 1])


def _linewise(lines: list[str], rows: Rows, budget: int, known: Rows | None = None, around: int | None = None) -> Rows:
    """More lines below and above in turn, while they fit; the side that has fewer first."""
    first, last = known or (0, len(lines) - 1)
    top, bottom = rows
    left = budget - _cost(lines, rows)
    down = around is None or bottom - around <= around - top
    stuck = 0
    while stuck < 2:
        place = bottom + 1 if down else top - 1
        cost = tokens(lines[place] + "\n") if first <= place <= last else left + 1
        if cost <= left:
            left -= cost
            top, bottom, stuck = min(top, place), max(bottom, place), 0
        else:
            stuck += 1
        down = not down
    return top, bottom


def _syntactic(lines: list[str], rows: Rows, nodes: list[Rows], budget: int) -> Rows:
    """The outermost of the nodes around the rows that fits."""
    for node in nodes:
        grown = min(rows[0], node[0]), max(rows[1], node[1])
        if _cost(lines, grown) > budget:
            break
        rows = grown
    return rows


def _enclosing(path: str, text: str, cursor: int) -> list[Rows]:
    """Rows of the nodes around the cursor, inner ones first."""
    grammar = grammar_of(None, path)
    parser = None if grammar is None else parser_for(grammar)
    if parser is None:
        return []
    at = len(text[:cursor].encode())
    node = parser.parse(text.encode()).root_node.descendant_for_byte_range(at, at)
    found: list[Rows] = []
    while node is not None:
        rows = (node.start_point[0], min(node.end_point[0], text.count("\n")))
        if not found or found[-1] != rows:
            found.append(rows)
        node = node.parent
    return found
