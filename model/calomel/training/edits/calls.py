"""The calls in a file, and which of them call a given function."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tree_sitter import Node

from calomel.training.edits.functions import Function, enclosing, functions
from calomel.training.edits.listing import Listing, listing
from calomel.training.edits.source import Source

_KINDS: Final = ("call", "call_expression", "new_expression")
_ITSELF: Final = frozenset({"self", "this", "cls", "Self", "super()", "super"})
# Methods that many a type has: a call of one through some variable may well be another type's.
_COMMON_WORDS: Final = (
    "get set add append push pop remove delete insert update clear close open read write send run start stop "
    "next map filter join split format find index count keys values items copy sort reverse len new from into "
    "clone call apply bind then catch forEach reduce slice splice concat indexOf includes has size test exec "
    "match replace trim toString valueOf String Error Len Less Swap Read Write Close Get Set Add Next Run "
    "Start Stop Name Type Size iter unwrap expect as_ref as_str to_string to_vec is_empty is_some is_none ok "
    "err fmt eq cmp hash drop deref default parse log info warn error debug connect init load save reset "
    "render emit on once off print dispose setup name type collect extend contains contains_key poll flush "
    "take lock"
)
COMMON: Final = frozenset(_COMMON_WORDS.split())
# Where a function's name may stand without being called, and nothing has to follow.
_MENTIONS: Final = frozenset({"export_specifier", "keyword_argument", "pair", "labeled_statement", "use_list"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    Attributes:
        node: the whole of it (in a Rust macro, where there is no such node, the name).
        name: the node of what is called, without what stands before it.
        receiver: what stands before the dot or the colons, or "".
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
    for node in source.walk(*_KINDS):
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
    for tree in source.walk("token_tree"):
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
    """The calls of a function in its file, by position; None where not all of them can be known.

    So it is where the name has two meanings in the file, is handed around as a value, or is one that many types have.
    """
    if function.name_node is None or not function.name:
        return None
    name = function.name
    if name == "__init__" or (name == "constructor" and source.language in ("typescript", "javascript")):
        return _constructions(source, function)
    if is_promised(function) or name.startswith("__"):
        return None
    by_place = {call.name.start_byte: call for call in calls(source).get(name, ())}
    qualified = source.language == "rust" and bool(function.owner)
    own = qualified and all(each.role != "self" for each in function.parameters)
    if not own and sum(each.name == name for each in functions(source)) > 1:
        return None
    sites = []
    for node in source.identifiers(name):
        if node == function.name_node:
            continue
        call = by_place.get(node.start_byte)
        means = _harmless(node, function) if call is None else _means(source, call, function, qualified=qualified)
        if means is None:
            return None
        if means and call is not None:
            sites.append(call)
    return tuple(sites)


def _means(source: Source, call: Call, function: Function, *, qualified: bool) -> bool | None:
    """Whether a call of that name is one of this function; None where that cannot be told."""
    if qualified and call.receiver in (function.owner, "Self"):
        return call.receiver != "Self" or _impl(source, call.name) == function.owner
    if not call.receiver:
        if not function.method:
            return True
        return False if source.language == "rust" else None
    if function.method and not (qualified and _is_path(call)):
        return is_own(source, call) or None
    return False


def is_promised(function: Function) -> bool:
    """Whether a trait that may stand elsewhere says what a Rust method looks like."""
    above = function.node.parent
    around = None if above is None else above.parent
    return around is not None and around.type == "impl_item" and around.child_by_field_name("trait") is not None


def is_own(source: Source, call: Call) -> bool:
    """Whether a method called through an object is believed to be the one defined in this file.

    It is through `self` and its like. Through a variable it may be, unless many types have such a method, or the caller
    has the same name: then it hands the call on to something else.
    """
    if call.receiver in _ITSELF and not call.receiver.startswith("super"):
        return True
    name = source.slice(call.name)
    if name in COMMON or not call.receiver.isidentifier() or _is_type(call.receiver) or call.receiver == "super":
        return False
    around = enclosing(source, call.name)
    return around is None or around.name != name


def _is_path(call: Call) -> bool:
    parent = call.name.parent
    return parent is not None and parent.type == "scoped_identifier"


def _is_type(receiver: str) -> bool:
    """Whether a method is called through its type, so that the receiver is an argument."""
    return receiver[:1].isupper() and receiver.isidentifier() and not receiver.isupper()


def _impl(source: Source, node: Node) -> str:
    around: Node | None = node
    while around is not None and around.type not in ("impl_item", "trait_item"):
        around = around.parent
    named = None if around is None else around.child_by_field_name("type") or around.child_by_field_name("name")
    return "" if named is None else source.slice(named).split("<")[0]


def _constructions(source: Source, function: Function) -> tuple[Call, ...] | None:
    classes = sum(
        source.slice(name) == function.owner
        for node in source.walk("class_definition", "class_declaration")
        if (name := node.child_by_field_name("name")) is not None
    )
    if classes != 1 or not function.owner:
        return None
    # A class made from this one hands its arguments on: that is another story.
    for node in source.identifiers(function.owner):
        if node.parent is not None and node.parent.type in ("argument_list", "extends_clause", "class_heritage"):
            above = node.parent.parent
            if node.parent.type != "argument_list" or (above is not None and above.type == "class_definition"):
                return None
    return tuple(call for call in calls(source).get(function.owner, ()) if not call.receiver)


def _harmless(node: Node, function: Function) -> bool | None:
    """True where a name that is not called needs nothing; None where it hands the function around."""
    parent = node.parent
    if parent is None:
        return None
    if parent.type in _MENTIONS:
        value = parent.child_by_field_name("value")
        return value is None or value != node or None
    return (is_member(node) and not function.method) or None


def is_member(node: Node) -> bool:
    """Whether a name stands behind a dot."""
    before = node.prev_sibling
    return before is not None and before.type in (".", "?.")
