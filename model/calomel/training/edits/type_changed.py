"""A type changed: where a name is declared first, then at every other declaration of the same name and type."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Final

from tree_sitter import Node

from calomel.training.edits.source import Source
from calomel.training.edits.story import REACH, Change, Story, story_of
from calomel.training.edits.types import other_type

_MOST_PLACES: Final = 16
_DECLARATIONS: Final = {
    "python": ("typed_parameter", "typed_default_parameter", "assignment"),
    "typescript": (
        "required_parameter", "optional_parameter", "property_signature", "public_field_definition",
        "variable_declarator",
    ),
    "go": ("parameter_declaration", "field_declaration", "var_spec"),
    "rust": ("parameter", "field_declaration", "let_declaration"),
}  # fmt: skip
# Where a type is defined rather than used: such a place comes first.
_FIELDS: Final = ("property_signature", "public_field_definition", "field_declaration", "assignment")
# Types that somebody else calls with.
_FIXED: Final = frozenset({
    "context.Context", "*testing.T", "*testing.B", "*http.Request", "http.ResponseWriter", "*cobra.Command", "Self",
    "&mut Context<'_>", "&mut fmt::Formatter<'_>", "&mut Criterion", "&mut Formatter<'_>",
})  # fmt: skip
_RETURNS: Final = {
    "python": "function_definition", "typescript": "method_definition", "go": "function_declaration",
    "rust": "function_item",
}  # fmt: skip


def type_changed(source: Source, rng: random.Random) -> Story | None:
    """Change the type of a name at all its declarations in the file (Python, TypeScript, Go, Rust).

    A default that no longer fits changes with it, and so does the result of a function that is called like the name.
    """
    groups = _groups(source)
    wanted = [key for key, nodes in groups.items() if 2 <= len(nodes) <= _MOST_PLACES]  # noqa: PLR2004
    rng.shuffle(wanted)
    for name, kind in wanted:
        made = other_type(source.language, kind, rng)
        if made is None or (made.startswith("...") and source.language == "go"):
            continue
        first, *rest = sorted(groups[name, kind], key=lambda pair: (pair[0].type not in _FIELDS, pair[0].start_byte))
        nodes = [first, *sorted(rest, key=lambda pair: pair[0].start_byte)]
        if max(node.end_byte for node, _ in nodes) - min(node.start_byte for node, _ in nodes) > REACH:
            continue
        edits: list[Change] = []
        for declaration, annotation in nodes:
            edits += _edits(source, declaration, annotation, made)
        story = story_of("type_changed", source, edits)
        if story is not None:
            return story
    return None


def _groups(source: Source) -> dict[tuple[str, str], list[tuple[Node, Node]]]:
    """Declarations and the nodes of their types, by the name declared and what the type reads."""
    found: dict[tuple[str, str], list[tuple[Node, Node]]] = {}
    for node in source.walk(*_DECLARATIONS.get(source.language, ())):
        annotation = node.child_by_field_name("type")
        if annotation is None or _is_receiver(node) or source.slice(annotation) in _FIXED:
            continue
        if annotation.type == "type_annotation":
            annotation = annotation.named_children[-1]
        for name in _names(source, node):
            found.setdefault((name, source.slice(annotation)), []).append((node, annotation))
    for node in source.walk(_RETURNS[source.language]) if source.language in _RETURNS else ():
        name_node = node.child_by_field_name("name")
        returns = node.child_by_field_name("return_type") or node.child_by_field_name("result")
        if name_node is None or returns is None:
            continue
        if returns.type == "type_annotation":
            returns = returns.named_children[-1]
        key = (re.sub(r"^(get_?|Get)(?=[\w])", "", source.slice(name_node)), source.slice(returns))
        key = next((known for known in (key, (key[0][:1].lower() + key[0][1:], key[1])) if known in found), key)
        if key in found:
            found[key].append((node, returns))
    return found


def _is_receiver(node: Node) -> bool:
    above = None if node.parent is None else node.parent.parent
    return (
        above is not None
        and above.type == "method_declaration"
        and above.child_by_field_name("receiver") == node.parent
    )


def _names(source: Source, node: Node) -> Sequence[str]:
    if node.type == "typed_parameter":
        return [source.slice(node.children[0])] if node.children[0].type == "identifier" else []
    if source.language == "go":
        names = node.children_by_field_name("name")
        return [source.slice(name) for name in names] if len(names) == 1 else []
    for field in ("name", "pattern", "left"):
        name = node.child_by_field_name(field)
        if name is not None:
            if name.type == "attribute":
                name = name.named_children[-1]
            return [source.slice(name)] if name.type.endswith("identifier") else []
    return []


def _edits(source: Source, declaration: Node, annotation: Node, made: str) -> list[Change]:
    edits = [Change(*source.span(annotation), made)]
    value = declaration.child_by_field_name("value") or declaration.child_by_field_name("right")
    if value is not None:
        fitting = _value(source.language, source.slice(value), made)
        if fitting is not None:
            edits.append(Change(*source.span(value), fitting))
    return edits


def _value(language: str, value: str, made: str) -> str | None:
    """The same default for the other type, where it is written otherwise; None where it can stay."""
    if re.fullmatch(r"-?\d+", value):
        fractions = ("float", "f64", "f32") if language in ("python", "rust") else ()
        endings = dict.fromkeys(fractions, f"{value}.0") | {"bigint": f"{value}n"}
        return (endings | {"str": f'"{value}"', "string": f'"{value}"'}).get(made)
    if made in ("int", "i64", "u64") and re.fullmatch(r"-?\d+\.0", value):
        return value[:-2]
    if language == "python" and made == "bytes" and re.fullmatch(r"""(["'])[\x20-\x7e]*\1""", value):
        return f"b{value}"
    if language == "python" and made == "str" and re.fullmatch(r"""b(["'])[\x20-\x7e]*\1""", value):
        return value[1:]
    return None
