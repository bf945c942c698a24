"""Go and Rust: a struct that holds what a function was given one by one."""

from __future__ import annotations

import re
from typing import Final

from tree_sitter import Node

from calomel.training.edits.calls import Call, is_member
from calomel.training.edits.functions import Function, Parameter
from calomel.training.edits.source import Source
from calomel.training.edits.story import Change

_ENDINGS: Final = ("Options", "Params", "Config")
_FIRST: Final = ("context.Context",)


def options_struct(source: Source, function: Function, sites: tuple[Call, ...]) -> list[Change] | None:
    """The struct, the signature, the body and every call; None where a type cannot stand in a struct as it is."""
    assert function.list is not None  # noqa: S101
    assert function.body is not None  # noqa: S101
    taken = [each for each in function.plain if each.type is None or source.slice(each.type) not in _FIRST]
    keep = len(function.plain) - len(taken)
    if len(taken) < 2 or keep > 1 or function.plain[keep:] != tuple(taken):  # noqa: PLR2004
        return None
    name = _name(source, function)
    generic = function.node.child_by_field_name("type_parameters") is not None
    if name is None or generic or any(each.type is None for each in taken):
        return None
    before = function.parameters.index(taken[0])
    if source.language == "go" and any(each.grouped for each in function.parameters[:before]):
        return None
    first, last = taken[0].item, taken[-1].item
    start, end = function.list.items[first][0], function.list.items[last][1]
    made = (_go if source.language == "go" else _rust)(source, function, taken, name)
    if made is None:
        return None
    struct, signature, body = made
    at = _above(source, function.node)
    edits = [Change(at, at, struct), Change(start, end, signature), *body]
    for call in sites:
        items, texts = call.arguments.items, call.arguments.texts()
        if len(texts) != keep + len(taken):
            return None
        edits.append(Change(items[keep][0], items[-1][1], _literal(source, taken, texts[keep:], name)))
    return edits


def _name(source: Source, function: Function) -> str | None:
    words = [word for word in re.split(r"_+", function.name) if word]
    whole = "".join(word[:1].upper() + word[1:] for word in words)
    if whole in ("New", "Init") and function.owner:
        whole = function.owner + whole
    if source.language == "go" and function.name[:1].islower():
        whole = whole[:1].lower() + whole[1:]
    return next((whole + ending for ending in _ENDINGS if whole + ending not in source.names), None)


def _above(source: Source, node: Node) -> int:
    """Where a declaration goes that a function needs: before it, what is said of it, and the `impl` around it."""
    while node.parent is not None and node.parent.parent is not None and node.parent.type != "mod_item":
        if node.parent.type == "declaration_list" and node.parent.parent.type == "mod_item":
            break
        node = node.parent
    while (before := node.prev_sibling) is not None and before.type in ("comment", "line_comment", "attribute_item"):
        if source.encoded[before.end_byte : node.start_byte].strip() or (
            source.encoded[before.end_byte : node.start_byte].count(b"\n") > 1
        ):
            break
        node = before
    return source.line_start(source.offset(node.start_byte))


_Made = tuple[str, str, list[Change]]


def _go(source: Source, function: Function, taken: list[Parameter], name: str) -> _Made | None:
    assert function.body is not None  # noqa: S101
    body: list[Change] = []
    holder = "opts"
    if holder in source.slice(function.node):
        return None
    fields = [_field(source, each) for each in taken]
    if len(set(fields)) < len(fields):
        return None
    for each, field in zip(taken, fields, strict=True):
        for node in source.identifiers(each.name):
            inside = function.body.start_byte <= node.start_byte < function.body.end_byte
            if not inside or is_member(node) or _is_key(node):
                continue
            if node.type != "identifier" or _is_declared(node):
                return None
            body.append(Change(*source.span(node), f"{holder}.{field}"))
    widest = max(len(field) for field in fields)
    lines = [
        f"\t{field.ljust(widest)} {source.slice(each.type)}\n"
        for each, field in zip(taken, fields, strict=True)
        if each.type is not None
    ]
    if any("\n" in line[:-1] for line in lines):
        return None
    struct = f"type {name} struct {{\n{''.join(lines)}}}\n\n"
    return struct, f"{holder} {name}", sorted(body, key=lambda change: change.start)


def _field(source: Source, parameter: Parameter) -> str:
    if source.language == "rust":
        return parameter.name
    name = parameter.name
    return name.upper() if name.lower() in ("id", "url", "uri") else name[:1].upper() + name[1:]


def _is_key(node: Node) -> bool:
    parent = node.parent
    above = None if parent is None else parent.parent
    return above is not None and above.type == "keyed_element" and above.children[0] == parent


def _is_declared(node: Node) -> bool:
    parent = node.parent
    if parent is not None and parent.type == "expression_list":
        above = parent.parent
        return (
            above is not None
            and above.type in ("short_var_declaration", "range_clause")
            and (above.child_by_field_name("left") == parent)
        )
    return (
        parent is not None
        and parent.type in ("parameter_declaration", "var_spec", "const_spec")
        and (node in parent.children_by_field_name("name"))
    )


def _rust(source: Source, function: Function, taken: list[Parameter], name: str) -> _Made | None:
    assert function.body is not None  # noqa: S101
    kinds = [source.slice(each.type) for each in taken if each.type is not None]
    # A lifetime or a trait in the place of a type would have to be named.
    if any(re.search(r"'|impl |dyn |\bSelf\b|\n|\b[A-Z]\b", kind) for kind in kinds):
        return None
    if any(child.type == "mutable_specifier" for each in taken for child in each.node.children):
        return None
    around = None if function.node.parent is None else function.node.parent.parent
    # A trait's method is promised elsewhere; a type parameter of the `impl` is not known above it.
    if around is not None and (
        around.type == "trait_item"
        or (around.type == "impl_item" and around.child_by_field_name("type_parameters") is not None)
    ):
        return None
    borrows = any("&" in kind for kind in kinds)
    shown = "pub " if any(child.type == "visibility_modifier" for child in function.node.children) else ""
    indent = source.indent(_above(source, function.node))
    lines = [
        f"{indent}    {shown}{each.name}: {kind.replace('&', chr(38) + chr(39) + 'a ')},\n"
        for each, kind in zip(taken, kinds, strict=True)
    ]
    generic = "<'a>" if borrows else ""
    struct = f"{indent}{shown}struct {name}{generic} {{\n{''.join(lines)}{indent}}}\n\n"
    statements = [each for each in function.body.named_children if "comment" not in each.type]
    if not statements:
        return None
    at = source.offset(statements[0].start_byte)
    start = source.line_start(at)
    if source.text[start:at].strip():
        return None
    names = ", ".join(each.name for each in taken)
    line = f"{source.text[start:at]}let {name} {{ {names} }} = options;\n"
    return struct, f"options: {name}{'<' + chr(39) + '_>' if borrows else ''}", [Change(start, start, line)]


def _literal(source: Source, taken: list[Parameter], texts: tuple[str, ...], name: str) -> str:
    fields = [
        text if source.language == "rust" and text == each.name else f"{_field(source, each)}: {text}"
        for each, text in zip(taken, texts, strict=True)
    ]
    inside = ", ".join(fields)
    return f"{name} {{ {inside} }}" if source.language == "rust" else f"{name}{{{inside}}}"
