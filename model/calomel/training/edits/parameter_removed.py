"""A parameter removed: from the signature, from what the body does with it, from its description and the calls."""

from __future__ import annotations

import random
import re
from typing import Final

from tree_sitter import Node

from calomel.training.edits import documentation
from calomel.training.edits.calls import Call, call_sites, is_member, spreads
from calomel.training.edits.functions import Function, Parameter, functions
from calomel.training.edits.parameter_added import parameter_added
from calomel.training.edits.source import Source
from calomel.training.edits.story import Change, Story, story_of, undone

_ADDED: Final = 0.3
_MOST_CALLS: Final = 16
_MOST_USES: Final = 4
# What can stand wherever the parameter stood: a number, a string, a constant, a field of the object itself.
_PLAIN: Final = re.compile(
    r"""-?\d[\w.]*|"[^"\n]{0,30}"|'[^'\n]{0,30}'|None|True|False|true|false|null|nil|"""
    r"""(?:self|this)(?:\.\w+)+|[A-Z][A-Z0-9_]+"""
)
_TAKES: Final = frozenset({
    "argument_list", "arguments", "return_statement", "binary_operator", "binary_expression", "subscript", "list",
    "array", "literal_element", "field_initializer", "expression_list", "comparison_operator", "let_declaration",
})  # fmt: skip
_STATEMENTS: Final = ("expression_statement", "assert_statement")


def parameter_removed(source: Source, rng: random.Random) -> Story | None:
    """Remove a parameter that can be spared (Python, TypeScript, JavaScript, Go, Rust).

    It is unused, or every caller gives the same plain value, which then takes its place, or nobody gives it and its
    default does, or whole statements that use it go with it. Such are rare, so it may also be one that was added to
    the file just before: an unused one is what people remove most.
    """
    if rng.random() < _ADDED:
        return _added_before(source, rng)
    return _found(source, rng) or _added_before(source, rng)


def _added_before(source: Source, rng: random.Random) -> Story | None:
    story = parameter_added(source, rng)
    if story is None:
        return None
    text, back = undone(story)
    return story_of("parameter_removed", source.with_text(text), back)


def _found(source: Source, rng: random.Random) -> Story | None:
    found = [each for each in functions(source) if each.name and each.list is not None and each.body is not None]
    rng.shuffle(found)
    for function in found:
        if any(each.role in ("rest", "marker") or each.grouped for each in function.parameters):
            continue
        wanted = [each for each in function.plain if each.role == "plain"]
        if not wanted:
            continue
        sites = call_sites(source, function)
        if not sites or len(sites) > _MOST_CALLS or any(spreads(call) for call in sites):
            continue
        rng.shuffle(wanted)
        for parameter in wanted:
            story = _story(source, function, parameter, sites)
            if story is not None:
                return story
    return None


def _story(source: Source, function: Function, parameter: Parameter, sites: tuple[Call, ...]) -> Story | None:
    assert function.list is not None  # noqa: S101
    index = function.plain.index(parameter)
    given: list[tuple[Call, int, str]] = []
    for call in sites:
        place = argument_place(source, call, parameter.name, index)
        if place is not None:
            text = call.arguments.texts()[place]
            value = text.partition("=")[2].strip() if _is_keyword(source, text) else text
            given.append((call, place, value))
        elif parameter.default is None and parameter.node.type != "optional_parameter":
            return None
    default = "" if parameter.default is None else source.slice(parameter.default)
    values = {each for _, _, each in given} | ({default} if len(given) < len(sites) else set())
    body = _body(source, function, parameter, _common(function, sites, values))
    if body is None or (not given and not body):
        return None
    if any("modifier" in child.type for child in parameter.node.children):
        return None
    edits = [function.list.remove(parameter.item)]
    said = documentation.entry(source, function, parameter.name)
    if said is not None:
        edits.append(Change(said.start, said.end, ""))
    edits += body
    edits += [call.arguments.remove(place) for call, place, _ in given]
    return story_of("parameter_removed", source, edits)


def _common(function: Function, sites: tuple[Call, ...], values: set[str]) -> str | None:
    """The value that all callers give, when it means the same inside of the function."""
    if len(values) != 1:
        return None
    value = next(iter(values))
    if not _PLAIN.fullmatch(value):
        return None
    if value.startswith(("self.", "this.")):
        same = function.method and function.name not in ("__init__", "constructor")
        return value if same and all(call.receiver == value[:4] for call in sites) else None
    return value


def _is_keyword(source: Source, text: str) -> bool:
    return source.language == "python" and re.match(r"\w+\s*=(?!=)", text) is not None


def argument_place(source: Source, call: Call, name: str, index: int) -> int | None:
    """Which argument of a call gives a parameter, by its name or its place; None where none does."""
    texts = call.arguments.texts()
    for place, text in enumerate(texts):
        if _is_keyword(source, text):
            if text.partition("=")[0].strip() == name:
                return place
        elif place == index:
            return place
    return None


