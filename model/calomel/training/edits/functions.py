"""The functions of a file, their parameters, and the calls of them, in one form for all languages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from tree_sitter import Node

from calomel.prompts.parts import Edit
from calomel.training.edits.naming import WORDS
from calomel.training.edits.source import Source


@dataclass(frozen=True, slots=True)
class Listing:
    """Where the items of a list are, in characters.

    Attributes:
        source: the file.
        start, end: after the opening bracket, and at the closing one.
        items: start and end of each, without commas and surrounding blanks.
    """

    source: Source
    start: int
    end: int
    items: tuple[tuple[int, int], ...]

    def texts(self) -> tuple[str, ...]:
        """The text of each item."""
        return tuple(self.source.text[start:end] for start, end in self.items)

    def insert(self, index: int, item: str) -> Edit:
        """Insert an item before the one at `index`; at the end with `index == len(items)`."""
        if not self.items:
            return Edit(self.start, self.end, item)
        if index < len(self.items):
            at = self.items[index][0]
            return Edit(at, at, f"{item},{self._blank(at)}")
        at = self.items[-1][1]
        between = self._blank(self.items[-1][0])
        comma = self.source.text.find(",", at, self.end)
        if comma >= 0 and "\n" in self.source.text[comma : self.end]:
            return Edit(comma + 1, comma + 1, f"{between}{item},")
        return Edit(at, at, f",{between}{item}")

    def _blank(self, at: int) -> str:
        """What separates the item at `at` from a comma before it: a space, or a new line if it begins one."""
        start = self.source.line_start(at)
        lead = self.source.text[start:at]
        return "\n" + lead if not lead.strip() else " "


def listing(source: Source, node: Node) -> Listing | None:
    """The list in a node that begins and ends with a bracket; None if it is not a list or contains comments."""
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


_METHODS: Final = (
    "method_definition", "method_signature", "abstract_method_signature", "method_declaration", "method_elem",
)  # fmt: skip
_OWNERS: Final = (
    "class_definition", "class_declaration", "abstract_class_declaration", "class", "impl_item", "trait_item",
)  # fmt: skip
Role = Literal["plain", "self", "rest", "pattern"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    Attributes:
        node: the whole of it (of Go's `a, b int`, the declaration of both).
        role: "self" for the receiver, "rest" for a variable number and Python's `*` and `/`, "pattern" for what is
            destructured or has no name.
        name: "" unless it is a plain name.
        name_node, type, default: their nodes, if present.
        grouped: whether it shares its type with another one.
    """

    node: Node
    role: Role
    name: str
    name_node: Node | None
    type: Node | None
    default: Node | None
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """One function, method or closure.

    Attributes:
        node: the whole of it, without decorators.
        name: "" if it has none.
        name_node: the name where it is defined.
        list: the parameter list; None if it has no brackets or contains comments.
        parameters: in order, including the receiver if it is in the same list.
        returns: the node of the result's type.
        body: None if there is only a signature.
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
        """The parameters that callers pass by position or by name."""
        return tuple(each for each in self.parameters if each.role != "self")


@lru_cache(maxsize=4)
def functions(source: Source) -> tuple[Function, ...]:
    """All functions of a file, by position, outer before inner."""
    return tuple(_function(source, node) for node in source.captured("function"))


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
    name_node, parent = node.child_by_field_name("name"), node.parent
    owner = _owner(source, node)
    method = bool(owner) or node.type in _METHODS
    if name_node is None and parent is not None and parent.type in ("variable_declarator", "public_field_definition"):
        name_node = parent.child_by_field_name("name")
        method = parent.type == "public_field_definition"
    if name_node is not None and name_node.type not in ("identifier", "property_identifier", "field_identifier"):
        name_node = None
    brackets = node.child_by_field_name("parameters")
    found = None if brackets is None else listing(source, brackets)
    return Function(
        node,
        _text(source, name_node),
        name_node,
        found,
        () if brackets is None or found is None else _parameters(source, brackets, method=method),
        node.child_by_field_name("return_type") or node.child_by_field_name("result"),
        node.child_by_field_name("body"),
        method,
        owner,
    )


def _owner(source: Source, node: Node) -> str:
    """The name of the class or type whose body contains a function."""
    body = node.parent
    if body is not None and body.type == "decorated_definition":
        body = body.parent
    around = None if body is None else body.parent
    if around is None or around.type not in _OWNERS:
        return ""
    named = around.child_by_field_name("name") or around.child_by_field_name("type")
    return _text(source, named).split("<")[0]


def _text(source: Source, node: Node | None) -> str:
    return "" if node is None else source.slice(node)


# Parts of the names of node types that stand for any number of arguments.
_REST: Final = ("separator", "splat", "rest", "variadic")


def _parameters(source: Source, brackets: Node, *, method: bool) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    for node in brackets.named_children:
        if node.type == "attribute_item":
            continue
        kind = node.child_by_field_name("type")
        if kind is not None and kind.type == "type_annotation":
            kind = kind.named_children[0]
        default = node.child_by_field_name("value") or node.child_by_field_name("right")
        names = node.children_by_field_name("name")
        written = node.child_by_field_name("pattern") or node.child_by_field_name("left") or node
        if node.type == "typed_parameter":
            written = node.children[0]
        for each in names or [written]:
            name = source.slice(each) if each.type == "identifier" else ""
            role: Role = "plain" if name else "pattern"
            if any(part in f"{node.type} {each.type}" for part in _REST):
                role, name = "rest", ""
            elif each.type in ("this", "self_parameter") or (method and not found and name in ("self", "cls")):
                role = "self"
            found.append(Parameter(node, role, name, each if name else None, kind, default, len(names) > 1))
    return tuple(found)


_ITSELF: Final = frozenset({"self", "this", "cls", "Self", "super()", "super"})
# Methods that many types have: a call of one through a variable may well be another type's.
COMMON: Final = frozenset(WORDS["common_methods"].split())
# Where a function's name may occur without a call and without having to change.
_MENTIONS: Final = frozenset({"export_specifier", "keyword_argument", "pair", "labeled_statement", "use_list"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    Attributes:
        node: the whole of it (in a Rust macro, where there is no such node, the name).
        name: the node of the called name, without what precedes it.
        receiver: what precedes the dot or the colons, or "".
        arguments: between the brackets.
    """

    node: Node
    name: Node
    receiver: str
    arguments: Listing


