"""Drafts that follow a changed parameter or argument list in other lists of the same name.

For items that were added, removed or reordered (`arguments`), and for functions that became asynchronous (`awaited`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Final

from calomel.code.calls import Listed, calls, inserted, read_list, removed
from calomel.code.languages import RESERVED
from calomel.code.lines import Rows
from calomel.code.scopes import function_rows, in_scope, is_definition, may_be, outer, owner_of, receiver_of
from calomel.code.tokens import is_name, tokens
from calomel.prompts.parts import differences
from calomel.suggest.drafts.evidence import EditDraft, Evidence

MAKER: Final = "arguments"
_RECEIVER: Final = re.compile(r"&?(?:'\w+ )?(?:mut )?(?:self|cls)\b")
_PARAMETER: Final = re.compile(r"(?:\*++|\.{3}|mut |readonly |private |public )*([^\W\d]\w*)")
_KEYWORD: Final = re.compile(r"([^\W\d]\w*)\s*=(?!=)")
_PLACES: Final = 32
# Functions of one name whose parameters changed alike, for a further one to follow.
_AGREED: Final = 2
_CONSTRUCTORS: Final = frozenset({"__init__", "constructor"})
# Lines above a place in which its list is looked for.
_LINES: Final = 24
_TYPED: Final = re.compile(r"[^\W\d]\w*\??\s*(?::|\s)\s*[\w*&\[]")


@dataclass(frozen=True, slots=True)
class ListEdit:
    """The change of one name's list.

    Attributes:
        name: that is called or defined.
        defines: it is a parameter list.
        count: number of items before the edit, without receivers.
        owner: the class of a method; for a call, its receiver. None without one.
        added: index and text of a new item.
        taken: index and text of a removed item.
        order: for each new index the old one, if the items were reordered.
    """

    name: str
    defines: bool
    count: int
    owner: str | None = None
    added: tuple[int, str] | None = None
    taken: tuple[int, str] | None = None
    order: tuple[int, ...] | None = None


def arguments(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for the lists of a name of which one got, lost or reordered an item."""
    found = Counter(
        _resolved(rows, each, row) for row, old, new in _changed_lists(rows, seen) for each in list_edits(old, new)
    )
    edited = seen.rows()
    for edit, support in found.items():
        places = 0
        for listed in calls(rows.text, edit.name):
            row, last = rows.row(listed.name_start), rows.row(listed.end)
            of_class = rows.before(listed.name_start).lstrip().startswith("class ")
            if of_class or rows.is_quoted(listed.name_start) or any(at in edited for at in range(row, last + 1)):
                continue
            defines = _defines(rows, listed)
            # Another function of the same name changes with it only if a second one did.
            if support < _AGREED if defines else not _is_call_of(rows, listed, edit):
                continue
            followed = _followed(rows.text, listed, edit, defines=defines) if edit.defines or not defines else None
            if followed is not None:
                likeness, (start, end, text) = followed
                # What else to pass is not known.
                if edit.added is None or defines or all(in_scope(rows, row, name) for name in _used(text)):
                    yield EditDraft(start, end, text, MAKER, support, likeness)
            places += 1
            if places >= _PLACES:
                break


def _changed_lists(rows: Rows, seen: Evidence) -> Iterator[tuple[int | None, str, str]]:
    """Row, old and new text of each edit: of the line, or of all lines of the list around it."""
    yield from ((edit.row, edit.old, edit.new) for edit in seen.edits)
    around = (_around(rows, row) for row in seen.touched if row < len(rows))
    for each in dict.fromkeys(found for found in around if found is not None):
        new = "\n".join(rows.lines[each.start : each.stop])
        for earlier in seen.earlier(rows):
            old = _as_it_was(earlier, new, each.start)
            if old is not None and old != new:
                yield each.start, old, new
                if list_edits(old, new):
                    break


def _as_it_was(rows: Rows, new: str, row: int) -> str | None:
    """The lines of the list that became `new`: the nearest with the same name; None without one."""
    name = next(calls(new), None)
    found = () if name is None else tuple(calls(rows.text, name.name))
    if not found:
        return None
    near = min(found, key=lambda each: abs(rows.row(each.name_start) - row))
    return "\n".join(rows.lines[rows.row(near.name_start) : rows.row(near.end) + 1])


def _around(rows: Rows, row: int) -> range | None:
    """The lines of the parenthesised list around a line; None if there is none near."""
    at = rows.opening(rows.start(row), rows.start(max(0, row - _LINES)))
    if at is None or rows.text[at] != "(":
        return None
    found = read_list(rows.text, at)
    return None if found is None else range(rows.row(at), rows.row(found.end) + 1)


