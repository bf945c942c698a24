"""A list between brackets, divided by commas: parameters or arguments, and how one more or one less is written."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from calomel.training.edits.source import Source
from calomel.training.edits.story import Change


@dataclass(frozen=True, slots=True)
class Listing:
    """Where the items of a list stand, in characters.

    Attributes:
        source: the file.
        start, end: the place behind the opening bracket, and that of the closing one.
        items: start and end of each, without commas and blanks around.
    """

    source: Source
    start: int
    end: int
    items: tuple[tuple[int, int], ...]

    def texts(self) -> tuple[str, ...]:
        """What each item reads."""
        return tuple(self.source.text[start:end] for start, end in self.items)

    def insert(self, index: int, item: str) -> Change:
        """One more item before the one at `index`; at the end with `index == len(items)`."""
        if not self.items:
            return Change(self.start, self.end, item)
        if index < len(self.items):
            at = self.items[index][0]
            return Change(at, at, f"{item},{self._blank(at)}")
        at = self.items[-1][1]
        between = self._blank(self.items[-1][0])
        comma = self.source.text.find(",", at, self.end)
        if comma >= 0 and "\n" in self.source.text[comma : self.end]:
            return Change(comma + 1, comma + 1, f"{between}{item},")
        return Change(at, at, f",{between}{item}")

    def remove(self, index: int) -> Change:
        """One item less."""
        start, end = self.items[index]
        if len(self.items) == 1:
            return Change(self.start, self.end, "")
        if index + 1 < len(self.items):
            return Change(start, self.items[index + 1][0], "")
        return Change(self.items[index - 1][1], end, "")

    def arrange(self, order: tuple[int, ...]) -> Change:
        """The items in another order; what lies between them stays."""
        moved = [place for place, index in enumerate(order) if place != index]
        first, last = (moved[0], moved[-1]) if moved else (0, 0)
        texts, written = self.texts(), ""
        for place in range(first, last + 1):
            behind = self.source.text[self.items[place][1] : self.items[place + 1][0]] if place < last else ""
            written += texts[order[place]] + behind
        return Change(self.items[first][0], self.items[last][1], written)

    def _blank(self, at: int) -> str:
        """What separates the item at `at` from a comma before it: a space, or a new line where it begins one."""
        start = self.source.line_start(at)
        lead = self.source.text[start:at]
        return "\n" + lead if not lead.strip() else " "


def listing(source: Source, node: Node) -> Listing | None:
    """The list in a node that begins and ends with a bracket; None where comments stand in it or it is none."""
    children = node.children
    if len(children) < 2 or children[0].type not in "([{" or children[-1].type not in ")]}":  # noqa: PLR2004
        return None
    items: list[tuple[int, int]] = []
    first: Node | None = None
    last: Node | None = None
    for child in children[1:]:
        if "comment" in child.type or child.type == "|":
            return None
        if child.type == "," or child == children[-1]:
            if first is not None and last is not None:
                items.append((source.offset(first.start_byte), source.offset(last.end_byte)))
            first = last = None
            continue
        first, last = first or child, child
    return Listing(source, source.offset(children[0].end_byte), source.offset(children[-1].start_byte), tuple(items))