def spreads(call: Call) -> bool:
    """Whether an argument stands for any number of them."""
    return any(text.startswith(("*", "...", "..")) or text.endswith("...") for text in call.arguments.texts())


@lru_cache(maxsize=4)
def calls(source: Source) -> dict[str, tuple[Call, ...]]:
    """All calls of named functions, by name and position."""
    found: dict[str, list[Call]] = {}
    for node in source.captured("call"):
        callee = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        brackets = node.child_by_field_name("arguments")
        if callee is None or brackets is None or brackets.type == "generator_expression":
            continue
        if callee.type == "generic_function":
            callee = callee.child_by_field_name("function") or callee
        name, receiver = _parts(source, callee)
        items = listing(source, brackets)
        if name is not None and items is not None:
            found.setdefault(source.slice(name), []).append(Call(node, name, receiver, items))
    if source.language == "rust":
        for call in _in_macros(source):
            found.setdefault(source.slice(call.name), []).append(call)
    return {name: tuple(sorted(each, key=lambda call: call.name.start_byte)) for name, each in found.items()}


def _parts(source: Source, callee: Node) -> tuple[Node | None, str]:
    if callee.type == "identifier":
        return callee, ""
    for name_field, before in (("attribute", "object"), ("property", "object"), ("field", "operand"),
                               ("field", "value"), ("name", "path")):  # fmt: skip
        name, receiver = callee.child_by_field_name(name_field), callee.child_by_field_name(before)
        if name is not None and receiver is not None:
            return name, source.slice(receiver)
    return None, ""