def _resolved(rows: Rows, edit: ListEdit, row: int | None) -> ListEdit:
    """The edit with the name to look for elsewhere: the class for a constructor, or with the owner of a method."""
    if not edit.defines or row is None:
        return edit
    owner = owner_of(rows, row)
    if owner is not None and edit.name in _CONSTRUCTORS:
        return replace(edit, name=owner, owner=None)
    return replace(edit, owner=owner)


def _defines(rows: Rows, listed: Listed) -> bool:
    return is_definition(rows.before(listed.name_start), rows.behind(listed.end + 1))


def _is_call_of(rows: Rows, listed: Listed, edit: ListEdit) -> bool:
    """Whether a call may be one of the changed function, or has the same receiver as the changed call."""
    if edit.defines:
        return may_be(rows, listed.name_start, edit.owner)
    return receiver_of(rows.text, listed.name_start) == edit.owner


def _used(item: str) -> Iterator[str]:
    """The names that a new item uses, without keywords, attributes and called functions."""
    line = tokens(item)
    for at, token in enumerate(line):
        following = "".join(other.text for other in line[at + 1 : at + 3]).lstrip()
        before = line[at - 1].text if at else ""
        if is_name(token.text) and before not in {".", "::"} and not following.startswith(("=", "(", ":", "!")):
            yield token.text


def strays(rows: Rows, seen: Evidence, line: str, new: str) -> bool:
    """Whether a line that becomes `new` gets an item that the last edits added to a list."""
    came = {each.added[1] for each in list_edits(line, new) if each.added is not None}
    if not came:
        return False
    edits = (each for _, old, now in _changed_lists(rows, seen) for each in list_edits(old, now))
    return any(each.added is not None and each.added[1] in came for each in edits)


@lru_cache(maxsize=512)
def list_edits(old: str, new: str) -> tuple[ListEdit, ...]:
    """The changes of the lists in one or several lines."""
    found: list[ListEdit] = []
    after = list(calls(new))
    for one in calls(old):
        other = next((other for other in after if other.name == one.name), None)
        if other is None or one.name in RESERVED:
            continue
        after.remove(other)
        before = old[old.rfind("\n", 0, one.name_start) + 1 : one.name_start]
        defines = is_definition(before, old[one.end + 1 :].partition("\n")[0])
        edit = _compared(one.name, one.texts(old), other.texts(new), defines=defines)
        if edit is not None:
            found.append(edit if defines else replace(edit, owner=receiver_of(old, one.name_start)))
    return tuple(found)


def _compared(name: str, before: list[str], after: list[str], *, defines: bool) -> ListEdit | None:
    if defines:
        before, after = ([item for item in items if not _RECEIVER.match(item)] for items in (before, after))
    if before == after:
        return None
    count = len(before)
    if len(before) == len(after) and sorted(before) == sorted(after) and len(set(before)) == len(before):
        return ListEdit(name, defines, count, order=tuple(before.index(item) for item in after))
    found = differences(before, after)
    if len(found) != 1:
        return None
    low, high, first, last = found[0]
    if low == high and last - first == 1:
        return ListEdit(name, defines, count, added=(low, after[first]))
    if first == last and high - low == 1:
        return ListEdit(name, defines, count, taken=(low, before[low]))
    return None


def _followed(text: str, listed: Listed, edit: ListEdit, *, defines: bool) -> tuple[float, tuple[int, int, str]] | None:
    """The edit with which a list follows the change of another one, and its likeness; None if it does not."""
    items = listed.texts(text)
    shift = int(defines and bool(items) and _RECEIVER.match(items[0]) is not None)
    own, spans = items[shift:], listed.items[shift:]
    if edit.added is not None:
        at, item = _added(edit.added, edit, own, defines=defines)
        return (1.0 if len(own) == edit.count else 0.7, inserted(text, listed, at + shift, item)) if item else None
    if edit.taken is not None:
        taken = _taken(edit.taken, edit, own)
        return None if taken is None else (1.0, removed(listed, taken + shift))
    if edit.order is None or len(own) != edit.count or any(map(_KEYWORD.match, own)):
        return None
    between = [text[spans[at][1] : spans[at + 1][0]] for at in range(len(spans) - 1)]
    joined = "".join(own[old] + gap for old, gap in zip(edit.order, [*between, ""], strict=True))
    return 1.0, (spans[0][0], spans[-1][1], joined)


