"""An argument or parameter list was changed: the other lists of the same name follow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice
from typing import Final

from calomel.suggest.drafts.evidence import EditDraft, Evidence
from calomel.suggest.drafts.names import in_scope, may_be, owner_of, receiver_of
from calomel.suggest.drafts.text import (
    KEYWORDS,
    Listed,
    Rows,
    calls,
    function_rows,
    inserted,
    is_definition,
    is_name,
    read_list,
    removed,
    tokens,
)

MAKER: Final = "arguments"
_RECEIVER: Final = re.compile(r"&?(?:'\w+ )?(?:mut )?(?:self|cls)\b")
_PARAMETER: Final = re.compile(r"(?:\*{0,2}|\.{3}|mut |readonly |private |public )*([^\W\d]\w*)")
_KEYWORD: Final = re.compile(r"([^\W\d]\w*)\s*=(?!=)")
_PLACES: Final = 32
_CONSTRUCTORS: Final = frozenset({"__init__", "constructor"})
# A list is looked for so many lines above.
_LINES: Final = 24
_TYPED: Final = re.compile(r"[^\W\d]\w*\??\s*(?::|\s)\s*[\w*&\[]")


@dataclass(frozen=True, slots=True)
class ListEdit:
    """What became of the list of one name.

    Attributes:
        name: that is called or defined.
        defines: it was a parameter list.
        count: items before, receivers not counted.
        owner: the class whose method it is; of a call, what it was called on. None without one.
        added: place and text of a new item.
        taken: place and text of an item that went.
        order: for each new place the old one, when the same items stand otherwise.
    """

    name: str
    defines: bool
    count: int
    owner: str | None = None
    added: tuple[int, str] | None = None
    taken: tuple[int, str] | None = None
    order: tuple[int, ...] | None = None


def arguments(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for calls of what got, lost or reordered a parameter or an argument."""
    found = Counter(
        _resolved(rows, each, row) for row, old, new in changed_lists(rows, seen) for each in list_edits(old, new)
    )
    edited = seen.rows()
    for edit, support in found.items():
        places = 0
        for listed in calls(rows.text, edit.name):
            row, last = rows.row(listed.name_start), rows.row(listed.end)
            if any(at in edited for at in range(row, last + 1)):
                continue
            before = rows.text[rows.start(row) : listed.name_start]
            if before.lstrip().startswith("class "):
                continue
            defines = is_definition(before, rows.text[listed.end + 1 : rows.end(last)])
            if not defines and not _is_call_of(rows, listed, edit):
                continue
            for likeness, (start, end, text) in _followed(rows.text, listed, edit, defines=defines):
                if all(in_scope(rows, row, name) for name in _used(text, taken=edit.added is None or defines)):
                    yield EditDraft(start, end, text, MAKER, support, likeness)
            places += 1
            if places >= _PLACES:
                break


def changed_lists(rows: Rows, seen: Evidence) -> Iterator[tuple[int | None, str, str]]:
    """Row, old and new text of what was edited: the line, or the lines that the list around it takes."""
    for edit in seen.edits:
        around = None if edit.row is None or list_edits(edit.old, edit.new) else _around(rows, edit.row)
        if around is None or edit.row is None:
            yield edit.row, edit.old, edit.new
            continue
        lines = rows.lines[around.start : around.stop]
        before = [*lines[: edit.row - around.start], edit.old, *lines[edit.row - around.start + 1 :]]
        yield around.start, "\n".join(before), "\n".join(lines)
    for insertion in seen.insertions:
        around = None if insertion.row is None or len(insertion.lines) > 1 else _around(rows, insertion.row)
        if around is not None and insertion.row is not None:
            lines = rows.lines[around.start : around.stop]
            at = insertion.row - around.start
            yield around.start, "\n".join([*lines[:at], *lines[at + 1 :]]), "\n".join(lines)


def _around(rows: Rows, row: int) -> range | None:
    """The lines of the parenthesised list that a line stands in; None when there is none near."""
    at = rows.opening(rows.start(row), rows.start(max(0, row - _LINES)))
    if at is None or rows.text[at] != "(":
        return None
    found = read_list(rows.text, at)
    return None if found is None else range(rows.row(at), rows.row(found.end) + 1)


def _resolved(rows: Rows, edit: ListEdit, row: int | None) -> ListEdit:
    """The edit with what is to be looked for elsewhere."""
    if not edit.defines or row is None:
        return edit
    called = _called(rows, edit.name, row)
    return replace(edit, name=called, owner=owner_of(rows, row) if called == edit.name else None)


