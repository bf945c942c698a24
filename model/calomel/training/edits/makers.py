"""A function that waits, and so does whoever calls it; and all makers of stories, by kind."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from tree_sitter import Node

from calomel.training.edits.functions import Call, Function, call_sites, enclosing, functions
from calomel.training.edits.naming import WORDS
from calomel.training.edits.parameters import parameter_added, parameter_removed, parameters_reordered
from calomel.training.edits.rename import rename, typo_fixed
from calomel.training.edits.repeated import repeated_edit
from calomel.training.edits.source import Source
from calomel.training.edits.story import Change, Story, story_of

_MOST_FUNCTIONS: Final = 5
# What waits for something outside of the program: the functions that people make asynchronous.
_WAITS: Final = re.compile("|".join(WORDS["waits"].split()), re.IGNORECASE)
# Where `await x` needs brackets to be taken as one.
_TIGHT: Final = frozenset({
    "attribute", "subscript", "call", "member_expression", "subscript_expression", "call_expression",
    "non_null_expression",
})  # fmt: skip


def made_async(source: Source, rng: random.Random) -> Story | None:
    """Make a function asynchronous and await it (Python, TypeScript, JavaScript, Rust)."""
    found = [] if source.language == "go" else list(functions(source))
    rng.shuffle(found)
    found.sort(key=lambda each: _WAITS.match(each.name) is None)
    for function in found:
        story = story_of("made_async", source, _edits(source, function))
        if story is not None:
            return story
    return None


def _edits(source: Source, function: Function) -> list[Change]:
    """The function first, then its calls and the functions around them; nothing where one of them cannot wait."""
    edits = _definition(source, function)
    waiting = [function] if edits else []
    # More functions come as their calls are met.
    for current in waiting:
        sites = call_sites(source, current)
        if sites is None or (current is function and not sites) or len(waiting) > _MOST_FUNCTIONS:
            return []
        for call in sites:
            around = enclosing(source, call.name)
            if around is None or not _can_wait(call):
                return []
            if around not in waiting and not _is_async(source, around):
                definition = _definition(source, around)
                if not definition:
                    return []
                edits += definition
                waiting.append(around)
            edits.append(_await(source, call))
    return edits


def _is_async(source: Source, function: Function) -> bool:
    if source.language == "rust":
        return any("async" in source.slice(each) for each in function.node.children[:2])
    return any(child.type == "async" for child in function.node.children)


def _definition(source: Source, function: Function) -> list[Change]:
    """What makes the function itself asynchronous; nothing where it cannot be."""
    if not function.name or function.body is None or _is_async(source, function):
        return []
    if source.language == "python":
        return _python_definition(source, function)
    if source.language == "rust":
        return _rust_definition(source, function)
    return _script_definition(source, function)


def _inserted(source: Source, node: Node) -> Change:
    at = source.offset(node.start_byte)
    return Change(at, at, "async ")


def _python_definition(source: Source, function: Function) -> list[Change]:
    node = function.node
    decorated = node.parent is not None and node.parent.type == "decorated_definition"
    fixed = function.name.startswith(("__", "test", "visit_", "setUp", "tearDown")) or "yield" in source.slice(node)
    return [] if decorated or fixed else [_inserted(source, node)]


def _rust_definition(source: Source, function: Function) -> list[Change]:
    node = function.node
    around = None if node.parent is None else node.parent.parent
    if function.name == "main" or node.type != "function_item" or (around is not None and around.type == "trait_item"):
        return []
    # A test, for one, is run by somebody who would have to wait.
    if node.prev_sibling is not None and node.prev_sibling.type == "attribute_item":
        return []
    if any(child.type in ("function_modifiers", "extern_modifier") for child in node.children):
        return []
    return [_inserted(source, child) for child in node.children if child.type == "fn"]


def _script_definition(source: Source, function: Function) -> list[Change]:
    node, returns = function.node, function.returns
    fixed = not {"get", "set", "*"}.isdisjoint(child.type for child in node.children)
    if fixed or function.name == "constructor" or function.name_node is None:
        return []
    edits = [_inserted(source, function.name_node if node.type == "method_definition" else node)]
    if returns is not None:
        kind = returns.named_children[-1] if returns.type == "type_annotation" and returns.named_children else None
        if kind is None or source.slice(kind).startswith(("Promise", "Observable", "Iterable", "this")):
            return []
        edits.append(Change(*source.span(kind), f"Promise<{source.slice(kind)}>"))
    return edits


def _can_wait(call: Call) -> bool:
    parent = call.node.parent
    if parent is None or parent.type in ("await", "await_expression", "decorator", "new_expression"):
        return False
    around: Node | None = call.name
    while around is not None and around.type != "function_definition":
        if around.type in ("lambda", "decorator", "parameters", "async_block", "macro_definition"):
            return False
        around = around.parent
    return True


def _await(source: Source, call: Call) -> Change:
    start, end = source.span(call.node)
    if source.language == "rust":
        end = call.arguments.end + 1
        return Change(end, end, ".await")
    parent = call.node.parent
    if parent is not None and parent.type in _TIGHT and parent.children[0] == call.node:
        return Change(start, end, f"(await {source.text[start:end]})")
    return Change(start, start, "await ")


Maker = Callable[[Source, random.Random], Story | None]

# docs/decisions/016
MAKERS: Final[Mapping[str, Maker]] = MappingProxyType(
    {
        maker.__name__: maker
        for maker in (
            made_async,
            parameter_added,
            parameter_removed,
            parameters_reordered,
            rename,
            repeated_edit,
            typo_fixed,
        )
    }
)
