"""Arguments by place become arguments by name: keywords in Python, an options object or struct elsewhere."""

from __future__ import annotations

import random
import re
from typing import Final

from tree_sitter import Node

from calomel.training.edits.calls import Call, call_sites, spreads
from calomel.training.edits.functions import Function, Parameter, functions
from calomel.training.edits.naming import name_of
from calomel.training.edits.options_struct import options_struct
from calomel.training.edits.source import Source
from calomel.training.edits.story import Change, Story, story_of

_MOST_CALLS: Final = 12
_WIDTH: Final = 100
_KEEP_FIRST: Final = 0.5


def options_object(source: Source, rng: random.Random) -> Story | None:
    """Let callers name what they give (Python, TypeScript, JavaScript, Go, Rust)."""
    found = [each for each in functions(source) if each.name and each.list is not None and len(each.plain) > 1]
    rng.shuffle(found)
    for function in found:
        if any(each.role not in ("plain", "self") for each in function.parameters) or function.body is None:
            continue
        sites = call_sites(source, function)
        if not sites or len(sites) > _MOST_CALLS or any(spreads(call) for call in sites):
            continue
        count = len(function.plain)
        keep = 1 if count > 2 and rng.random() < _KEEP_FIRST else 0  # noqa: PLR2004
        if source.language == "python":
            edits = _keywords(source, function, sites, rng.randrange(count) if count > 1 else 0)
        elif source.language in ("go", "rust"):
            edits = options_struct(source, function, sites)
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