def _is_call_of(rows: Rows, listed: Listed, edit: ListEdit) -> bool:
    """Whether a call may be one of what was changed, or of the same receiver as the call that was."""
    if edit.defines:
        return may_be(rows, listed.name_start, edit.owner)
    return receiver_of(rows.text, listed.name_start) == edit.owner


def _used(item: str, *, taken: bool) -> Iterator[str]:
    """The names that a new item uses: what stands before an equals sign or is called says nothing of this place."""
    line = () if taken else tokens(item)
    for at, token in enumerate(line):
        following = "".join(other.text for other in line[at + 1 : at + 3]).lstrip()
        before = line[at - 1].text if at else ""
        if is_name(token.text) and before not in {".", "::"} and not following.startswith(("=", "(", ":", "!")):
            yield token.text


def strays(rows: Rows, seen: Evidence, draft: EditDraft, own: Collection[EditDraft]) -> bool:
    """Whether a draft of another maker puts a new item into a list that does not follow: `own` are those that do."""
    first, last = rows.row(draft.start), rows.row(draft.end)
    if first != last or any((draft.start, draft.end, draft.text) == (each.start, each.end, each.text) for each in own):
        return False
    line, start = rows.lines[first], rows.start(first)
    new = line[: draft.start - start] + draft.text + line[draft.end - start :]
    if new in {rows.lines[first][: each.start - start] + each.text + line[each.end - start :] for each in own
               if rows.row(each.start) == rows.row(each.end) == first}:  # fmt: skip
        return False
    added = {each.added[1] for _, old, now in changed_lists(rows, seen) for each in list_edits(old, now) if each.added}
    return any(each.added is not None and each.added[1] in added for each in list_edits(line, new))


def _called(rows: Rows, name: str, row: int | None) -> str:
    """What is called when a constructor is: its class."""
    if name not in _CONSTRUCTORS or row is None:
        return name
    for above in range(row - 1, -1, -1):
        match = re.match(r"\s*(?:export\s+|default\s+|abstract\s+)*class\s+(\w+)", rows.lines[above])
        if match is not None:
            return match.group(1)
    return name


@lru_cache(maxsize=512)
def list_edits(old: str, new: str) -> tuple[ListEdit, ...]:
    """What became of the lists in a line, or in several."""
    found: list[ListEdit] = []
    after = list(calls(new))
    used: set[int] = set()
    for one in calls(old):
        same = [at for at, other in enumerate(after) if other.name == one.name and at not in used]
        if not same or one.name in KEYWORDS:
            continue
        other = after[same[0]]
        used.add(same[0])
        line_start = max(old.rfind("\n", 0, one.name_start), 0)
        rest = old[one.end + 1 :].partition("\n")[0]
        defines = is_definition(old[line_start : one.name_start].lstrip("\n"), rest)
        edit = _compared(one.name, one.texts(old), other.texts(new), defines=defines)
        if edit is not None:
            on = None if defines else receiver_of(old, one.name_start)
            found.append(replace(edit, owner=on))
    return tuple(found)


def _compared(name: str, before: list[str], after: list[str], *, defines: bool) -> ListEdit | None:
    if defines:
        before, after = ([item for item in items if not _RECEIVER.match(item)] for items in (before, after))
    if before == after:
        return None
    count = len(before)
    if len(before) == len(after) and sorted(before) == sorted(after) and len(set(before)) == len(before):
        return ListEdit(name, defines, count, order=tuple(before.index(item) for item in after))
    ops = [op for op in SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if op[0] != "equal"]
    if len(ops) != 1:
        return None
    tag, low, high, first, last = ops[0]
    if tag == "insert" and last - first == 1:
        return ListEdit(name, defines, count, added=(low, after[first]))
    if tag == "delete" and high - low == 1:
        return ListEdit(name, defines, count, taken=(low, before[low]))
    return None


def _followed(
    text: str, listed: Listed, edit: ListEdit, *, defines: bool
) -> Iterator[tuple[float, tuple[int, int, str]]]:
    """How a list follows the edit of another one, with how likely that is."""
    items = listed.texts(text)
    shift = sum(1 for item in items[:1] if defines and _RECEIVER.match(item))
    own = items[shift:]
    if defines and not edit.defines:
        return
    if edit.added is not None:
        yield from _added(text, listed, edit, own, shift, defines=defines)
    elif edit.taken is not None:
        at = _taken(own, edit)
        if at is not None:
            yield 1.0, removed(listed, at + shift)
    elif edit.order is not None and len(own) == edit.count and not any(map(_KEYWORD.match, own)):
        spans = listed.items[shift:]
        parts = [text[spans[old][0] : spans[old][1]] for old in edit.order]
        between = [text[spans[at][1] : spans[at + 1][0]] for at in range(len(spans) - 1)]
        joined = "".join(part + gap for part, gap in zip(parts, [*between, ""], strict=True))
        yield 1.0, (spans[0][0], spans[-1][1], joined)


