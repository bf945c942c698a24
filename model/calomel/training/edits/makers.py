"""What a change of one place asks of others: imports, and functions that wait; and all makers of stories, by kind."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from tree_sitter import Node

from calomel.training.edits.functions import Call, Function, call_sites, enclosing, functions
from calomel.training.edits.parameters import options_object, parameter_added, parameter_removed, parameters_reordered
from calomel.training.edits.rename import rename, typo_fixed
from calomel.training.edits.repeated import repeated_edit, type_changed
from calomel.training.edits.source import Source
from calomel.training.edits.story import Change, Story, restored, story_of

_MOST_USES: Final = 3
_TRIES: Final = 12
# What defines no name that later lines use.
_STATEMENTS: Final = (
    "expression_statement",
    "assignment_statement",
    "go_statement",
    "defer_statement",
    "field_declaration",
)


def import_added(source: Source, rng: random.Random) -> Story | None:
    """The use of a package first, then its import (Go)."""
    found = list(source.walk("import_spec")) if source.language == "go" else []
    for node in rng.sample(found, min(_TRIES, len(found))):
        path = source.slice(node).strip('"')
        name = re.sub(r"^v\d+$", "", path.rpartition("/")[2])
        uses = source.identifiers(name)
        if '"' in path or not 0 < len(uses) <= _MOST_USES:
            continue
        lines = {_line(source, use) for use in uses}
        removals = [*sorted(line for line in lines if line is not None), _whole_lines(source, *source.span(node))]
        story = None if None in lines else restored("import_added", source, [Change(*each, "") for each in removals])
        if story is not None:
            return story
    return None


def _line(source: Source, use: Node) -> tuple[int, int] | None:
    """The statement of one line around a use, with the line end before it; None where there is none."""
    node: Node | None = use
    while node is not None and node.type not in _STATEMENTS:
        node = node.parent
    if node is None or node.start_point[0] != node.end_point[0]:
        return None
    start, end = source.span(node)
    begin, stop = _whole_lines(source, start, end)
    return (begin, stop) if source.text[begin:stop].strip() == source.text[start:end] else None


def _whole_lines(source: Source, start: int, end: int) -> tuple[int, int]:
    """The lines of a span as one would have typed them: with the line end before them."""
    stop = source.text.find("\n", end)
    return max(0, source.line_start(start) - 1), len(source.text) if stop < 0 else stop


_MOST_FUNCTIONS: Final = 5
_MOST_CALLS: Final = 16
# What waits for something outside of the program: the functions that people make asynchronous.
_WAITS: Final = re.compile(
    r"read|write|load|save|fetch|get|send|request|open|connect|query|post|put|download|upload|exec|run|sync|sleep|wait|"
    r"list|find|call|process|start|stop|close|flush|render|build|handle|check|resolve",
    re.IGNORECASE,
)
_TESTS: Final = frozenset({"it", "test", "before", "after", "beforeEach", "afterEach", "beforeAll", "afterAll"})
# Where `await x` needs brackets to be taken as one.
_TIGHT: Final = {
    "attribute": "object", "subscript": "value", "call": "function", "member_expression": "object",
    "subscript_expression": "object", "call_expression": "function", "non_null_expression": "",
}  # fmt: skip


def made_async(source: Source, rng: random.Random) -> Story | None:
    """Make a function asynchronous and await it (Python, TypeScript, JavaScript, Rust)."""
    if source.language == "go":
        return None
    found = [each for each in functions(source) if each.name and each.body is not None]
    rng.shuffle(found)
    found.sort(key=lambda each: _WAITS.match(each.name) is None)
    for function in found:
        story = story_of("made_async", source, _edits(source, function) or ())
        if story is not None:
            return story
    return None


def _edits(source: Source, function: Function) -> list[Change] | None:
    reached = _Reached(source)
    if not reached.add(function):
        return None
    for current in reached.functions:
        sites = call_sites(source, current)
        if sites is None or (current is function and not sites):
            return None
        if not all(reached.wait(call) for call in sites):
            return None
        if len(reached.made) > _MOST_FUNCTIONS or len(reached.edits) > 2 * _MOST_CALLS:
            return None
    return reached.edits


class _Reached:
    """What waiting has reached so far: the edits in their order, and the functions whose callers come next."""

    def __init__(self, source: Source) -> None:
        self.edits: list[Change] = []
        self.functions: list[Function] = []
        self.made: set[int] = set()
        self._source = source

    def add(self, function: Function) -> bool:
        """Make one more function asynchronous; False where it cannot be."""
        edits = _definition(self._source, function)
        self.edits += edits
        self.made.add(function.node.start_byte)
        if function.name_node is not None and function.name != "main":
            self.functions.append(function)
        return bool(edits)

    def wait(self, call: Call) -> bool:
        """Await a call, and so make the function around it asynchronous; False where nothing can wait."""
        if _awaited(call) or _in_lambda(call.name):
            return False
        around = enclosing(self._source, call.name)
        if around is None:
            return False
        known = around.node.start_byte in self.made or _is_async(self._source, around)
        if not known and not self.add(around):
            return False
        self.edits += _await(self._source, call)
        return True


def _is_async(source: Source, function: Function) -> bool:
    if source.language == "rust":
        before = function.node.children[:2]
        return function.node.type != "closure_expression" and any("async" in source.slice(each) for each in before)
    return any(child.type == "async" for child in function.node.children)


def _definition(source: Source, function: Function) -> list[Change]:
    """What makes the function itself asynchronous; nothing where it cannot be."""
    node = function.node
    if function.body is None or _is_async(source, function):
        return []
    start = source.offset(node.start_byte)
    if source.language == "python":
        body = source.slice(function.body)
        decorated = node.parent is not None and node.parent.type == "decorated_definition"
        fixed = function.name.startswith(("__", "test", "visit_", "setUp", "tearDown")) or "yield" in body
        return [] if fixed or (decorated and not _plain_decorators(source, node)) else [Change(start, start, "async ")]
    if source.language == "rust":
        return _rust_definition(source, function)
    return _script_definition(source, function)


def _plain_decorators(source: Source, node: Node) -> bool:
    assert node.parent is not None  # noqa: S101
    names = [source.slice(each) for each in node.parent.children if each.type == "decorator"]
    return all(name in ("@staticmethod", "@classmethod", "@abstractmethod", "@override") for name in names)


def _rust_definition(source: Source, function: Function) -> list[Change]:
    node = function.node
    around = None if node.parent is None else node.parent.parent
    if node.type != "function_item" or (around is not None and around.type == "trait_item"):
        return []
    if any(child.type in ("function_modifiers", "extern_modifier") for child in node.children):
        return []
    keyword = next((child for child in node.children if child.type == "fn"), None)
    if keyword is None:
        return []
    at = source.offset(keyword.start_byte)
    edits = [Change(at, at, "async ")]
    before = node.prev_sibling
    if before is not None and before.type == "attribute_item" and source.slice(before) == "#[test]":
        edits.insert(0, Change(*source.span(before), "#[tokio::test]"))
    elif function.name == "main":
        start = source.offset(node.start_byte)
        edits.insert(0, Change(start, start, "#[tokio::main]\n"))
    return edits


def _script_definition(source: Source, function: Function) -> list[Change]:
    node, name = function.node, function.name_node
    kinds = [child.type for child in node.children]
    if "get" in kinds or "set" in kinds or "*" in kinds or function.name == "constructor":
        return []
    if node.type == "generator_function_declaration" or (name is None and not _is_test(source, node)):
        return []
    method = node.type == "method_definition" and name is not None
    at = source.offset(name.start_byte if method and name is not None else node.start_byte)
    edits = [Change(at, at, "async ")]
    if function.returns is not None:
        kind = function.returns.named_children[-1] if function.returns.named_children else None
        if function.returns.type != "type_annotation" or kind is None:
            return []
        text = source.slice(kind)
        if text.startswith(("Promise", "Observable", "Iterable", "this")):
            return []
        edits.append(Change(*source.span(kind), f"Promise<{text}>"))
    return edits


def _is_test(source: Source, node: Node) -> bool:
    call = None if node.parent is None else node.parent.parent
    callee = None if call is None or call.type != "call_expression" else call.child_by_field_name("function")
    return callee is not None and source.slice(callee) in _TESTS


def _awaited(call: Call) -> bool:
    parent = call.node.parent
    return parent is None or parent.type in ("await", "await_expression", "decorator", "new_expression")


def _in_lambda(node: Node) -> bool:
    around: Node | None = node
    while around is not None and around.type != "function_definition":
        if around.type in ("lambda", "decorator", "parameters", "async_block", "macro_definition"):
            return True
        around = around.parent
    return False


def _await(source: Source, call: Call) -> list[Change]:
    start, end = source.span(call.node)
    if source.language == "rust":
        end = call.arguments.end + 1
        return [Change(end, end, ".await")]
    parent = call.node.parent
    field = None if parent is None else _TIGHT.get(parent.type)
    if parent is not None and field is not None and (not field or parent.child_by_field_name(field) == call.node):
        return [Change(start, end, f"(await {source.text[start:end]})")]
    return [Change(start, start, "await ")]


Maker = Callable[[Source, random.Random], Story | None]

MAKERS: Final[Mapping[str, Maker]] = MappingProxyType(
    {
        maker.__name__: maker
        for maker in (
            import_added,
            made_async,
            options_object,
            parameter_added,
            parameter_removed,
            parameters_reordered,
            rename,
            repeated_edit,
            type_changed,
            typo_fixed,
        )
    }
)
