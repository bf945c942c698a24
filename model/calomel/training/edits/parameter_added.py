"""A parameter added to a function: the signature first, then what describes and stores it, then the callers."""

from __future__ import annotations

import random
import re
from typing import Final

from calomel.training.edits import documentation
from calomel.training.edits.additions import Addition, addition
from calomel.training.edits.calls import Call, call_sites, spreads
from calomel.training.edits.functions import Function, enclosing, functions
from calomel.training.edits.source import Source
from calomel.training.edits.story import Change, Story, story_of

_MOST_CALLS: Final = 16
_THREADED: Final = 0.5
_OPTIONAL: Final = 0.5
_BETWEEN: Final = 0.2
_GIVEN: Final = 0.7


def parameter_added(source: Source, rng: random.Random) -> Story | None:
    """Add a parameter and follow the calls (Python, TypeScript, JavaScript, Go, Rust)."""
    found = [each for each in functions(source) if each.name and each.list is not None]
    rng.shuffle(found)
    for function in found:
        if any(each.role in ("rest", "marker") or each.grouped for each in function.parameters):
            continue
        sites = call_sites(source, function)
        if sites and len(sites) <= _MOST_CALLS and not any(spreads(call) for call in sites):
            story = _story(source, rng, function, sites)
            if story is not None:
                return story
    return None


def _story(source: Source, rng: random.Random, function: Function, sites: tuple[Call, ...]) -> Story | None:
    assert function.list is not None  # noqa: S101
    inside = source.slice(function.node)
    threaded = _threaded(source, rng, function, sites, inside) if rng.random() < _THREADED else None
    taken = re.findall(r"\w+", inside)
    made = threaded or addition(source, rng, taken)
    if made is None:
        return None
    plain = function.plain
    has_default = [each.default is not None or each.node.type == "optional_parameter" for each in plain]
    optional = source.language not in ("go", "rust") and (
        (threaded is None and rng.random() < _OPTIONAL) or any(has_default)
    )
    if optional and not made.default:
        return None
    index = len(plain)
    if threaded is not None and source.language == "go" and made.type == "context.Context":
        index = 0
    elif not optional and len(plain) > 1 and rng.random() < _BETWEEN:
        index = rng.randrange(1, len(plain))
    edits = [
        function.list.insert(len(function.list.items) - len(plain) + index, _written(source, function, made, optional))
    ]
    if index and plain[index - 1].name:
        said = documentation.added(source, function, plain[index - 1].name, made.name, _about(made))
        edits += [said] if said is not None else []
    edits += _stored(source, function, made)
    given = False
    for call in sites:
        if optional and (given and rng.random() > _GIVEN):
            continue
        change = _argument(source, call, made, index, optional=optional)
        if change is None and not optional:
            return None
        if change is not None:
            given = True
            edits.append(change)
    return story_of("parameter_added", source, edits) if given else None


def _threaded(
    source: Source, rng: random.Random, function: Function, sites: tuple[Call, ...], inside: str
) -> Addition | None:
    """A parameter that every caller has already and can hand on."""
    common: dict[str, Addition] | None = None
    for call in sites:
        around = enclosing(source, call.node)
        if around is None or around.node == function.node:
            return None
        own: dict[str, Addition] = {}
        for each in around.plain:
            kind = "" if each.type is None else source.slice(each.type)
            # A type parameter of the caller has no meaning in the other function.
            if each.role == "plain" and not re.search(r"\b[A-Z]\b|impl |'", kind) and not each.grouped:
                own[each.name] = Addition(each.name, kind, "", each.name)
        common = own if common is None else {name: each for name, each in common.items() if own.get(name) == each}
    wanted = [each for each in (common or {}).values() if not re.search(rf"\b{re.escape(each.name)}\b", inside)]
    return rng.choice(wanted) if wanted else None


def _written(source: Source, function: Function, made: Addition, optional: bool) -> str:  # noqa: FBT001
    kind = made.type
    if source.language == "go":
        return f"{made.name} {kind}"
    if source.language == "javascript":
        kind = ""
    elif source.language == "python" and not any(each.type is not None for each in function.plain):
        kind = kind if function.returns is not None and not function.plain else ""
    if kind:
        return f"{made.name}: {kind} = {made.default}" if optional else f"{made.name}: {kind}"
    if optional:
        return f"{made.name}={made.default}" if source.language == "python" else f"{made.name} = {made.default}"
    return made.name


def _about(made: Addition) -> str:
    words = re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", made.name).lower()
    return f"whether to {words}." if made.default in ("True", "False", "true", "false") else f"the {words}."


def _stored(source: Source, function: Function, made: Addition) -> list[Change]:
    """What a constructor keeps: one more `self.name = name` behind the others."""
    if function.body is None or function.name not in ("__init__", "constructor"):
        return []
    start, end = source.span(function.body)
    pattern = re.compile(r"^(?P<lead>[ \t]*(?:self|this)\.)(?P<name>\w+) = (?P=name)(?P<end>;?)$", re.MULTILINE)
    last = None
    for last in pattern.finditer(source.text, source.line_start(start), end):  # noqa: B007
        pass
    if last is None:
        return []
    return [Change(last.end(), last.end(), f"\n{last['lead']}{made.name} = {made.name}{last['end']}")]


def _argument(source: Source, call: Call, made: Addition, index: int, *, optional: bool) -> Change | None:
    around = enclosing(source, call.node)
    visible = around is not None and any(each.name == made.name for each in around.parameters)
    value = made.name if visible else made.value
    texts = call.arguments.texts()
    by_name = source.language == "python" and (optional or any(re.match(r"\w+\s*=[^=]", text) for text in texts))
    if by_name:
        return call.arguments.insert(len(texts), f"{made.name}={value}")
    if index > len(texts) or (optional and index != len(texts)):
        return None
    return call.arguments.insert(index, value)