def _added(
    text: str, listed: Listed, edit: ListEdit, own: list[str], shift: int, *, defines: bool
) -> Iterator[tuple[float, tuple[int, int, str]]]:
    index, item = edit.added or (0, "")
    parameter = _PARAMETER.match(item)
    name = parameter.group(1) if parameter and edit.defines else None
    if not edit.defines and _TYPED.match(item) and not _KEYWORD.match(item) and '"' not in item:
        return
    if item in own or (name and any(own_item == name or own_item.startswith(name + "=") for own_item in own)):
        return
    # Where there are fewer items than before the new one, the new one has no place of its own but as a keyword.
    keywords = sum(1 for each in own if _KEYWORD.match(each))
    at = len(own) if index >= edit.count else index
    if at > len(own):
        return
    likeness = 1.0 if len(own) == edit.count else 0.7
    if defines or not edit.defines:
        if keywords and at == len(own) and not defines and not _KEYWORD.match(item):
            at -= keywords
        yield likeness, inserted(text, listed, at + shift, item)
        return
    if name is None or item.startswith("*"):
        return
    optional = "=" in item or item[len(name) :].startswith("?")
    if optional:
        return  # calls are right as they are
    if keywords:
        yield likeness, inserted(text, listed, len(own) + shift, f"{name}={name}")
    else:
        yield likeness, inserted(text, listed, at + shift, name)


def _taken(own: list[str], edit: ListEdit) -> int | None:
    index, item = edit.taken or (0, "")
    parameter = _PARAMETER.match(item)
    keyword = _KEYWORD.match(item)
    name = keyword.group(1) if keyword else parameter.group(1) if parameter and edit.defines else None
    for at, each in enumerate(own):
        found = _KEYWORD.match(each)
        if found is not None and found.group(1) == name:
            return at
    if keyword and not edit.defines:
        return None
    if index < len(own) and not _KEYWORD.match(own[index]) and len(own) >= edit.count - (1 if edit.defines else 0):
        return index
    return None


