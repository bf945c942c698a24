"""The same edit at several places: small pieces on lines that are alike, and types wherever a name is declared."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from rapidfuzz import fuzz
from tree_sitter import Node

from calomel.training.edits.naming import WORDS
from calomel.training.edits.scene import is_comment, lines_of
from calomel.training.edits.source import Source
from calomel.training.edits.story import REACH, Change, Story, restored, story_of

_LEAST: Final = 3
_MOST: Final = 10
# Lines between two that belong together, and how alike they have to be, in percent.
_GAP: Final = 4
_ALIKE: Final = 55.0
_TRIES: Final = 25
# What a person puts into line after line: the piece is group 1.
_PIECES: Final = tuple(map(re.compile, WORDS["repeated"]["pieces"]))
# What stood there before instead, by what stands there now.
_OLDER: Final = WORDS["repeated"]["older"]
_NAMES: Final = WORDS["repeated"]["names"]
_TYPE_NAMES: Final = WORDS["repeated"]["types"]
_WORD: Final = re.compile(r"[^\W\d]\w*")


def repeated_edit(source: Source, rng: random.Random) -> Story | None:
    """One edit made on each of several lines, top to bottom. Python, TypeScript, JavaScript, Go, Rust."""
    groups = [group for group in _groups(source) if len(group) >= _LEAST]
    rng.shuffle(groups)
    tries = 0
    for group in groups:
        found = _edits(source, group)
        for removals in rng.sample(found, min(3, len(found))):
            tries += 1
            old = _older(source, removals, rng)
            story = None if old is None else restored("repeated_edit", source, old)
            if story is not None or tries > _TRIES:
                return story
    return None


def _groups(source: Source) -> list[list[tuple[int, int]]]:
    """Lines near each other that are alike, as spans."""
    groups: list[list[tuple[int, int]]] = []
    open_groups: list[tuple[int, str, list[tuple[int, int]]]] = []
    for number, (start, end) in enumerate(lines_of(source.text)):
        line = source.text[start:end]
        if len(line.strip()) < 8 or is_comment(line, source.language):  # noqa: PLR2004 (a bracket, a keyword)
            continue
        open_groups = [each for each in open_groups if number - each[0] <= _GAP]
        indent = len(line) - len(line.lstrip())
        for at, (_, latest, group) in enumerate(open_groups):
            same = len(latest) - len(latest.lstrip()) == indent
            if same and len(group) < _MOST and fuzz.ratio(latest.strip(), line.strip()) >= _ALIKE:
                group.append((start, end))
                open_groups[at] = (number, line, group)
                break
        else:
            group = [(start, end)]
            groups.append(group)
            open_groups.append((number, line, group))
    return groups


def _edits(source: Source, group: list[tuple[int, int]]) -> list[list[Change]]:
    """Pieces that most lines of a group have in common, each as edits that take it out everywhere."""
    found: defaultdict[tuple[int, str], list[Change]] = defaultdict(list)
    known = _NAMES | _TYPE_NAMES.get(source.language, {})
    for start, end in group:
        line = source.text[start:end]
        for number, pattern in enumerate(_PIECES):
            match = pattern.search(line)
            if match is not None:
                found[number, match[1]].append(Change(start + match.start(1), start + match.end(1), ""))
        for name in sorted(set(_WORD.findall(line)) & known.keys()):
            at = re.search(rf"(?<![\w'\"]){name}(?![\w'\"])", line)
            if at is not None:
                found[-1, name].append(Change(start + at.start(), start + at.end(), ""))
    return [edits for edits in found.values() if len(edits) >= max(_LEAST, len(group) - 1)]


def _older(source: Source, removals: list[Change], rng: random.Random) -> list[Change] | None:
    """What stood there before the edits; None where nothing sensible could."""
    now = source.text[removals[0].start : removals[0].end]
    choices = _NAMES.get(now) or _TYPE_NAMES.get(source.language, {}).get(now) or _OLDER.get(now, ("",))
    if not choices:
        return None
    older = rng.choice(choices)
    return [Change(each.start, each.end, older) for each in removals]


_MOST_PLACES: Final = 16
_DECLARATIONS: Final = {
    "python": ("typed_parameter", "typed_default_parameter", "assignment"),
    "typescript": (
        "required_parameter", "optional_parameter", "property_signature", "public_field_definition",
        "variable_declarator",
    ),
    "go": ("parameter_declaration", "field_declaration", "var_spec"),
    "rust": ("parameter", "field_declaration", "let_declaration"),
}  # fmt: skip
# Where a type is defined rather than used: such a place comes first.
_FIELDS: Final = ("property_signature", "public_field_definition", "field_declaration", "assignment")
# Types that somebody else calls with.
_FIXED: Final = frozenset({
    "context.Context", "*testing.T", "*testing.B", "*http.Request", "http.ResponseWriter", "*cobra.Command", "Self",
    "&mut Context<'_>", "&mut fmt::Formatter<'_>", "&mut Criterion", "&mut Formatter<'_>",
})  # fmt: skip
_RETURNS: Final = {
    "python": "function_definition", "typescript": "method_definition", "go": "function_declaration",
    "rust": "function_item",
}  # fmt: skip


def type_changed(source: Source, rng: random.Random) -> Story | None:
    """Change the type of a name at all its declarations in the file (Python, TypeScript, Go, Rust).

    A default that no longer fits changes with it, and so does the result of a function that is called like the name.
    """
    groups = _declarations(source)
    wanted = [key for key, nodes in groups.items() if 2 <= len(nodes) <= _MOST_PLACES]  # noqa: PLR2004
    rng.shuffle(wanted)
    for name, kind in wanted:
        made = other_type(source.language, kind, rng)
        if made is None or (made.startswith("...") and source.language == "go"):
            continue
        first, *rest = sorted(groups[name, kind], key=lambda pair: (pair[0].type not in _FIELDS, pair[0].start_byte))
        nodes = [first, *sorted(rest, key=lambda pair: pair[0].start_byte)]
        if max(node.end_byte for node, _ in nodes) - min(node.start_byte for node, _ in nodes) > REACH:
            continue
        edits: list[Change] = []
        for declaration, annotation in nodes:
            edits += _type_edits(source, declaration, annotation, made)
        story = story_of("type_changed", source, edits)
        if story is not None:
            return story
    return None


def _declarations(source: Source) -> dict[tuple[str, str], list[tuple[Node, Node]]]:
    """Declarations and the nodes of their types, by the name declared and what the type reads."""
    found: dict[tuple[str, str], list[tuple[Node, Node]]] = {}
    for node in source.walk(*_DECLARATIONS.get(source.language, ())):
        annotation = node.child_by_field_name("type")
        if annotation is None or _is_receiver(node) or source.slice(annotation) in _FIXED:
            continue
        if annotation.type == "type_annotation":
            annotation = annotation.named_children[-1]
        for name in _names(source, node):
            found.setdefault((name, source.slice(annotation)), []).append((node, annotation))
    for node in source.walk(_RETURNS[source.language]) if source.language in _RETURNS else ():
        name_node = node.child_by_field_name("name")
        returns = node.child_by_field_name("return_type") or node.child_by_field_name("result")
        if name_node is None or returns is None:
            continue
        if returns.type == "type_annotation":
            returns = returns.named_children[-1]
        key = (re.sub(r"^(get_?|Get)(?=[\w])", "", source.slice(name_node)), source.slice(returns))
        key = next((known for known in (key, (key[0][:1].lower() + key[0][1:], key[1])) if known in found), key)
        if key in found:
            found[key].append((node, returns))
    return found


def _is_receiver(node: Node) -> bool:
    above = None if node.parent is None else node.parent.parent
    return (
        above is not None
        and above.type == "method_declaration"
        and above.child_by_field_name("receiver") == node.parent
    )


def _names(source: Source, node: Node) -> Sequence[str]:
    if node.type == "typed_parameter":
        return [source.slice(node.children[0])] if node.children[0].type == "identifier" else []
    if source.language == "go":
        names = node.children_by_field_name("name")
        return [source.slice(name) for name in names] if len(names) == 1 else []
    for field in ("name", "pattern", "left"):
        name = node.child_by_field_name(field)
        if name is not None:
            if name.type == "attribute":
                name = name.named_children[-1]
            return [source.slice(name)] if name.type.endswith("identifier") else []
    return []


def _type_edits(source: Source, declaration: Node, annotation: Node, made: str) -> list[Change]:
    edits = [Change(*source.span(annotation), made)]
    value = declaration.child_by_field_name("value") or declaration.child_by_field_name("right")
    if value is not None:
        fitting = _value(source.language, source.slice(value), made)
        if fitting is not None:
            edits.append(Change(*source.span(value), fitting))
    return edits


def _value(language: str, value: str, made: str) -> str | None:
    """The same default for the other type, where it is written otherwise; None where it can stay."""
    if re.fullmatch(r"-?\d+", value):
        fractions = ("float", "f64", "f32") if language in ("python", "rust") else ()
        endings = dict.fromkeys(fractions, f"{value}.0") | {"bigint": f"{value}n"}
        return (endings | {"str": f'"{value}"', "string": f'"{value}"'}).get(made)
    if made in ("int", "i64", "u64") and re.fullmatch(r"-?\d+\.0", value):
        return value[:-2]
    if language == "python" and made == "bytes" and re.fullmatch(r"""(["'])[\x20-\x7e]*\1""", value):
        return f"b{value}"
    if language == "python" and made == "str" and re.fullmatch(r"""b(["'])[\x20-\x7e]*\1""", value):
        return value[1:]
    return None


def other_type(language: str, kind: str, rng: random.Random) -> str | None:
    """A type that can take the place of `kind`; None for one that nothing is known about."""
    table = WORDS["types"].get(language, {})
    if kind in table:
        return str(rng.choice(table[kind]))
    for pattern, others in WORDS["shapes"].get(language, {}).items():
        found = re.fullmatch(pattern, kind)
        if found is not None:
            made = found.expand(rng.choice(others))
            return made if made != kind else None
    return None