def _added(added: tuple[int, str], edit: ListEdit, own: list[str], *, defines: bool) -> tuple[int, str]:
    """Index and text of the item to add to a list; an empty text if the list has it, or needs no change."""
    index, item = added
    keyword, keywords = _KEYWORD.match(item), sum(1 for each in own if _KEYWORD.match(each))
    parameter = _PARAMETER.match(item) if edit.defines else None
    name = parameter.group(1) if parameter else ""
    # Beyond the old items, the new one goes to the end; in a list that is too short it can only be a keyword.
    at = len(own) if index >= edit.count else index
    stands = item in own or (name and any(each == name or each.startswith(name + "=") for each in own))
    optional = "=" in item or item.startswith("*") or item[len(name) :].startswith("?")
    if edit.defines:
        fits = defines or (bool(name) and not optional)
    else:
        fits = not _TYPED.match(item) or bool(keyword) or '"' in item
    if stands or not fits or at > len(own):
        return 0, ""
    if edit.defines and not defines:
        return (len(own), f"{name}={name}") if keywords else (at, name)
    behind = not edit.defines and at == len(own) and not keyword
    return at - keywords if behind else at, item


def _taken(taken: tuple[int, str], edit: ListEdit, own: list[str]) -> int | None:
    """Which item of a list to remove; None for none."""
    index, item = taken
    keyword = _KEYWORD.match(item)
    parameter = keyword or (_PARAMETER.match(item) if edit.defines else None)
    for at, each in enumerate(own):
        found = _KEYWORD.match(each)
        if found is not None and parameter is not None and found.group(1) == parameter.group(1):
            return at
    if keyword and not edit.defines:
        return None
    stands = index < len(own) and not _KEYWORD.match(own[index])
    return index if stands and len(own) >= edit.count - edit.defines else None


_MOST_CALLS: Final = 32


def _calls_of(rows: Rows, name: str) -> Iterator[Listed]:
    """The calls of a name, without its definition."""
    return (listed for listed in islice(calls(rows.text, name), _MOST_CALLS) if not _defines(rows, listed))


AWAITED: Final = "awaited"
_HEAD: Final = re.compile(r"\basync\s+(?:(?:def|function\*?|fn)\s+)?([^\W\d][\w$]*)\s*(?:<[^(]*>)?\(")
_FUNCTION: Final = re.compile(r"\b(?:def|function|fn)\b")
_GIVEN: Final = re.compile(r"\)\s*+:\s*+(?!Promise<)([^{}]*[^{}\s])\s*\{\s*$")


def awaited(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for the calls of functions that the last edits made asynchronous, in Python, TypeScript and Rust."""
    names = {}
    for edit in seen.edits:
        match = _HEAD.search(edit.new)
        if match is not None and not re.search(r"\basync\b", edit.old):
            names[match.group(1)] = re.search(r"\bfn\b", edit.new) is not None
    support = max(1, len(names))
    found = [each for name, behind in names.items() for each in _waiting(rows, name, behind=behind)]
    for _, at, text in found:
        if text:
            yield EditDraft(at, at, text, AWAITED, support)
    for row in {begins for row, _, _ in found if (begins := _head_around(rows, row)) is not None}:
        line, head = rows.lines[row], _FUNCTION.search(rows.lines[row])
        if head is not None and not re.search(r"\basync\b", line):
            # The return type of a TypeScript function becomes a promise.
            given = _GIVEN.search(line) if head.group() == "function" else None
            end = head.start() if given is None else given.end(1)
            text = "async " if given is None else f"async {line[head.start() : given.start(1)]}Promise<{given[1]}>"
            yield EditDraft(rows.start(row) + head.start(), rows.start(row) + end, text, AWAITED, support, 0.95)


def _head_around(rows: Rows, row: int) -> int | None:
    """Where the function around a line starts; a function that starts in the line may only be an argument."""
    inside = function_rows(rows, row)
    if inside is not None and inside.start == row and not _FUNCTION.search(rows.lines[row]):
        above = outer(rows, row)
        inside = None if above is None else function_rows(rows, above)
    return None if inside is None else inside.start


def _waiting(rows: Rows, name: str, *, behind: bool) -> Iterator[tuple[int, int, str]]:
    """Line, place and text to make each call wait, `behind` it or before; an empty text if it waits already."""
    for listed in _calls_of(rows, name):
        before = rows.before(listed.name_start)
        if _FUNCTION.search(before.rpartition("(")[2]):
            continue
        row, at = rows.row(listed.name_start), listed.end + 1
        if behind:
            yield row, at, "" if re.match(r"\s*\.await\b", rows.behind(at)) else ".await"
            continue
        # Before the receiver: `await self.store.load()`.
        receiver = re.search(r"(?:[\w$]+(?:\?\.|\.))*$", before)
        at = listed.name_start - (len(receiver.group()) if receiver else 0)
        yield row, at, "" if re.search(r"\bawait\s+$", rows.before(at)) else "await "