def without_parameter(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """A parameter with a default is gone: in the body its default stands for it."""
    for row, old, new in changed_lists(rows, seen):
        for edit in list_edits(old, new):
            if edit.taken is None or not edit.defines or row is None:
                continue
            match = re.match(r"\*{0,2}([^\W\d]\w*)[^=]*=\s*(\S.*)$", edit.taken[1], re.DOTALL)
            body = function_rows(rows, row)
            if match is None or body is None:
                continue
            name, value = match.groups()
            for found in re.finditer(rf"(?<![\w$.]){re.escape(name)}(?![\w$]|\s*=(?!=))", rows.text):
                if rows.row(found.start()) in body and rows.row(found.start()) != row:
                    yield EditDraft(found.start(), found.end(), value.strip(), MAKER, 1, 0.9)


BY_NAME: Final = "by_name"
_NAME: Final = re.compile(r"[^\W\d][\w$]*")
_OWN_RECEIVER: Final = re.compile(r"(?:self|cls)\b")
_NAMED: Final = re.compile(r"[^\W\d]\w*\s*=(?!=)")
_MOST_CALLS: Final = 32


def by_name(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for calls: `f(1, 2)` becomes `f(1, b=2)` behind Python's `*`, `f({ a: 1, b: 2 })` for options."""
    for _, old, new in changed_lists(rows, seen):
        before = {listed.name: listed.texts(old) for listed in calls(old)}
        for listed in calls(new):
            items, parameters = listed.texts(new), before.get(listed.name)
            if parameters is None or items == parameters:
                continue
            if "*" in items and "*" not in parameters:
                names = [item for item in parameters if not _OWN_RECEIVER.match(item)]
                first = items.index("*") - (len(parameters) - len(names))
                yield from _keywords(rows, listed.name, names, first)
            elif len(items) >= 1 and items[-1].startswith("{") and len(parameters) > len(items) - 1:
                yield from _options(rows, listed.name, parameters, items)


def _called_function(rows: Rows, name: str) -> Iterator[tuple[Listed, list[str]]]:
    for count, listed in enumerate(calls(rows.text, name)):
        row, last = rows.row(listed.name_start), rows.row(listed.end)
        before = rows.text[rows.start(row) : listed.name_start]
        if count >= _MOST_CALLS:
            return
        if not is_definition(before, rows.text[listed.end + 1 : rows.end(last)]):
            yield listed, listed.texts(rows.text)


def _keywords(rows: Rows, name: str, parameters: list[str], first: int) -> Iterator[EditDraft]:
    names = [match.group() if (match := _NAME.match(item)) else "" for item in parameters]
    for listed, items in _called_function(rows, name):
        if len(items) > len(names) or any(item.startswith("*") for item in items):
            continue
        parts, at = "", listed.items[0][0] if items else 0
        changed = False
        for index, (start, end) in enumerate(listed.items):
            named = index < first or _NAMED.match(items[index]) is not None or not names[index]
            changed = changed or not named
            parts += rows.text[at:start] + ("" if named else f"{names[index]}=") + rows.text[start:end]
            at = end
        if changed:
            yield EditDraft(listed.items[0][0], at, parts, BY_NAME, 1, 1.0)


def _options(rows: Rows, name: str, parameters: list[str], items: list[str]) -> Iterator[EditDraft]:
    kept = len(items) - 1
    opened = read_list(items[-1], 0)
    if opened is None:
        return
    names = [match.group() for item in opened.texts(items[-1]) if (match := _NAME.match(item))]
    moved = [match.group() for item in parameters[kept:] if (match := _NAME.match(item))]
    if names != moved or not names:
        return
    for listed, passed in _called_function(rows, name):
        if not kept < len(passed) <= kept + len(names) or passed[kept].startswith(("{", "...")):
            continue
        pairs = [value if key == value else f"{key}: {value}" for key, value in zip(names, passed[kept:], strict=False)]
        start, end = listed.items[kept][0], listed.items[-1][1]
        yield EditDraft(start, end, f"{{ {', '.join(pairs)} }}", BY_NAME, 1, 1.0)


AWAITED: Final = "awaited"
_HEAD: Final = re.compile(r"\basync\s+(?:(?:def|function\*?|fn)\s+)?([^\W\d][\w$]*)\s*(?:<[^(]*>)?\(")
_AWAIT: Final = re.compile(r"\b(?:def|function|fn)\b")
_MOST_AWAITED: Final = 24


def awaited(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for the calls of functions that the last edits made asynchronous, in Python, TypeScript and Rust."""
    names = {}
    for edit in seen.edits:
        match = _HEAD.search(edit.new)
        if match is not None and not re.search(r"\basync\b", edit.old):
            names[match.group(1)] = re.search(r"\bfn\b", edit.new) is not None
    support = max(1, len(names))
    heads: set[int] = set()
    for name, behind in names.items():
        for row, draft in _calls(rows, name, support, behind=behind):
            if draft is not None:
                yield draft
            around = function_rows(rows, row)
            if around is not None:
                heads.add(around.start)
    for row in heads:
        found = _AWAIT.search(rows.lines[row])
        if found is not None and not re.search(r"\basync\b", rows.lines[row]):
            at = rows.start(row) + found.start()
            yield EditDraft(at, at, "async ", AWAITED, support, 0.95)


def _calls(rows: Rows, name: str, support: int, *, behind: bool) -> Iterator[tuple[int, EditDraft | None]]:
    """The lines of the calls, and how they wait: `behind` them or before; None for those that do already."""
    for listed in islice(calls(rows.text, name), _MOST_AWAITED):
        row = rows.row(listed.name_start)
        before = rows.text[rows.start(row) : listed.name_start]
        rest = rows.text[listed.end + 1 : rows.end(rows.row(listed.end))]
        if is_definition(before, rest) or _AWAIT.search(before.rpartition("(")[2]):
            continue
        if behind:
            waits = re.match(r"\s*\.await\b", rest) is not None
            yield row, None if waits else EditDraft(listed.end + 1, listed.end + 1, ".await", AWAITED, support)
            continue
        # The receiver waits too: `await self.store.load()`.
        receiver = re.search(r"(?:[\w$]+(?:\?\.|\.))*$", before)
        at = listed.name_start - (len(receiver.group()) if receiver else 0)
        waits = re.search(r"\bawait\s+$", rows.text[rows.start(row) : at]) is not None
        yield row, None if waits else EditDraft(at, at, "await ", AWAITED, support)