def _body(source: Source, function: Function, parameter: Parameter, value: str | None) -> list[Change] | None:
    """What becomes of the parameter's uses; None where they cannot be spared."""
    assert function.body is not None  # noqa: S101
    low, high = function.body.start_byte, function.body.end_byte
    uses = [node for node in source.identifiers(parameter.name) if low <= node.start_byte < high and _is_use(node)]
    if not uses:
        return []
    free = all(
        not _is_target(node)
        and node.type != "shorthand_property_identifier"
        and node.parent is not None
        and node.parent.type not in ("token_tree", "shorthand_field_initializer")
        for node in uses
    )
    if free and value is not None and len(uses) <= _MOST_USES and all(_takes_value(node, value) for node in uses):
        return [Change(*source.span(node), value) for node in uses]
    if value is not None and not value.startswith(("self.", "this.")):
        return _local(source, function, parameter.name, value)
    return _spared(source, function, uses) if len(uses) <= _MOST_USES else None


def _takes_value(node: Node, value: str) -> bool:
    """Whether a value reads well in the place of a name: a field always does, a number not as a condition."""
    parent = node.parent
    if parent is None or value.startswith(("self.", "this.")):
        return parent is not None
    if parent.type in ("assignment", "assignment_expression", "variable_declarator", "keyword_argument", "pair"):
        return parent.children[0] != node
    return parent.type in _TAKES


def _local(source: Source, function: Function, name: str, value: str) -> list[Change] | None:
    """A line at the top of the body that gives the name the value that it always had."""
    assert function.body is not None  # noqa: S101
    statements = [each for each in function.body.named_children if "comment" not in each.type]
    if statements and statements[0].type == "statement_list":
        statements = [each for each in statements[0].named_children if "comment" not in each.type]
    if statements and statements[0].children and statements[0].children[0].type == "string":
        del statements[0]
    if not statements or function.body.type not in ("block", "statement_block"):
        return None
    at = source.offset(statements[0].start_byte)
    start = source.line_start(at)
    if source.text[start:at].strip():
        return None
    end = ";" if source.language == "rust" or source.text.count(";\n") > source.text.count("\n") // 4 else ""
    line = {"python": f"{name} = {value}", "go": f"{name} := {value}", "rust": f"let {name} = {value};"}.get(
        source.language, f"const {name} = {value}{end}"
    )
    return [Change(start, start, f"{source.text[start:at]}{line}\n")]


def _is_use(node: Node) -> bool:
    before, parent = node.prev_sibling, node.parent
    if before is not None and before.type in (".", "?."):
        return False
    return not (
        parent is not None
        and parent.type in ("keyword_argument", "pair", "field_initializer", "keyed_element")
        and parent.children[0] == node
    )


def _is_target(node: Node) -> bool:
    parent = node.parent
    if parent is None:
        return True
    first = parent.children[0] == node
    return first and ("assignment" in parent.type or parent.type in ("update_expression", "inc_statement"))


def _spared(source: Source, function: Function, uses: list[Node]) -> list[Change] | None:
    """The statements that use it removed, as far as nothing else needs them."""
    edits: dict[int, Change] = {}
    assert function.body is not None  # noqa: S101
    for use in uses:
        node: Node | None = use
        while node is not None and node.type not in _STATEMENTS and node != function.body:
            node = node.parent
        if node is None or node == function.body or node.parent is None:
            return None
        only = len([each for each in node.parent.named_children if "comment" not in each.type]) == 1
        start, end = source.span(node)
        first, last = source.line_start(start), source.text.find("\n", end)
        whole = not source.text[first:start].strip() and source.text[end:last].strip() in ("", ";")
        if only or last < 0 or not whole or source.text.count("\n", start, end) > 2 or not _idle(source, node):  # noqa: PLR2004
            return None
        edits[first] = Change(first, last + 1, "")
    return [edits[start] for start in sorted(edits)]


def _idle(source: Source, node: Node) -> bool:
    """Whether a statement can go: a call for its effect, or a field kept that nothing else reads."""
    inner = node.named_children[0] if node.named_children else None
    if inner is None:
        return False
    if inner.type in ("assignment", "assignment_expression"):
        left, right = inner.children[0], inner.children[-1]
        name = left.named_children[-1] if left.type in ("attribute", "member_expression") else None
        if name is None or right.type != "identifier":
            return False
        return sum(is_member(each) for each in source.identifiers(source.slice(name))) == 1
    told = re.match(r"(self\.)?_?log|print|console|assert|\w+\.(debug|info)", source.slice(inner), re.IGNORECASE)
    return inner.type in ("call", "call_expression") and told is not None
