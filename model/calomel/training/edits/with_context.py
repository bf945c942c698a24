"""Go: a context as the first parameter of a function, handed down by its callers."""

from __future__ import annotations

import random
from typing import Final

from calomel.training.edits.calls import Call, call_sites, spreads
from calomel.training.edits.functions import Function, functions
from calomel.training.edits.imports import imported
from calomel.training.edits.source import Source
from calomel.training.edits.story import Change

_MOST_FUNCTIONS: Final = 4
_MOST_CALLS: Final = 16
_KIND: Final = "context.Context"
_GOES_UP: Final = 0.7


def with_context(source: Source, function: Function, rng: random.Random) -> list[Change] | None:
    """The edits that give the function a context; None where it has one, or its calls cannot be known."""
    first = _definition(source, function)
    if first is None:
        return None
    edits = [first]
    if '"context"' not in source.text:
        line = imported(source, "context")
        if line is None:
            return None
        edits.append(line)
    waiting = [function]
    for current in waiting:
        sites = call_sites(source, current)
        if sites is None or (current is function and not sites) or any(spreads(call) for call in sites):
            return None
        for call in sites:
            around = _around(source, call)
            value = "context.Background()" if around is None else _at_hand(source, around)
            if value is None and around is not None:
                more = _from_above(source, around, waiting, rng)
                edits += more or []
                value = "context.TODO()" if more is None else "ctx"
            edits.append(call.arguments.insert(0, value or "ctx"))
        if len(edits) > _MOST_CALLS:
            return None
    return edits


def _from_above(source: Source, around: Function, waiting: list[Function], rng: random.Random) -> list[Change] | None:
    """Let the caller get a context, too: the edit, none where it has got one already; None where it shall not."""
    if any(each.node == around.node for each in waiting):
        return []
    if len(waiting) >= _MOST_FUNCTIONS or rng.random() > _GOES_UP or not call_sites(source, around):
        return None
    more = _definition(source, around)
    if more is None:
        return None
    waiting.append(around)
    return [more]


def _definition(source: Source, function: Function) -> Change | None:
    fixed = function.name in ("main", "init") or function.name.startswith(("Test", "Benchmark", "Example"))
    if function.list is None or fixed or function.node.type == "method_elem":
        return None
    if any(each.type is not None and source.slice(each.type) == _KIND for each in function.parameters):
        return None
    # Without names, or with a name taken, the list would have to be written anew.
    if any(each.role == "pattern" for each in function.parameters) or "ctx" in source.slice(function.node):
        return None
    return function.list.insert(0, f"ctx {_KIND}")


def _around(source: Source, call: Call) -> Function | None:
    """The named function around a call: a literal inside of it sees the same context."""
    found = None
    for function in functions(source):
        if function.node.start_byte > call.name.start_byte:
            break
        if function.node.end_byte >= call.name.end_byte and function.name_node is not None:
            found = function
    return found


def _at_hand(source: Source, function: Function) -> str | None:
    for each in function.parameters:
        kind = "" if each.type is None else source.slice(each.type)
        if kind == _KIND and each.name not in ("", "_"):
            return each.name
        if kind == "*http.Request" and each.name not in ("", "_"):
            return f"{each.name}.Context()"
    return None
