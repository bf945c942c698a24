"""What is wrong with an offer whatever the next edit is: broken syntax, unknown names, an edit undone.

Measured on texts alone, with fresh parses, so that it does not share the mistakes of the filters that prevent harm.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from calomel.code.languages import Grammar, builtin_names, grammar_of
from calomel.code.trees import errors, parse
from calomel.prompts.parts import Edit, differences, edited
from calomel.report.result import Table, Value

SYNTAX: Final = "syntax"
NAMES: Final = "names"
UNDO: Final = "undo"
HARMS: Final = (SYNTAX, NAMES, UNDO)

_TITLES: Final = ("breaks the syntax", "uses an unknown name", "undoes an edit")
NOTE: Final = (
    "An offer, right or wrong, is harmful if it adds syntax errors, uses a name away from the cursor that neither the"
    " file, its language nor the last edits have, or undoes one of the last edits."
)

_WORD: Final = re.compile(r"[^\W\d]\w*")
_PIECE: Final = re.compile(r"\w+|\s+|[^\w\s]")
# An offer must not undo any of this many last edits.
_EDITS: Final = 16
# Nothing that a person edits takes longer to parse.
_SECONDS: Final = 60.0
# A node's fields that hold the names it declares.
_DECLARING: Final = frozenset({"name", "left", "pattern", "declarator", "alias", "parameter", "parameters"})
_MEMBERS: Final = frozenset({"attribute", "property", "field"})
_PATTERNS: Final = ("pattern", "parameter", "_list", "tuple", "declarator")
# Node types whose `name` belongs to something else, such as the callee.
_OTHERS: Final = frozenset({"keyword_argument", "scoped_identifier", "scoped_type_identifier", "qualified_type"})
_OWN: Final = ("self", "this")


@dataclass(frozen=True, slots=True)
class Offered:
    """One offer.

    Attributes:
        text: the document's.
        edits: of `text`, sorted, not overlapping.
        cursor: where the question was asked.
        path: of the file; determines its language.
        before: the document at the start.
        changes: made since, in order, each in offsets of the text after the earlier ones.
    """

    text: str
    edits: Sequence[Edit]
    cursor: int
    path: str
    before: str
    changes: Sequence[Edit]

    @property
    def after(self) -> str:
        """The document with the offer applied."""
        return edited(self.text, self.edits)


def harms(offered: Offered) -> tuple[str, ...]:
    """Which of `HARMS` an offer does; without a grammar, syntax and names are not checked."""
    grammar = grammar_of(None, offered.path)
    found = []
    if grammar is not None and _breaks(offered, grammar):
        found.append(SYNTAX)
    if grammar is not None and unknown_names(offered, grammar):
        found.append(NAMES)
    if _undoes(offered):
        found.append(UNDO)
    return tuple(found)


def harm_figures(offers: Sequence[Collection[str]]) -> dict[str, Value]:
    """The number of offers, and of harmful ones, in total and by harm."""
    return {
        "offers": len(offers),
        "harmful_offers": sum(bool(found) for found in offers),
        **{f"harmful_{harm}": sum(harm in found for found in offers) for harm in HARMS},
    }


def harm_table(offers: Sequence[Collection[str]]) -> Table:
    """The same as a table."""
    counts = [sum(map(bool, offers)), *(sum(harm in found for found in offers) for harm in HARMS)]
    cells = (f"{number} ({number / len(offers):.1%})" if offers else "0" for number in counts)
    return Table("Harmful offers", ("", "offers", "harmful", *_TITLES), (("Calomel", str(len(offers)), *cells),))


def _breaks(offered: Offered, grammar: Grammar) -> bool:
    """Whether there are more syntax errors after it."""
    before, after = parse(offered.text, grammar, _SECONDS), parse(offered.after, grammar, _SECONDS)
    had, has = (None if tree is None else errors(tree.root_node) for tree in (before, after))
    return had is not None and has is not None and has > had


def unknown_names(offered: Offered, grammar: Grammar) -> tuple[str, ...]:
    """Names in its edits away from the cursor's line that nothing declares and no text contains.

    Members of anything but the object itself (`self`, `this`) are skipped: their type may be in another file.
    """
    text = offered.after
    tree = parse(text, grammar, _SECONDS)
    if tree is None:
        return ()
    row = offered.text.count("\n", 0, offered.cursor)
    ranges: list[tuple[int, int]] = []
    shift = 0
    for start, end, new in offered.edits:
        first, last = (offered.text.count("\n", 0, at) for at in (start, end))
        if not first <= row <= last:
            low = start + shift
            ranges.append((2 * low, 2 * (low + len(new))))
        shift += len(new) - (end - start)
    seen = (offered.before, offered.text, *(change.text for change in offered.changes))
    known = {word for each in seen for word in _WORD.findall(each)} | (builtin_names("", offered.path) or frozenset())
    used, declared = [], set()
    for node in _identifiers(tree.root_node):
        name = text[node.start_byte // 2 : node.end_byte // 2]
        if _declares(node):
            declared.add(name)
        elif not _is_anothers(node, text) and any(
            low < node.end_byte and node.start_byte < high for low, high in ranges
        ):
            used.append(name)
    return tuple(name for name in dict.fromkeys(used) if name not in known and name not in declared)


def _undoes(offered: Offered) -> bool:
    """Whether it undoes one of the last changes, or a self-contained part of one."""
    ours = {each for edit in offered.edits for each in _pieces(offered.text, edit)}
    return any(not ours.isdisjoint(_pieces(offered.text, back)) for back in _inverses(offered))


def _inverses(offered: Offered) -> list[Edit]:
    """The inverse of each of the last changes, in offsets of the current text; those edited since are left out."""
    text, found = offered.before, list[Edit]()
    for start, end, new in offered.changes[-_EDITS:]:
        moved = []
        for low, high, old in found:
            if end <= low:
                by = len(new) - (end - start)
                moved.append(Edit(low + by, high + by, old))
            elif start >= high and not (start == high and low < high and not text[start:end]):
                moved.append(Edit(low, high, old))
            elif low <= start and end <= high:
                moved.append(Edit(low, high + len(new) - (end - start), old))
        found = [*moved, Edit(start, start + len(new), text[start:end])]
        text = text[:start] + new + text[end:]
    return found


def _pieces(text: str, edit: Edit) -> Iterator[Edit]:
    """An edit as replacements of whole words; single characters added or removed are left out as typo fixes."""
    low, high = text.rfind("\n", 0, edit.start) + 1, text.find("\n", edit.end)
    high = len(text) if high < 0 else high
    old = _PIECE.findall(text[low:high])
    new = _PIECE.findall(text[low : edit.start] + edit.text + text[edit.end : high])
    starts = [low]
    for piece in old:
        starts.append(starts[-1] + len(piece))
    for first, last, new_first, new_last in differences(old, new):
        gone, came = "".join(old[first:last]), "".join(new[new_first:new_last])
        if (gone.strip() and came.strip()) or len((gone + came).strip()) > 1:
            yield Edit(starts[first], starts[last], came)


def _identifiers(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type.endswith("identifier") and not node.child_count:
            yield node
        stack += node.children


def _field(node: Node) -> tuple[Node | None, str]:
    """The parent and the field that a node is in."""
    parent = node.parent
    if parent is None:
        return None, ""
    at = next((number for number, child in enumerate(parent.children) if child == node), -1)
    return parent, (parent.field_name_for_child(at) or "") if at >= 0 else ""


def _declares(node: Node) -> bool:
    """Whether this node declares its name: as a parameter, a variable, a function, an import."""
    parent, field = _field(node)
    while parent is not None:
        if parent.type in _OTHERS:
            return False
        if field in _DECLARING or "import" in parent.type or parent.type.startswith(("use_", "for_", "parameter")):
            return field not in {"right", "value", "type", "body"}
        if not parent.type.endswith(_PATTERNS):
            return False
        parent, field = _field(parent)
    return False


def _is_anothers(node: Node, text: str) -> bool:
    """Whether a name is a member of anything but the object itself, or a callee's parameter."""
    parent, field = _field(node)
    if parent is None:
        return False
    if parent.type in {"keyword_argument", "pair", "field_initializer", "keyed_element", "property_signature"}:
        return field in {"name", "key", "field"}
    if parent.type in _OTHERS:
        return field == "name"
    if field in _MEMBERS:
        whole = text[parent.start_byte // 2 : parent.end_byte // 2]
        return not whole.startswith(tuple(f"{own}." for own in _OWN)) or whole.count(".") > 1
    return False
