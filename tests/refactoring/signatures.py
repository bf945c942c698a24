"""A parameter added, removed or moved in functions of real files, and what Tab does to the calls of that function.

Which calls are calls of it is what the library says that a rename of the function changes; what becomes of their lists
is read from the tree.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from tests.refactoring.library import Library, LibraryError, Name
from tests.refactoring.renames import drawn_files
from tests.refactoring.tabs import syntax_errors, tab_to_the_end, word_changes
from tree_sitter import Node, Tree

from calomel.code.languages import grammar_of
from calomel.code.trees import parse
from calomel.prompts.parts import Edit, edited

HOW: Final = ("added", "removed", "moved")
_SECONDS: Final = 60.0
_RECEIVERS: Final = ("self", "cls")
_PLAIN: Final = frozenset({"identifier", "typed_parameter", "required_parameter"})
# An argument of another kind leaves open which parameter it is of.
_SPREAD: Final = frozenset({"list_splat", "dictionary_splat", "spread_element"})


@dataclass(frozen=True, slots=True)
class Signature:
    """One change of a parameter list: the person's edit, and the file as it should be in the end."""

    file: str
    how: str
    name: Name
    text: str
    edit: Edit
    expected: str


class Block(NamedTuple):
    """Lines `first:last` of the text before became `new`."""

    first: int
    last: int
    new: str


@dataclass(frozen=True, slots=True)
class Followed:
    """What Tab did of a changed list: calls changed as they should be, their number, and other changed lines."""

    drawn: Signature
    found: int
    wanted: int
    outside: tuple[tuple[str, str], ...]
    broken: bool
    ended: bool


def draw_signatures(library: Library, seed: int) -> Iterator[Signature]:
    """Changes without an end, one a file, the same ones for a seed and the installed files."""
    rng = random.Random(seed)
    for path, text in drawn_files(library, rng):
        try:
            names = [each for each in library.names(path, text) if each.kind in {"definition", "member"}]
        except LibraryError:
            continue
        tree = _tree(path, text)
        rng.shuffle(names)
        for name in names[:12]:
            how = rng.choice(HOW)
            found = None if tree is None else _changed(library, path, text, tree, name, how, names)
            if found is not None:
                edit, expected = found
                yield Signature(str(path.relative_to(library.root)), how, name, text, edit, expected)
                break


async def followed(drawn: Signature) -> Followed:
    """Make the edit and press Tab to the end."""
    path = f"drawn{Path(drawn.file).suffix}"
    begun = edited(drawn.text, [drawn.edit])
    chain = await tab_to_the_end(path, drawn.text, (drawn.edit,))
    wanted, done = blocks(begun, drawn.expected), blocks(begun, chain.text)
    if _bare(chain.text) == _bare(drawn.expected):
        done = wanted  # in another layout
    lines = begun.split("\n")
    outside = tuple((" / ".join(lines[each.first : each.last]).strip(), each.new.strip()) for each in done - wanted)
    broken = syntax_errors(path, chain.text) > syntax_errors(path, begun)
    return Followed(drawn, len(done & wanted), len(wanted), outside, broken, chain.ended)


def _bare(text: str) -> str:
    """Without layout."""
    return re.sub(r",([)\]}])", r"\1", re.sub(r"\s+", "", text))


def blocks(before: str, after: str) -> frozenset[Block]:
    """The lines that differ, each alone where both texts have as many."""
    old, new = before.split("\n"), after.split("\n")
    if len(old) == len(new):
        return frozenset(Block(at, at + 1, line) for at, line in enumerate(new) if line != old[at])
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return frozenset(Block(low, high, "\n".join(new[a:b])) for tag, low, high, a, b in codes if tag != "equal")


def _changed(
    library: Library, path: Path, text: str, tree: Tree, name: Name, how: str, names: Sequence[Name]
) -> tuple[Edit, str] | None:
    """The edit of the definition, and the file with its calls changed, too; None where nothing would have to."""
    defined = _at(tree, name.start).parent
    listed = None if defined is None else defined.child_by_field_name("parameters")
    if listed is None:
        return None
    items = _items(listed)
    told = [_text(text, each) for each in items]
    receiver = bool(told) and told[0] in _RECEIVERS
    if any(each.type not in _PLAIN or "=" in item or "?" in item for each, item in zip(items, told, strict=True)):
        return None
    own = list(range(receiver, len(items)))
    new: Callable[[list[str]], list[str] | None]
    if how == "added":
        other = next((each.old for each in names if each.kind == "definition" and each.start < name.start), None)
        if other is None or other == name.old:
            return None
        after, new = [*told, other], lambda old: [*old, other] if len(old) == len(own) else None
    elif how == "removed" and own:
        after, new = told[:-1], lambda old: old[:-1] if len(old) == len(own) else None
    elif how == "moved" and len(own) > 1:
        after = [*told[:-2], told[-1], told[-2]]
        new = lambda old: [*old[:-2], old[-1], old[-2]] if len(old) == len(own) else None  # noqa: E731
    else:
        return None
    try:
        renamed = library.renamed(path, text, name, f"{name.old}_quartz")
    except LibraryError:
        return None
    edit = _listed(listed, items, text, after)
    calls = [
        _listed(call, _items(call), text, changed)
        for start in sorted(each.start for each in word_changes(text, renamed))
        if start != name.start and (call := _arguments(_at(tree, start))) is not None
        if not any(each.type in _SPREAD | {"keyword_argument"} for each in _items(call))
        if (changed := new([_text(text, each) for each in _items(call)])) is not None
    ]
    apart = all(one.end <= other.start for one, other in pairwise(calls))
    inside = any(edit.start < each.end and each.start < edit.end for each in calls)
    return (edit, edited(text, sorted([edit, *calls]))) if calls and apart and not inside else None


def _listed(listed: Node, items: Sequence[Node], text: str, after: Sequence[str]) -> Edit:
    """The edit of a list that gives it these items, with everything between those that stay in place."""
    before = [_text(text, each) for each in items]
    if len(after) < len(before):
        start, end = (items[-2].end_byte if len(items) > 1 else listed.start_byte + 2), items[-1].end_byte
        return Edit(start // 2, end // 2, "")
    if len(after) > len(before):
        at = items[-1].end_byte if items else listed.start_byte + 2
        return Edit(at // 2, at // 2, (", " if items else "") + after[-1])
    first, last = items[-2], items[-1]
    between = text[first.end_byte // 2 : last.start_byte // 2]
    return Edit(first.start_byte // 2, last.end_byte // 2, f"{after[-2]}{between}{after[-1]}")


def _tree(path: Path, text: str) -> Tree | None:
    grammar = grammar_of(None, str(path))
    return None if grammar is None else parse(text, grammar, _SECONDS)


def _at(tree: Tree, offset: int) -> Node:
    found = tree.root_node.descendant_for_byte_range(2 * offset, 2 * offset + 2)
    return tree.root_node if found is None else found


def _arguments(name: Node) -> Node | None:
    """The arguments of the call that a name is the callee of."""
    callee, parent = name, name.parent
    if parent is not None and parent.type in {"attribute", "member_expression"}:
        callee, parent = parent, parent.parent
    if parent is None or parent.type not in {"call", "call_expression"}:
        return None
    return parent.child_by_field_name("arguments") if parent.child_by_field_name("function") == callee else None


def _items(listed: Node) -> list[Node]:
    return [each for each in listed.named_children if each.type != "comment"]


def _text(text: str, node: Node) -> str:
    return text[node.start_byte // 2 : node.end_byte // 2]
