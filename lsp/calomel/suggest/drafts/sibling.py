"""A new thing beside an alike one (a field, a variant, a parameter): it follows wherever the old one stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from calomel.suggest.drafts.arguments import list_edits
from calomel.suggest.drafts.evidence import EditDraft, Evidence, Insertion, LineEdit
from calomel.suggest.drafts.names import differing_names, renamed_line
from calomel.suggest.drafts.text import (
    Rows,
    block_end,
    changes,
    function_rows,
    indent_of,
    inserted,
    is_import,
    is_name,
    is_prose,
    read_list,
    tokens,
)

MAKER: Final = "sibling"
# A thing that follows is looked for within so many lines of the old one.
_NEAR: Final = 12
_PLACES: Final = 24
_BLOCK: Final = 6
_SHORTEST: Final = 1
_CONSTANT: Final = re.compile(r"(?:[A-Z_][A-Z0-9_]+\s*(?::[^=]*)?|(?:export\s+)?const\s[^=]*)=(?!=)")
_PARAMETER: Final = re.compile(r"(?:\*{0,2}|\.{3}|mut )*([^\W\d]\w*)")


@dataclass(frozen=True, slots=True)
class Sibling:
    """`new` came to stand beside `old`; `names` is what else is called otherwise there.

    A parameter follows in the `body` of its function alone. What is only used is at most `imported` as the other is.
    """

    old: str
    new: str
    names: Mapping[str, str]
    rows: frozenset[int]
    body: range | None = None
    imported: bool = False


def sibling(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts of lines and list items for new things, made after those of their older siblings."""
    found = siblings(rows, seen)
    support = Counter((each.old, each.new) for each in found)
    # Where something new follows several, the nearest is its model; evidence of two places decides.
    done: set[tuple[str, str]] = set()
    taken = {row for each in found for row in each.rows}
    for each in found:
        if (each.old, each.new) in done:
            continue
        done.add((each.old, each.new))
        yield from _follow(rows, each, support[each.old, each.new], taken)


def siblings(rows: Rows, seen: Evidence) -> list[Sibling]:
    """What is new among the last edits, with its older sibling beside it."""
    found = [each for insertion in seen.insertions for each in _of_line(rows, insertion)]
    for edit in seen.edits:
        found += _beside_others(edit)
        found += _of_parameter(rows, edit)
    return found


def _of_line(rows: Rows, insertion: Insertion) -> Iterator[Sibling]:
    new = insertion.lines[0]
    # Imports, comments and constants are no things that have siblings elsewhere.
    if insertion.row is None or len(insertion.lines) > 1 or is_import(new) or is_prose(new) or _CONSTANT.match(new):
        return
    own = range(insertion.row, insertion.row + 1)
    inside = function_rows(rows, own.start) is not None
    for neighbour in (_filled(rows, own.start - 1, -1), _filled(rows, own.stop, 1)):
        if neighbour is None or indent_of(rows.lines[neighbour]) != indent_of(new):
            continue
        old = rows.lines[neighbour].rstrip().rstrip(",")
        names = differing_names(old, new.rstrip().rstrip(","))
        pair = _key(old, names) if names else None
        if names and pair is not None:
            yield Sibling(*pair, names, frozenset({*own, neighbour}), imported=inside)


def _of_parameter(rows: Rows, edit: LineEdit) -> Iterator[Sibling]:
    for each in list_edits(edit.old, edit.new) if edit.row is not None else ():
        if each.added is None or not each.defines or edit.row is None:
            continue
        index, item = each.added
        items = _items(edit.old, each.name)
        for before in (*items[max(0, index - 1) : index], *items[index : index + 1]):
            one, other = _PARAMETER.match(before), _PARAMETER.match(item)
            if one is None or other is None:
                continue
            pair = one.group(1), other.group(1)
            if all(map(is_name, pair)) and pair[0] != pair[1]:
                names = {**(differing_names(before, item) or {}), pair[0]: pair[1]}
                yield Sibling(*pair, names, frozenset({edit.row}), function_rows(rows, edit.row))
                break


def _beside_others(edit: LineEdit) -> Iterator[Sibling]:
    """A name that was put between others: `a, new, b`."""
    old = tokens(edit.old)
    for op in changes(old, tokens(edit.new)):
        new = [text for text in op.inserted if is_name(text)]
        if op.first != op.last or len(new) != 1 or "".join(op.inserted).strip(" ,\t") != new[0] or edit.row is None:
            continue
        others = [token.text for token in (*old[max(0, op.first - 2) : op.first], *old[op.first : op.first + 3])]
        for other in filter(is_name, others):
            yield Sibling(other, new[0], {other: new[0]}, frozenset({edit.row}), imported=True)


def _items(line: str, name: str) -> list[str]:
    match = re.search(rf"(?<![\w$]){re.escape(name)}[^(]*\(", line)
    found = None if match is None else read_list(line, match.end() - 1)
    texts = [] if found is None else found.texts(line)
    return [text for text in texts if not re.match(r"&?(?:mut )?(?:self|cls)\b", text)]


