"""A misspelt name is put right, where it is defined and wherever it is used."""

from __future__ import annotations

import random
import re
from typing import Final

from calomel.training.edits.restored import restored
from calomel.training.edits.source import Source
from calomel.training.edits.story import Change, Story
from calomel.training.edits.typos import misspelt

_MOST: Final = 10
_SHORTEST: Final = 6
_SHORTEST_PART: Final = 5
_TRIES: Final = 20
# The slip is in a part of several names rather than in one name.
_PART_SHARE: Final = 0.35
_PART: Final = re.compile(r"[A-Z]?[a-z]{5,}|[A-Z]{5,}")
_DEFINES: Final = frozenset({
    "function_definition", "class_definition", "parameters", "typed_parameter", "default_parameter",
    "typed_default_parameter", "assignment", "function_declaration", "method_declaration", "method_definition",
    "variable_declarator", "required_parameter", "optional_parameter", "formal_parameters", "class_declaration",
    "interface_declaration", "type_alias_declaration", "property_signature", "public_field_definition",
    "enum_declaration", "parameter_declaration", "short_var_declaration", "type_spec", "field_declaration",
    "const_spec", "var_spec", "function_item", "struct_item", "enum_item", "trait_item", "let_declaration", "parameter",
    "const_item", "enum_variant", "static_item", "method_signature", "function_signature_item", "mod_item",
})  # fmt: skip
_IMPORTS: Final = re.compile(
    r"^\s*(?:import|from|use|pub use|package|mod|extern|export\s*[{*]|.*\brequire\().*$", re.MULTILINE
)


def typo_fixed(source: Source, rng: random.Random) -> Story | None:
    """A name of the file gets the spelling it has, everywhere. Python, TypeScript, JavaScript, Go, Rust."""
    imported = {word for line in _IMPORTS.findall(source.text) for word in re.findall(r"\w+", line)}
    defined = _defined(source, imported)
    names = list(defined)
    for name in rng.sample(names, min(_TRIES, len(names))):
        part = _part(name, rng) if rng.random() < _PART_SHARE else None
        places = _parts(source, part, imported) if part else _whole(source, name)
        wrong = misspelt(part or name, rng)
        if not places or wrong is None or len(places) > _MOST or (len(places) == 1 and rng.random() < 0.7):  # noqa: PLR2004
            continue
        if wrong.lower() in source.text.lower():
            continue
        removals = [Change(start, end, _in_case_of(source.text[start:end], wrong)) for start, end in places]
        first = next((at for at, (start, end) in enumerate(places) if start <= defined[name] < end), None)
        if first is None:
            first = next((at for at, (start, _) in enumerate(places) if start >= defined[name]), 0)
        removals.insert(0, removals.pop(first))
        story = restored("typo_fixed", source, removals)
        if story is not None:
            return story
    return None


def _defined(source: Source, imported: set[str]) -> dict[str, int]:
    """Long names that the file itself defines, and where it first does."""
    found: dict[str, int] = {}
    for name in source.names:
        if len(name) < _SHORTEST or not name.isascii() or name in imported or name.startswith("__"):
            continue
        for node in source.identifiers(name):
            parent = node.parent
            if parent is not None and parent.type in _DEFINES:
                value = parent.child_by_field_name("right") or parent.child_by_field_name("value")
                if node not in (value, parent.child_by_field_name("type"), parent.child_by_field_name("return_type")):
                    found[name] = source.span(node)[0]
                    break
    return found


def _part(name: str, rng: random.Random) -> str | None:
    parts = [part for part in _PART.findall(name) if len(part) >= _SHORTEST_PART and part != name]
    return rng.choice(parts) if parts else None


def _whole(source: Source, name: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(rf"\b{re.escape(name)}\b", source.text)]


def _parts(source: Source, part: str, imported: set[str]) -> list[tuple[int, int]]:
    """Where the part stands in names, whatever its case; none where it is also a part of a name from elsewhere."""
    if any(part.lower() in name.lower() for name in imported):
        return []
    places = []
    for match in re.finditer(re.escape(part), source.text, re.IGNORECASE):
        before = source.text[match.start() - 1 : match.start()]
        behind = source.text[match.end() : match.end() + 1]
        if match[0][0].islower() and before.isalpha():
            return []
        if behind.islower() and not match[0].isupper():
            return []
        if match[0] not in {part.lower(), part.upper(), part.capitalize()}:
            return []
        places.append(match.span())
    return places


def _in_case_of(word: str, wrong: str) -> str:
    if word.islower():
        return wrong.lower()
    if word.isupper():
        return wrong.upper()
    return wrong if word[1:].lower() != word[1:] else wrong.capitalize() if word[0].isupper() else wrong
