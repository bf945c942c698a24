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
    edits, waiting, made = [first], [function], {function.node.start_byte}
    missing = f'"{"context"}"' not in source.text
    if missing:
        line = imported(source, "context")
        if line is None:
            return None
        edits.append(line)
    for current in waiting:
        sites = call_sites(source, current)
        if not sites and current is function:
            return None
        if sites is None or any(spreads(call) for call in sites):
            return None
        for call in sites:
            around = _around(source, call)
            value = "context.Background()" if around is None else _at_hand(source, around)
            if value is None and around is not None:
                if around.node.start_byte in made:
                    value = "ctx"
                elif len(made) < _MOST_FUNCTIONS and rng.random() < _GOES_UP and call_sites(source, around):
                    more = _definition(source, around)
                    if more is not None:
                        edits.append(more)
                        made.add(around.node.start_byte)
                        waiting.append(around)
                        value = "ctx"
            edits.append(call.arguments.insert(0, value or "context.TODO()"))
        if len(edits) > _MOST_CALLS:
            return None
    return edits


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