def _in_macros(source: Source) -> list[Call]:
    found = []
    for tree in source.captured("macro"):
        name = tree.prev_sibling
        if name is None or name.type != "identifier" or tree.parent is None or tree.parent.type != "token_tree":
            continue
        items = listing(source, tree) if tree.children[0].type == "(" else None
        if items is None:
            continue
        mark = name.prev_sibling
        before = mark.prev_sibling if mark is not None and mark.type in (".", "::") else None
        found.append(Call(name, name, "" if before is None else source.slice(before), items))
    return found


def call_sites(source: Source, function: Function) -> tuple[Call, ...] | None:
    """The calls of a function in its file, by position; None if they cannot all be determined.

    That is so if the name has two meanings in the file, is passed around as a value, or is one that many types have.
    """
    if function.name_node is None or not function.name:
        return None
    name = function.name
    if name == "__init__" or (name == "constructor" and source.language in ("typescript", "javascript")):
        return _constructions(source, function)
    if is_promised(function) or name.startswith("__"):
        return None
    if sum(each.name == name for each in functions(source)) > 1:
        return None
    by_place = {call.name.start_byte: call for call in calls(source).get(name, ())}
    sites = []
    for node in source.identifiers(name):
        call = by_place.get(node.start_byte)
        if node == function.name_node or _means_other(node, call, function):
            continue
        if call is None or not _means(source, call, function):
            return None
        sites.append(call)
    return tuple(sites)


def _means_other(node: Node, call: Call | None, function: Function) -> bool:
    """Whether a place of the name is unaffected when the function changes."""
    if call is not None:
        return bool(call.receiver) and not function.method
    parent = node.parent
    if parent is not None and parent.type in _MENTIONS:
        return parent.child_by_field_name("value") != node
    return is_member(node) and not function.method


def _means(source: Source, call: Call, function: Function) -> bool:
    """Whether a call of the name is probably one of the function."""
    through_type = source.language == "rust" and call.receiver in (function.owner, "Self")
    return not function.method or through_type or is_own(source, call)


def is_promised(function: Function) -> bool:
    """Whether a trait, possibly defined elsewhere, determines a Rust method's signature."""
    above = function.node.parent
    around = None if above is None else above.parent
    return around is not None and around.type == "impl_item" and around.child_by_field_name("trait") is not None


def is_own(source: Source, call: Call) -> bool:
    """Whether a method called through an object is probably the one defined in this file.

    Through `self` and the like it is. Through a variable it may be, unless many types have such a method, or the caller
    has the same name: then it delegates to something else.
    """
    if call.receiver in _ITSELF and not call.receiver.startswith("super"):
        return True
    name = source.slice(call.name)
    if name in COMMON or not call.receiver.isidentifier() or _is_type(call.receiver) or call.receiver == "super":
        return False
    around = enclosing(source, call.name)
    return around is None or around.name != name


def _is_type(receiver: str) -> bool:
    """Whether a method is called through its type, so that the receiver is an argument."""
    return receiver[:1].isupper() and receiver.isidentifier() and not receiver.isupper()


def _constructions(source: Source, function: Function) -> tuple[Call, ...] | None:
    classes = sum(
        source.slice(name) == function.owner
        for node in source.captured("class")
        if (name := node.child_by_field_name("name")) is not None
    )
    if classes != 1 or not function.owner:
        return None
    # A subclass passes its arguments on: that is another story.
    for node in source.identifiers(function.owner):
        if node.parent is not None and node.parent.type in ("argument_list", "extends_clause", "class_heritage"):
            above = node.parent.parent
            if node.parent.type != "argument_list" or (above is not None and above.type == "class_definition"):
                return None
    return tuple(call for call in calls(source).get(function.owner, ()) if not call.receiver)


def is_member(node: Node) -> bool:
    """Whether a name comes after a dot."""
    before = node.prev_sibling
    return before is not None and before.type in (".", "?.")