def _key(old: str, names: Mapping[str, str]) -> tuple[str, str] | None:
    """The first name that differs: what the line is about."""
    for token in tokens(old):
        new = names.get(token.text)
        if new is not None and is_name(token.text) and is_name(new) and len(token.text) >= _SHORTEST:
            return token.text, new
    return None


def _follow(rows: Rows, each: Sibling, support: int, taken: set[int]) -> Iterator[EditDraft]:
    pattern = re.compile(rf"(?<![\w$]){re.escape(each.old)}(?![\w$])")
    known = re.compile(rf"(?<![\w$]){re.escape(each.new)}(?![\w$])")
    seen_rows: set[int] = set()
    for match in pattern.finditer(rows.text):
        row = rows.row(match.start())
        if row in taken or row in seen_rows or (each.body is not None and row not in each.body):
            continue
        seen_rows.add(row)
        if len(seen_rows) > _PLACES:
            return
        line = rows.lines[row]
        if known.search(line):
            continue
        if is_import(line):
            yield from _imported(rows, row, each, support)
            continue
        if each.imported:
            continue
        # A parameter need not go where the one beside it goes.
        item = _listed(rows, match, each, support) if each.body is None else None
        if item is not None:
            yield item
        copied = _copied(rows, row, each, support)
        if copied is not None:
            yield copied


def _listed(  # noqa: C901, PLR0911 (one for each reason why not)
    rows: Rows, match: re.Match[str], each: Sibling, support: int
) -> EditDraft | None:
    """As the next item of the list that the older one stands in."""
    text, at = rows.text, match.start()
    depth, low = 0, max(0, at - 400)
    for bracket in range(at - 1, low - 1, -1):
        character = text[bracket]
        if character in ")]}":
            depth += 1
        elif character in "([{":
            if depth == 0:
                break
            depth -= 1
        elif character in ";\n" and character == ";":
            return None
    else:
        return None
    found = read_list(text, bracket)
    if found is None or (text[bracket] == "{" and "\n" in text[bracket : found.end]):
        return None
    for index, (start, end) in enumerate(found.items):
        if start <= at < end:
            item = text[start:end]
            # The new one belongs into lists of things, not into every call that uses the old one: one item alone in
            # parentheses says nothing of a list.
            if len(found.items) < 2 or "(" in item.replace("()", ""):  # noqa: PLR2004
                return None
            new = renamed_line(item, each.names)
            if new == item or any(other == new for other in found.texts(text)):
                return None
            low, high, inserted_text = inserted(text, found, index + 1, new)
            return EditDraft(low, high, inserted_text, MAKER, support, 0.7)
    return None


def _imported(rows: Rows, row: int, each: Sibling, support: int) -> Iterator[EditDraft]:
    """As an import beside that of the older one, in the order of the alphabet."""
    line = rows.lines[row]
    copy = renamed_line(line, {each.old: each.new})
    if copy == line or copy in rows.lines or row + 1 >= len(rows):
        return
    at = rows.start(row) if copy < line else rows.start(row + 1)
    yield EditDraft(at, at, copy + rows.line_end, MAKER, support, 1.0)


def _copied(  # noqa: PLR0911 (one for each reason why not)
    rows: Rows, row: int, each: Sibling, support: int
) -> EditDraft | None:
    """As a line of its own, or a few, behind those of the older one."""
    line = rows.lines[row]
    end = row + 1
    if line.rstrip().endswith((":", "{", "(", "[", "=>")):
        end = block_end(rows, row)
    if end - row > _BLOCK:
        return None
    block = rows.lines[row:end]
    while block and not block[-1].strip():
        block.pop()
        end -= 1
    copy = [renamed_line(text, each.names) for text in block]
    around = rows.lines[max(0, row - _NEAR) : end + _NEAR]
    if copy == block or copy[0] in around:
        return None
    opened = sum(line.count(character) for character in "([{") - sum(line.count(character) for character in ")]}")
    if len(block) == 1 and opened:
        return None
    if block[0].lstrip().startswith(("return", "if ", "elif ", "for ", "while ", "import ", "use ", "#", "//", "*")):
        return None
    if end >= len(rows):
        return None
    at = rows.start(end)
    text = "".join(new + rows.line_end for new in copy)
    name = re.escape(each.old)
    mirrored = re.search(rf"(?<![\w$]){name}\s*[:=]\s*(?:[\w.]+[.(])*{name}(?![\w$])", block[0]) is not None
    if re.match(r"\s*\*?\w+\s*:\s+\w+(?:\s+[\w.,-]+){2,}\s*$", block[0]):
        return None
    declares = (
        re.match(
            rf"\s*(?:case\s+)?(?:\w+(?:\.|::))*{re.escape(each.old)}\b\s*(?:\([^)]*\)\s*)?(?::|=(?!=)|,|=>|$)", block[0]
        )
        is not None
    )
    if not declares and not mirrored:
        return None
    likeness = 0.9
    return EditDraft(at, at, text, MAKER, support, likeness)


def _filled(rows: Rows, row: int, step: int) -> int | None:
    """The next line that is not blank; None when it is far."""
    for at in (row, row + step):
        if 0 <= at < len(rows) and rows.lines[at].strip():
            return at
    return None
