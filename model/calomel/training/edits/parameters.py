"""Parameters added or removed: the signature first, then the arguments of every call."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calomel.prompts.parts import Edit
from calomel.training.edits.functions import Call, Function, call_sites, enclosing, functions, spreads
from calomel.training.edits.naming import WORDS, joined, keywords, words_of
from calomel.training.edits.source import Source
from calomel.training.edits.story import Story, story_of, taken_back

_TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class Addition:
    """A parameter to add: `default` is for the signature, `value` for a caller."""

    name: str
    type: str
    default: str
    value: str


def addition(source: Source, rng: random.Random, taken: Sequence[str]) -> Addition | None:
    """A parameter that a person could add to a function in this file; None if all that were tried are taken."""
    vocabulary = [word for word in words_of(source.names) if len(word) > 3 and word not in keywords(source.language)]  # noqa: PLR2004
    for _ in range(_TRIES):
        kind = rng.choice(tuple(WORDS["parameters"]))
        pattern = rng.choice(WORDS["parameters"][kind])
        if "{}" in pattern and not vocabulary:
            continue
        words = tuple(pattern.format(rng.choice(vocabulary) if vocabulary else "").split("_"))
        name = joined(words, "name", camel=source.language not in ("python", "rust"))
        if name in taken or name in keywords(source.language) or len(set(words)) < len(words):
            continue
        default, value = _values(source, rng, kind)
        return Addition(name, WORDS["holds"][source.language][kind], default, value)
    return None


def _values(source: Source, rng: random.Random, kind: str) -> tuple[str, str]:
    if kind == "flag":
        words = ("True", "False") if source.language == "python" else ("true", "false")
        return words if rng.random() < 0.3 else (words[1], words[0])  # noqa: PLR2004
    first, second = rng.sample(WORDS["values"][kind], 2)
    if kind == "text":
        mark = quote(source)
        return f"{mark}{first}{mark}", f"{mark}{second}{mark}"
    return first, second


def quote(source: Source) -> str:
    """The quotation mark that the file uses more often."""
    if source.language in ("go", "rust"):
        return '"'
    return "'" if source.text.count("'") > source.text.count('"') else '"'


_MOST_CALLS: Final = 16
_THREADED: Final = 0.5
_OPTIONAL: Final = 0.5


def parameter_added(source: Source, rng: random.Random) -> Story | None:
    """Add a parameter and update the calls (Python, TypeScript, JavaScript, Go, Rust)."""
    found = [each for each in functions(source) if each.name and each.list is not None]
    rng.shuffle(found)
    for function in found:
        if any(each.role == "rest" or each.grouped for each in function.parameters):
            continue
        sites = call_sites(source, function)
        if sites and len(sites) <= _MOST_CALLS and not any(spreads(call) for call in sites):
            story = _added(source, rng, function, sites)
            if story is not None:
                return story
    return None


def _added(source: Source, rng: random.Random, function: Function, sites: tuple[Call, ...]) -> Story | None:
    assert function.list is not None  # noqa: S101
    inside = source.slice(function.node)
    threaded = _threaded(source, rng, function, sites, inside) if rng.random() < _THREADED else None
    taken = re.findall(r"\w+", inside)
    made = threaded or addition(source, rng, taken)
    if made is None:
        return None
    plain = function.plain
    has_default = any(each.default is not None or each.node.type == "optional_parameter" for each in plain)
    chosen = threaded is None and rng.random() < _OPTIONAL
    optional = source.language not in ("go", "rust") and (chosen or has_default)
    if optional and not made.default:
        return None
    # In Go a context comes first.
    index = 0 if made.type == "context.Context" else len(plain)
    receivers = len(function.list.items) - len(plain)
    edits = [function.list.insert(receivers + index, _written(source, function, made, optional))]
    for call in sites:
        change = _argument(source, call, made, index, optional=optional)
        if change is None:
            return None
        edits.append(change)
    return story_of("parameter_added", source, edits)


def _threaded(
    source: Source, rng: random.Random, function: Function, sites: tuple[Call, ...], inside: str
) -> Addition | None:
    """A parameter that every caller already has and can pass on."""
    shared: set[tuple[str, str]] | None = None
    for call in sites:
        around = enclosing(source, call.node)
        given = () if around is None or around.node == function.node else around.plain
        own = {
            (each.name, "" if each.type is None else source.slice(each.type))
            for each in given
            if each.role == "plain" and not each.grouped
        }
        shared = own if shared is None else shared & own
    # A type parameter of the caller has no meaning in the other function.
    wanted = [
        Addition(name, kind, "", name)
        for name, kind in sorted(shared or ())
        if not re.search(r"\b[A-Z]\b|impl |'", kind) and not re.search(rf"\b{re.escape(name)}\b", inside)
    ]
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


def _argument(source: Source, call: Call, made: Addition, index: int, *, optional: bool) -> Edit | None:
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


def parameter_removed(source: Source, rng: random.Random) -> Story | None:
    """Remove a parameter that was added needlessly (Python, TypeScript, JavaScript, Go, Rust)."""
    return taken_back("parameter_removed", source, parameter_added(source, rng))
