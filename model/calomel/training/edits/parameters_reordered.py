"""Two or more parameters in another order: the signature first, then the arguments of every call."""

from __future__ import annotations

import random
import re
from typing import Final

from calomel.training.edits.calls import Call, call_sites, spreads
from calomel.training.edits.functions import Function, Parameter, functions
from calomel.training.edits.source import Source
from calomel.training.edits.story import Story, story_of

_MOST_CALLS: Final = 16
_SWAP: Final = 0.6


def parameters_reordered(source: Source, rng: random.Random) -> Story | None:
    """Put the parameters of a function in another order (Python, TypeScript, JavaScript, Go, Rust)."""
    found = [each for each in functions(source) if each.name and each.list is not None and len(each.plain) > 1]
    rng.shuffle(found)
    for function in found:
        free = _free(function)
        if len(free) < 2:  # noqa: PLR2004
            continue
        sites = call_sites(source, function)
        if not sites or len(sites) > _MOST_CALLS:
            continue
        order = _order(rng, len(function.plain), free)
        story = _story(source, function, sites, order)
        if story is not None:
            return story
    return None


def _free(function: Function) -> list[int]:
    """Which parameters can change places: plain ones that callers must give."""
    return [index for index, each in enumerate(function.plain) if _must(each)]


def _must(parameter: Parameter) -> bool:
    fits = parameter.role == "plain" and not parameter.grouped
    fits = fits and not any("modifier" in child.type for child in parameter.node.children)
    return fits and parameter.default is None and parameter.node.type != "optional_parameter"


def _order(rng: random.Random, count: int, free: list[int]) -> tuple[int, ...]:
    """Two swapped, or one moved to the front or the end of those that can move."""
    order = list(range(count))
    if len(free) == 2 or rng.random() < _SWAP:  # noqa: PLR2004
        place = rng.randrange(len(free) - 1)
        one, other = free[place], free[place + 1]
        order[one], order[other] = other, one
        return tuple(order)
    moved = free[:]
    if rng.random() < 0.5:  # noqa: PLR2004
        moved.insert(0, moved.pop(rng.randrange(1, len(moved))))
    else:
        moved.append(moved.pop(rng.randrange(len(moved) - 1)))
    for place, index in zip(free, moved, strict=True):
        order[place] = index
    return tuple(order)


def _story(source: Source, function: Function, sites: tuple[Call, ...], order: tuple[int, ...]) -> Story | None:
    assert function.list is not None  # noqa: S101
    before = len(function.parameters) - len(function.plain)
    if len(function.list.items) != len(function.parameters):
        return None
    last = max(place for place, index in enumerate(order) if place != index)
    edits = [function.list.arrange((*range(before), *(index + before for index in order)))]
    for call in sites:
        texts = call.arguments.texts()
        given = texts[: last + 1]
        if spreads(call):
            return None
        named = [re.match(r"\w+\s*=(?!=)", text) is not None for text in given] if source.language == "python" else []
        if all(named) and named:
            continue
        if any(named) or len(given) <= last:
            return None
        edits.append(call.arguments.arrange((*order[: last + 1], *range(last + 1, len(texts)))))
    return story_of("parameters_reordered", source, edits) if len(edits) > 1 else None
