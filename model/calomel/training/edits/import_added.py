"""Code uses a name that the file does not know yet; then the name is imported."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

from tree_sitter import Node

from calomel.training.edits.restored import restored
from calomel.training.edits.source import Source
from calomel.training.edits.statements import line_removal
from calomel.training.edits.story import Change, Story
from calomel.training.edits.units import item_removal, unit_changes

_MOST_USES: Final = 3
_TRIES: Final = 12


def import_added(source: Source, rng: random.Random) -> Story | None:
    """The use of a name first, then its import. Python, TypeScript, JavaScript, Go, Rust."""
    found = list(_imports(source))
    for name, import_change in rng.sample(found, min(_TRIES, len(found))):
        uses = [
            node
            for node in source.identifiers(name)
            if not import_change.start <= source.span(node)[0] < import_change.end
        ]
        if not 0 < len(uses) <= _MOST_USES or (source.language == "go" and not all(map(_is_package, uses))):
            continue
        if len(re.findall(rf"\b{re.escape(name)}\b", source.text)) > len(uses) + 3:
            continue
        changes = unit_changes(source, uses, name)
        if changes is None:
            continue
        story = restored("import_added", source, [*changes, import_change])
        if story is not None:
            return story
    return None


def _is_package(node: Node) -> bool:
    return node.parent is not None and node.parent.type in {"selector_expression", "qualified_type"}


def _imports(source: Source) -> Iterator[tuple[str, Change]]:
    """Imported names, and the change that takes the import out."""
    kinds = {
        "python": ("import_statement", "import_from_statement"),
        "typescript": ("import_statement",),
        "javascript": ("import_statement",),
        "go": ("import_spec",),
        "rust": ("use_declaration",),
    }[source.language]
    for node in source.walk(*kinds):
        start, end = source.span(node)
        if source.text[source.line_start(start) : start].strip():
            continue
        whole = line_removal(source, start, end)
        if source.language == "go":
            path = source.slice(node).strip('"')
            name = re.sub(r"^v\d+$", "", path.rpartition("/")[2])
            if '"' not in path and name.isidentifier():
                yield name, whole
            continue
        items = list(_items(source, node))
        if len(items) == 1:
            yield source.slice(items[0][1]), whole
        else:
            for item, name_node in items:
                change = item_removal(source, item)
                if change is not None:
                    yield source.slice(name_node), change


def _items(source: Source, node: Node) -> Iterator[tuple[Node, Node]]:
    """What an import names, and the name by which the file knows it."""
    if source.language == "python":
        for child in node.children_by_field_name("name"):
            name = child.child_by_field_name("alias") or child
            if "." not in source.slice(name):
                yield child, name
    elif source.language == "rust":
        argument = node.child_by_field_name("argument")
        if argument is not None:
            yield from _use(argument)
    else:
        for clause in node.named_children:
            if clause.type == "import_clause":
                for child in clause.named_children:
                    yield from _clause(child)


def _clause(node: Node) -> Iterator[tuple[Node, Node]]:
    if node.type == "identifier":
        yield node, node
    elif node.type == "namespace_import":
        yield node, node.named_children[0]
    elif node.type == "named_imports":
        for each in node.named_children:
            name = each.child_by_field_name("alias") or each.child_by_field_name("name")
            if name is not None:
                yield each, name


def _use(node: Node) -> Iterator[tuple[Node, Node]]:
    if node.type == "scoped_use_list":
        inside = node.child_by_field_name("list")
        for child in () if inside is None else inside.named_children:
            yield from _use(child)
    elif node.type == "use_as_clause":
        alias = node.child_by_field_name("alias")
        if alias is not None:
            yield node, alias
    elif node.type == "scoped_identifier":
        name = node.child_by_field_name("name")
        if name is not None:
            yield node, name
    elif node.type == "identifier":
        yield node, node
