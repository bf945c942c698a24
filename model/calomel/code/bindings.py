"""What each occurrence of a name stands for: scopes and bindings, from the tree and the tables in `bindings.toml`.

Only one name is looked at, so all that is resolved are its own occurrences. Where the tree has an error, or is too
deep, nobody knows.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from tree_sitter import Node

from calomel.code.budget import check
from calomel.code.languages import Grammar, is_comment, is_interpolation, is_string
from calomel.code.lines import Rows
from calomel.code.trees import Step

# What is no name is a token; nobody knows where the tree has an error.
Role = Literal["variable", "member", "keyword", "key", "string", "comment", "token", "unknown"]

_TABLES: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("bindings.toml").read_text("utf-8"))
# Where a declaration counts; the other kinds of entries say what is no variable.
_MODES: Final = (
    "parameter", "block", "function", "around", "after", "again", "found", "imports", "global", "nonlocal", "shell",
)  # fmt: skip
_KINDS: Final = (*_MODES, "aside", "members", "methods", "calls", "keys", "fields", "keywords")
_NODES: Final = (
    "functions", "classes", "blocks", "opaque", "closed", "signatures", "through", "shorthand", "names", "types",
    "plain",
)  # fmt: skip
PAIR: Final = "{0}: {1}"
EXPORT: Final = "{1} as {0}"
# More occurrences of one name are not looked at.
_MOST: Final = 2_000
_LONGEST_RECEIVER: Final = 200
_GO_RECEIVER: Final = re.compile(r"\(\s*(\w*)\s*\*?(\w+)[^)]*\)")
# What precedes a member in a macro, which has only tokens.
_TOKENS: Final = re.compile(r"[\w.:]*\Z")
_NAMING: Final = ("name", "type")
# What declares a name for types alone, and what a type's name cannot be.
_TYPES_ALONE: Final = ("interface", "type_")
_VALUES_ALONE: Final = ("formal", "required", "optional", "variable", "lexical", "function", "parameter", "arrow")


@dataclass(frozen=True, slots=True)
class Scoping:
    """The table of one language: entries `parent.field` with their kinds, and sets of nodes."""

    entries: Mapping[str, str]
    nodes: Mapping[str, frozenset[str]]
    outside: frozenset[str]
    receivers: frozenset[str]
    owned: frozenset[str]

    def opens(self, node: Node) -> bool:
        """Whether a node opens a scope."""
        kind = node.type
        return any(kind in self.nodes[each] for each in ("functions", "classes", "blocks"))


@cache
def scoping_of(grammar: Grammar | None) -> Scoping | None:
    """The table of a grammar; None without one."""
    table = _TABLES.get(grammar.name) if grammar is not None else None
    if table is None:
        return None
    table = {**_TABLES.get(table.get("like", ""), {}), **table}
    entries: dict[str, str] = {}
    for kind in _KINDS:
        entries |= dict.fromkeys(table.get(kind, "").split(), kind)
    sets = {kind: frozenset(table.get(kind, "").split()) for kind in (*_NODES, "outside", "receivers", "owned")}
    return Scoping(entries, sets, sets["outside"], sets["receivers"], sets["owned"])


@dataclass(frozen=True, slots=True)
class Binding:
    """What a name stands for: the scope that it belongs to.

    Attributes:
        scope: "file", a class's name, or where the scope starts and, if the same name begins anew in it, where.
        start, end: of the scope, offsets in the text.
        is_class: whether the scope is that of a class: it is a member of it.
    """

    scope: str
    start: int = field(compare=False)
    end: int = field(compare=False)
    is_class: bool = False

    @property
    def is_local(self) -> bool:
        """Whether nothing outside of a function or a block can mean it."""
        return not self.is_class and self.scope != "file"


@dataclass(frozen=True, slots=True)
class Mention:
    """An occurrence of a name.

    Attributes:
        name: as it is written.
        start, end: offsets in the text.
        role: what kind of word it is there.
        binding: what it stands for; None if the file does not say.
        mode: how it is declared here, an entry of the table; empty for a use.
        receiver: the text before the dot of a member, or before that of a keyword's callee.
        callee: the offset of the name of the function that a keyword is an argument of; None for others.
        both: how to write it where it is a key and a value in one, or what others import: `{0}` is the name that stays,
            `{1}` the new one; empty for most.
        called: whether arguments follow.
    """

    name: str
    start: int
    end: int
    role: Role
    binding: Binding | None = None
    mode: str = ""
    receiver: str = ""
    callee: int | None = None
    both: str = ""
    called: bool = False


@lru_cache(maxsize=32)
def mentions(rows: Rows, *names: str) -> tuple[Mention, ...] | None:
    """The occurrences of names, as if they were one name; None without a table, or if there are too many of them.

    Raises SpentError.
    """
    table = scoping_of(rows.names.grammar)
    if table is None or rows.tree is None:
        return None
    found: list[_Place] = []
    for name in names:
        for match in rows.uses(name):
            check()
            place = _placed(rows, table, name, match.start(), match.end())
            # What `read` and the like fill is a word for the grammar.
            told = match.lastgroup == "variable" and place.role == "key"
            found.append(replace(place, role="variable", mode="shell") if told else place)
            if len(found) > _MOST:
                return None
    found.sort(key=lambda each: each.start)
    return _Resolver(rows, table, found).resolved()


@dataclass(frozen=True, slots=True)
class _Place:
    """An occurrence and the way down to it.

    Attributes:
        at: the step of the node that makes it what it is.
        is_built: whether it is a field in a literal of its type.
    """

    name: str
    start: int
    end: int
    role: Role
    steps: Sequence[Step]
    mode: str = ""
    at: int = 0
    is_built: bool = False


def _placed(rows: Rows, table: Scoping, name: str, start: int, end: int) -> _Place:
    steps = rows.way(start)
    # A sigil is a node of its own in some grammars.
    if steps and steps[-1].node.end_byte // 2 < end:
        steps = rows.way(end - 1)
    place = _Place(name, start, end, "unknown", steps)
    if not steps:
        return place
    role = _in_words(steps, rows.text[start - 1 : start])
    return _in_code(rows, table, place) if role is None else replace(place, role=role)


def _in_words(steps: Sequence[Step], before: str) -> Role | None:
    """What a comment or a string makes of a name in it; None for a name in code."""
    for step in reversed(steps):
        kind = step.node.type
        if is_interpolation(kind):
            return None
        if is_comment(kind):
            return "comment"
        if is_string(kind):
            whole = next(at for at, each in enumerate(steps) if is_string(each.node.type))
            if steps[whole - 1].node.type == "expression_statement":
                return "comment"  # a docstring
            captured = before == "{" and any(each.node.type == "token_tree" for each in steps)
            return "variable" if captured else "string"
    return None


_ROLES: Final[Mapping[str, Role]] = {
    "keys": "key", "keywords": "keyword", "methods": "member", "fields": "member", "members": "member",
}  # fmt: skip


def _in_code(rows: Rows, table: Scoping, place: _Place) -> _Place:
    leaf = place.steps[-1].node.type
    kind, at = _entry(place.steps, table)
    if kind == "imports" and _is_foreign_import(place.steps[at].node, place.steps[at + 1].field):
        kind = "keys"
    if leaf in table.owned:
        kind = "methods"
    if kind == "calls":
        return replace(place, role="member" if _receiver(rows, place) else "variable")
    kind = kind or table.entries.get(leaf, "")
    if kind in _ROLES:
        mode = "methods" if kind == "methods" else ""
        return replace(place, role=_ROLES[kind], mode=mode, at=at, is_built=kind == "fields")
    if leaf not in table.nodes["names"] | table.nodes["types"] or _is_behind_dot(rows.text, place.start):
        return replace(place, role="member" if "identifier" in leaf else "token")
    return replace(place, role="variable", mode=kind if kind in _MODES else "", at=at)


def _is_behind_dot(text: str, start: int) -> bool:
    return text[start - 1 : start] == "." and text[start - 2 : start - 1] != "."


def _entry(steps: Sequence[Step], table: Scoping) -> tuple[str, int]:
    """The kind of the entry that the last name of a way down stands in, and the step of its node."""
    for at in range(len(steps) - 1, 0, -1):
        parent, field = steps[at - 1].node.type, steps[at].field
        key, above = f"{parent}.{field}", [each.node.type for each in steps[max(0, at - 3) : at - 1]]
        for depth in range(len(above), -1, -1):
            kind = table.entries.get("/".join([*above[len(above) - depth :], key]))
            if kind is not None:
                return ("", 0) if kind == "aside" or _is_later(steps, at, kind) else (kind, at - 1)
        if parent not in table.nodes["through"]:
            break
    return "", 0


def _is_later(steps: Sequence[Step], at: int, kind: str) -> bool:
    """Whether a part of a dotted name is not what the whole declares: `path` in `import os.path`."""
    dotted = steps[-2].node if at < len(steps) - 1 else None
    if dotted is None or dotted.type != "dotted_name" or dotted.named_child_count == 1 or kind not in _MODES:
        return False
    return kind != "imports" or dotted.start_byte != steps[-1].node.start_byte


def _is_foreign_import(node: Node, field: str) -> bool:
    return field == "name" and node.child_by_field_name("alias") is not None


def _receiver(rows: Rows, place: _Place) -> str:
    """The text before the dot of a member; empty without one, or if it is long."""
    if len(place.steps) < 2:  # noqa: PLR2004 (the root has no parent)
        return ""
    low = place.steps[-2].node.start_byte // 2
    if place.steps[-2].node.type == "token_tree":
        tokens = _TOKENS.search(rows.before(place.start))
        low = place.start - (len(tokens[0]) if tokens else 0)
    before = rows.text[low : place.start].rstrip()
    for dot in ("?.", "->", "::", "&.", "."):
        if before.endswith(dot):
            whole = before[: -len(dot)].rstrip()
            return whole if len(whole) <= _LONGEST_RECEIVER else "?"
    return ""


_HOMES: Final = {
    "parameter": "functions classes blocks signatures",
    "function": "functions classes",
    "shell": "functions",
}


class _Resolver:
    """Finds the binding of each occurrence: first those that declare, in order, then the uses."""

    def __init__(self, rows: Rows, table: Scoping, places: Sequence[_Place]) -> None:
        self._rows, self._table, self._places = rows, table, places
        # For each scope, from where on a binding counts in it, the binding, and what declared it.
        self._bound: defaultdict[str, list[tuple[int, Binding, _Place]]] = defaultdict(list)
        self._taken: dict[str, str] = {
            self._scope(each.steps, self._within(each.steps, "functions", len(each.steps) - 1)).scope: each.mode
            for each in places
            if each.mode in {"global", "nonlocal"}
        }

    def resolved(self) -> tuple[Mention, ...]:
        declared = {each.start: self._declared(each) for each in self._places if each.mode}
        return tuple(self._mention(each, declared.get(each.start) or self._use(each)) for each in self._places)

    def _mention(self, place: _Place, binding: Binding | None) -> Mention:
        after = self._rows.behind(place.end).lstrip()
        kinds = {step.node.type for step in place.steps[-2:]}
        receiver, callee = "", None
        if place.role == "member":
            receiver = _receiver(self._rows, place)
        elif place.role == "keyword":
            callee, receiver = self._callee(place)
        return Mention(
            place.name,
            place.start,
            place.end,
            place.role,
            binding,
            place.mode,
            receiver,
            callee,
            EXPORT if _is_export(place) else PAIR if not kinds.isdisjoint(self._table.nodes["shorthand"]) else "",
            after.startswith(("(", "!(")),
        )

    def _callee(self, place: _Place) -> tuple[int | None, str]:
        """Where the name of the function stands that a keyword is an argument of, and what is before its dot."""
        for step in place.steps[place.at :: -1]:
            fields = ("function", "method", "constructor", "type")
            named = next((each for each in map(step.node.child_by_field_name, fields) if each is not None), None)
            if named is not None and named.end_byte <= 2 * place.start:
                while named.named_child_count:
                    last = named.named_children[-1]
                    if last.end_byte != named.end_byte:
                        return None, ""
                    named = last
                start = named.start_byte // 2
                return start, _receiver(self._rows, replace(place, start=start, steps=self._rows.way(start)))
        return None, ""

    def _scope(self, steps: Sequence[Step], at: int) -> Binding:
        node = steps[at].node
        if at == 0:
            return Binding("file", 0, len(self._rows.text))
        start, end = node.start_byte // 2, node.end_byte // 2
        if node.type in self._table.nodes["classes"]:
            named = (each.node.child_by_field_name(field) for each in (steps[at], steps[at - 1]) for field in _NAMING)
            name = next((each for each in named if each is not None), None)
            if name is not None:
                text = self._rows.text[name.start_byte // 2 : name.end_byte // 2].partition("<")[0]
                return Binding(f"class {text}", start, end, is_class=True)
            return Binding(f"{start}", start, end, is_class=True)
        return Binding(f"{start}", start, end)

    def _around(self, steps: Sequence[Step]) -> Iterator[int]:
        """The steps of the scopes around a place, the innermost first; the file is the last."""
        skip = False
        for at in range(len(steps) - 1, 0, -1):
            parent = steps[at - 1].node
            entry = f"{parent.type}.{steps[at].field}"
            skip = skip or entry in self._table.outside or (entry == "for_in_clause.right" and _is_first(parent))
            if at > 1 and self._table.opens(parent):
                if not skip:
                    yield at - 1
                skip = False
        yield 0

    def _within(self, steps: Sequence[Step], kinds: str, at: int) -> int:
        """The step of the innermost node of a kind that a step is in, or is."""
        wanted = frozenset().union(*(self._table.nodes[kind] for kind in kinds.split()))
        return next((each for each in range(at, 0, -1) if steps[each].node.type in wanted), 0)

    def _declared(self, place: _Place) -> Binding | None:
        steps, at, mode = place.steps, place.at, place.mode
        if mode in {"global", "nonlocal"}:
            inside = self._scope(steps, self._within(steps, "functions", at))
            return self._outward(place, inside) if inside.scope in self._taken else None
        if mode == "methods":
            owner = self._owner(place)
            if owner is not None and any(step.node.type in self._table.nodes["plain"] for step in steps[-5:]):
                self._bound[owner.scope].append((-1, owner, place))
            return owner
        scope = self._scope(steps, self._home(steps, at, mode))
        if scope.scope in self._taken:
            scope = self._outward(place, scope)
        if mode == "parameter" and scope.is_class:  # of a type
            self._bound[scope.scope].append((-1, replace(scope, scope=f"<{scope.scope}>", is_class=False), place))
            return self._bound[scope.scope][-1][1]
        if mode == "after" or (mode == "again" and scope.scope not in self._bound):
            visible = steps[at].node.end_byte // 2
            binding = replace(scope, scope=f"{scope.scope}:{place.start}") if mode == "after" else scope
            self._bound[scope.scope].append((visible, binding, place))
            return binding
        self._bound[scope.scope].append((-1, scope, place))
        return scope

    def _home(self, steps: Sequence[Step], at: int, mode: str) -> int:
        """The step of the scope in which a declaration of a mode counts."""
        if mode == "around":
            return next(self._around(steps))
        if mode == "found":
            return self._found(steps, at)
        if mode == "shell" and not any(step.node.type == "declaration_command" for step in steps):
            return 0
        return self._within(steps, _HOMES.get(mode, "functions classes blocks"), at)

    def _found(self, steps: Sequence[Step], at: int) -> int:
        """The step of the scope that has the name already, up to the function; else of the innermost."""
        first = None
        for each in (each for each in range(at, -1, -1) if each == 0 or self._table.opens(steps[each].node)):
            first = each if first is None else first
            if self._scope(steps, each).scope in self._bound:
                return each
            if steps[each].node.type in self._table.nodes["closed"]:
                break
        return first or 0

    def _outward(self, place: _Place, scope: Binding) -> Binding:
        """The scope that a function takes a name from."""
        if self._taken[scope.scope] == "global":
            return self._scope(place.steps, 0)
        scopes = [self._scope(place.steps, each) for each in self._around(place.steps)]
        outer = [each for each in scopes if not each.is_class and each.start < scope.start]
        return outer[0] if outer else self._scope(place.steps, 0)

    def _use(self, place: _Place) -> Binding | None:
        if not place.steps:
            return None
        if place.role == "member":
            return self._own(place)
        if place.role != "variable":
            return None
        crossed = only_definitions = False
        for at in self._around(place.steps):
            scope, kind = self._scope(place.steps, at), place.steps[at].node.type
            if self._taken.get(scope.scope) == "global":
                return self._scope(place.steps, 0)
            found = [
                binding
                for visible, binding, by in self._bound.get(scope.scope, ())
                if visible <= place.start and (by.mode == "around" or not only_definitions) and _same_space(place, by)
            ]
            if found and not (crossed and kind in self._table.nodes["opaque"]):
                return found[-1]
            crossed = crossed or kind in self._table.nodes["functions"]
            only_definitions = only_definitions or kind in self._table.nodes["closed"]
        return None

    def _own(self, place: _Place) -> Binding | None:
        """The class around, if the member is one of the object itself."""
        if place.is_built:
            return self._built(place)
        receiver = _receiver(self._rows, place)
        owned = place.steps[-1].node.type in self._table.owned or receiver in self._table.receivers
        return self._owner(place, "" if owned else receiver) if owned or receiver else None

    def _built(self, place: _Place) -> Binding | None:
        """The type whose value a literal with fields is."""
        for step in place.steps[place.at :: -1]:
            named = (step.node.child_by_field_name(field) for field in _NAMING)
            found = next((each for each in named if each is not None and each.end_byte <= 2 * place.start), None)
            if found is not None:
                text = self._rows.text[found.start_byte // 2 : found.end_byte // 2]
                return Binding(f"class {text}", 0, len(self._rows.text), is_class=True)
        return None

    def _owner(self, place: _Place, receiver: str = "") -> Binding | None:
        """The class or the object with methods around; in Go, a method's type, for its own name or its `receiver`."""
        for at in range(len(place.steps) - 1, 0, -1):
            node = place.steps[at].node
            if node.type in self._table.nodes["classes"]:
                return None if receiver else self._scope(place.steps, at)
            if node.type == "method_definition" and place.steps[at - 1].node.type == "object":
                return None if receiver else replace(self._scope(place.steps, at - 1), is_class=True)
            of = node.child_by_field_name("receiver") if node.type == "method_declaration" else None
            if of is not None:
                found = _GO_RECEIVER.fullmatch(self._rows.text[of.start_byte // 2 : of.end_byte // 2])
                if found is None or receiver not in {"", found[1]}:
                    return None
                return Binding(f"class {found[2]}", 0, len(self._rows.text), is_class=True)
        return None


def _is_export(place: _Place) -> bool:
    """Whether others know a name by the same one, in a list of exports."""
    node = place.steps[-2].node if len(place.steps) > 1 else None
    return node is not None and node.type == "export_specifier" and node.named_child_count == 1


def _is_first(clause: Node) -> bool:
    """Whether a clause of a comprehension is the first, whose values are those of the code around."""
    before = clause.prev_named_sibling
    return before is None or before.type != clause.type


def _same_space(use: _Place, by: _Place) -> bool:
    """Whether a use can mean what a declaration declares: some declare types alone, or values alone."""
    kind = by.steps[by.at].node.type if by.steps else ""
    if use.steps[-1].node.type == "word" and by.steps[-1].node.type != "word":
        return False
    if use.steps[-1].node.type == "type_identifier":
        return not kind.startswith(_VALUES_ALONE) or by.steps[-1].node.type == "type_identifier"
    return not kind.startswith(_TYPES_ALONE) or by.steps[-1].node.type != "type_identifier"
