"""The functions of a file and their parameters, told alike for all languages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from tree_sitter import Node

from calomel.training.edits.listing import Listing, listing
from calomel.training.edits.source import Source

_SCRIPT: Final = (
    "function_declaration",
    "generator_function_declaration",
    "method_definition",
    "arrow_function",
    "function_expression",
    "method_signature",
    "function_signature",
    "abstract_method_signature",
)
_KINDS: Final = {
    "python": ("function_definition",),
    "typescript": _SCRIPT,
    "javascript": _SCRIPT,
    "go": ("function_declaration", "method_declaration", "method_elem", "func_literal"),
    "rust": ("function_item", "function_signature_item", "closure_expression"),
}
_SCRIPT_METHODS: Final = ("method_definition", "method_signature", "abstract_method_signature")
Role = Literal["plain", "self", "rest", "marker", "pattern"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    Attributes:
        node: the whole of it (of Go's `a, b int`, the declaration of both).
        role: "self" for the receiver, "rest" for a variable number, "marker" for Python's `*` and `/`, "pattern" for
            what is taken apart at once or has no name.
        name: "" unless it is a plain name.
        name_node, type, default: their nodes, where they are written.
        item: which item of the list it stands in.
        grouped: whether it shares its type with another one.
    """

    node: Node
    role: Role
    name: str
    name_node: Node | None
    type: Node | None
    default: Node | None
    item: int
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """One function, method or closure.

    Attributes:
        node: the whole of it, without decorators.
        name: "" where it has none.
        name_node: the name where it is defined.
        list: where the parameters stand; None where they have no brackets or hold comments.
        parameters: in order, the receiver included where it stands in the same list.
        returns: the node of the result's type.
        body: None where only a signature is there.
        method: whether it is called through an object or a type.
        owner: name of the class or type it belongs to, or "".
    """

    node: Node
    name: str
    name_node: Node | None
    list: Listing | None
    parameters: tuple[Parameter, ...]
    returns: Node | None
    body: Node | None
    method: bool
    owner: str

    @property
    def plain(self) -> tuple[Parameter, ...]:
        """The parameters that callers give by place or by name."""
        return tuple(each for each in self.parameters if each.role != "self")


@lru_cache(maxsize=4)
def functions(source: Source) -> tuple[Function, ...]:
    """All functions of a file, by position, outer before inner."""
    return tuple(_function(source, node) for node in source.walk(*_KINDS[source.language]))


def enclosing(source: Source, node: Node) -> Function | None:
    """The innermost function around a node (not the node itself)."""
    found = None
    for function in functions(source):
        if function.node.start_byte > node.start_byte:
            break
        if function.node.end_byte >= node.end_byte and function.node != node:
            found = function
    return found


def _function(source: Source, node: Node) -> Function:
    name_node = node.child_by_field_name("name")
    parent = node.parent
    method, owner = False, ""
    if source.language == "python":
        owner = _python_class(source, node)
        method = bool(owner)
    elif source.language in ("typescript", "javascript"):
        method = node.type in _SCRIPT_METHODS
        if node.type == "arrow_function" or (node.type == "function_expression" and name_node is None):
            name_node = None
            if parent is not None and parent.type in ("variable_declarator", "public_field_definition"):
                name_node = parent.child_by_field_name("name")
                method = parent.type == "public_field_definition"
        body = parent if parent is not None and parent.type == "class_body" else None
        if method and body is not None and body.parent is not None:
            owner = _text(source, body.parent.child_by_field_name("name"))
    elif source.language == "go":
        method = node.type in ("method_declaration", "method_elem")
    elif source.language == "rust" and parent is not None and parent.parent is not None:
        around = parent.parent
        if around.type in ("impl_item", "trait_item"):
            method = True
            named = around.child_by_field_name("type") or around.child_by_field_name("name")
            owner = _text(source, named).split("<")[0]
    brackets = node.child_by_field_name("parameters")
    if name_node is not None and name_node.type not in ("identifier", "property_identifier", "field_identifier"):
        name_node = None
    found = None if brackets is None else listing(source, brackets)
    parameters = () if brackets is None or found is None else _parameters(source, brackets, method)
    returns = node.child_by_field_name("return_type") or node.child_by_field_name("result")
    return Function(
        node,
        _text(source, name_node),
        name_node,
        found,
        parameters,
        returns,
        node.child_by_field_name("body"),
        method,
        owner,
    )


def _python_class(source: Source, node: Node) -> str:
    parent = node.parent
    if parent is not None and parent.type == "decorated_definition":
        parent = parent.parent
    if parent is None or parent.parent is None or parent.parent.type != "class_definition":
        return ""
    return _text(source, parent.parent.child_by_field_name("name"))


def _text(source: Source, node: Node | None) -> str:
    return "" if node is None else source.slice(node)


def _parameters(source: Source, brackets: Node, method: bool) -> tuple[Parameter, ...]:  # noqa: FBT001
    found: list[Parameter] = []
    item = 0
    for child in brackets.children[1:-1]:
        if child.type == ",":
            item += 1
        elif source.language == "python":
            found.append(_python(source, child, item, first=method and not found))
        elif source.language == "go":
            found.extend(_go(source, child, item))
        elif source.language == "rust":
            if child.type != "attribute_item":
                found.append(_rust(source, child, item))
        else:
            found.append(_script(source, child, item))
    return tuple(found)


def _python(source: Source, node: Node, item: int, *, first: bool) -> Parameter:
    name = node if node.type == "identifier" else node.child_by_field_name("name")
    if node.type == "typed_parameter" and node.children[0].type == "identifier":
        name = node.children[0]
    role: Role = "plain"
    if node.type.endswith("separator"):
        role, name = "marker", None
    elif name is None or name.type != "identifier":
        role, name = "rest", None
    elif first and source.slice(name) in ("self", "cls"):
        role = "self"
    return Parameter(
        node,
        role,
        _text(source, name),
        name,
        node.child_by_field_name("type"),
        node.child_by_field_name("value"),
        item,
    )


def _script(source: Source, node: Node, item: int) -> Parameter:
    pattern = node.child_by_field_name("pattern") or node.child_by_field_name("left") or node
    annotation = node.child_by_field_name("type")
    kind = annotation.named_children[0] if annotation is not None and annotation.named_children else None
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    role: Role = "plain" if pattern.type == "identifier" else "pattern"
    if pattern.type == "rest_pattern":
        role = "rest"
    elif pattern.type == "this":
        role = "self"
    name = pattern if role == "plain" else None
    return Parameter(node, role, _text(source, name), name, kind, value, item)


def _go(source: Source, node: Node, item: int) -> list[Parameter]:
    names = node.children_by_field_name("name")
    kind = node.child_by_field_name("type")
    if node.type == "variadic_parameter_declaration":
        return [Parameter(node, "rest", "", None, kind, None, item)]
    if not names:
        return [Parameter(node, "pattern", "", None, kind, None, item)]
    return [
        Parameter(node, "plain", source.slice(name), name, kind, None, item, grouped=len(names) > 1) for name in names
    ]


def _rust(source: Source, node: Node, item: int) -> Parameter:
    pattern = node.child_by_field_name("pattern") if node.type == "parameter" else node
    role: Role = "plain" if pattern is not None and pattern.type == "identifier" else "pattern"
    if node.type == "self_parameter":
        role = "self"
    elif node.type == "variadic_parameter":
        role = "rest"
    name = pattern if role == "plain" else None
    return Parameter(node, role, _text(source, name), name, node.child_by_field_name("type"), None, item)
