"""Parameters added, removed, reordered or named: the signature first, then the arguments of every call."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tree_sitter import Node

from calomel.training.edits.functions import Call, Function, Parameter, call_sites, enclosing, functions, spreads
from calomel.training.edits.naming import WORDS, Name, keywords, name_of, words_of
from calomel.training.edits.source import Source
from calomel.training.edits.story import Change, Story, story_of, undone

_TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class Addition:
    """A parameter to add: `default` stands in the signature, `value` is what a caller gives."""

    name: str
    type: str
    default: str
    value: str


def addition(source: Source, rng: random.Random, taken: Sequence[str]) -> Addition | None:
    """A parameter that a person could add to a function in this file; None where all that were tried are taken."""
    vocabulary = [word for word in words_of(source.names) if len(word) > 3 and word not in keywords(source.language)]  # noqa: PLR2004
    for _ in range(_TRIES):
        kind = rng.choice(tuple(WORDS["parameters"]))
        pattern = rng.choice(WORDS["parameters"][kind])
        if "{}" in pattern and not vocabulary:
            continue
        words = tuple(pattern.format(rng.choice(vocabulary) if vocabulary else "").split("_"))
        style: Literal["snake", "camel"] = "snake" if source.language in ("python", "rust") else "camel"
        name = Name(words, style).with_words(words)
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
    """The mark around strings that the file uses more often."""
    if source.language in ("go", "rust"):
        return '"'
    return "'" if source.text.count("'") > source.text.count('"') else '"'


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


def parameter_removed(source: Source, rng: random.Random) -> Story | None:
    """Take back a parameter that was added in vain (Python, TypeScript, JavaScript, Go, Rust)."""
    story = parameter_added(source, rng)
    if story is None:
        return None
    text, back = undone(story)
    return story_of("parameter_removed", source.with_text(text), back)


_SWAP: Final = 0.6


def parameters_reordered(source: Source, rng: random.Random) -> Story | None:
    """Put the parameters of a function in another order (Python, TypeScript, JavaScript, Go, Rust)."""
    found = [each for each in functions(source) if each.name and each.list is not None and len(each.plain) > 1]
    rng.shuffle(found)
    for function in found:
        free = [index for index, each in enumerate(function.plain) if _is_free(each)]
        if len(free) < 2:  # noqa: PLR2004
            continue
        sites = call_sites(source, function)
        if not sites or len(sites) > _MOST_CALLS:
            continue
        order = _order(rng, len(function.plain), free)
        story = _reordered(source, function, sites, order)
        if story is not None:
            return story
    return None


def _is_free(parameter: Parameter) -> bool:
    """Whether a parameter can change places: a plain one that callers must give."""
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


def _reordered(source: Source, function: Function, sites: tuple[Call, ...], order: tuple[int, ...]) -> Story | None:
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


_MOST_NAMED_CALLS: Final = 12
_WIDTH: Final = 100
_KEEP_FIRST: Final = 0.5


def options_object(source: Source, rng: random.Random) -> Story | None:
    """Let callers name what they give: keywords in Python, an object in TypeScript and JavaScript."""
    if source.language in ("go", "rust"):
        return None
    found = [each for each in functions(source) if each.name and each.list is not None and len(each.plain) > 1]
    rng.shuffle(found)
    for function in found:
        if any(each.role not in ("plain", "self") for each in function.parameters) or function.body is None:
            continue
        sites = call_sites(source, function)
        if not sites or len(sites) > _MOST_NAMED_CALLS or any(spreads(call) for call in sites):
            continue
        count = len(function.plain)
        keep = 1 if count > 2 and rng.random() < _KEEP_FIRST else 0  # noqa: PLR2004
        if source.language == "python":
            edits = _keywords(source, function, sites, rng.randrange(count) if count > 1 else 0)
        else:
            edits = _object(source, function, sites, keep)
        story = story_of("options_object", source, edits or ())
        if story is not None:
            return story
    return None


def _keywords(source: Source, function: Function, sites: tuple[Call, ...], keep: int) -> list[Change] | None:
    """Python: a star in the signature, and names at the calls for what stands behind it."""
    assert function.list is not None  # noqa: S101
    before = len(function.parameters) - len(function.plain)
    edits = [function.list.insert(before + keep, "*")]
    for call in sites:
        texts = list(call.arguments.texts())
        changed = []
        for place, text in enumerate(texts):
            if re.match(r"\w+\s*=(?!=)", text):
                break
            if place >= len(function.plain):
                return None
            if place >= keep:
                texts[place] = f"{function.plain[place].name}={text}"
                changed.append(place)
        if changed:
            edits.append(_rewritten(source, call, texts, changed[0], changed[-1]))
    return edits if len(edits) > 1 else None


def _rewritten(source: Source, call: Call, texts: list[str], first: int, last: int) -> Change:
    items, written = call.arguments.items, ""
    for place in range(first, last + 1):
        behind = source.text[items[place][1] : items[place + 1][0]] if place < last else ""
        written += texts[place] + behind
    return Change(items[first][0], items[last][1], written)


def _object(source: Source, function: Function, sites: tuple[Call, ...], keep: int) -> list[Change] | None:
    """TypeScript and JavaScript: one object instead of the parameters from `keep` on."""
    assert function.list is not None  # noqa: S101
    before = len(function.parameters) - len(function.plain)
    taken = function.plain[keep:]
    typed = source.language == "typescript"
    if typed and any(each.type is None and each.default is None for each in taken):
        return None
    if any("modifier" in child.type for each in taken for child in each.node.children):
        return None
    items = function.list.items[before + keep :]
    if len(items) != len(taken):
        return None
    start, end = items[0][0], items[-1][1]
    edits = [Change(start, end, _signature(source, taken, start, typed=typed))]
    for call in sites:
        texts = call.arguments.texts()
        if not keep < len(texts) <= keep + len(taken):
            return None
        fields = [
            each.name if text == each.name else f"{each.name}: {text}"
            for each, text in zip(taken, texts[keep:], strict=False)
        ]
        first, last = call.arguments.items[keep][0], call.arguments.items[len(texts) - 1][1]
        edits.append(Change(first, last, "{ " + ", ".join(fields) + " }"))
    return edits


def _signature(source: Source, taken: tuple[Parameter, ...], start: int, *, typed: bool) -> str:
    names = [each.name if each.default is None else f"{each.name} = {source.slice(each.default)}" for each in taken]
    kinds = [
        f"{each.name}{'' if _must(each) else '?'}: {_kind(source, each)}" for each in taken
    ]  # fmt: skip
    line = "{ " + ", ".join(names) + " }"
    if typed:
        line += ": { " + "; ".join(kinds) + " }"
    begin = source.line_start(start)
    indent = source.indent(start)
    if start - begin + len(line) <= _WIDTH or name_of(taken[0].name) is None:
        return line
    step = "\t" if "\n\t" in source.text else "  " if re.search(r"^  \S", source.text, re.MULTILINE) else "    "
    deeper = "\n" + indent + step
    line = "{" + "".join(f"{deeper}{name}," for name in names) + "\n" + indent + "}"
    if typed:
        line += ": {" + "".join(f"{deeper}{kind};" for kind in kinds) + "\n" + indent + "}"
    return line


def _must(parameter: Parameter) -> bool:
    return parameter.default is None and parameter.node.type != "optional_parameter"


def _kind(source: Source, parameter: Parameter) -> str:
    if parameter.type is not None:
        return source.slice(parameter.type)
    value: Node | None = parameter.default
    known = {"number": "number", "string": "string", "true": "boolean", "false": "boolean"}
    return known.get("" if value is None else value.type, "unknown")
