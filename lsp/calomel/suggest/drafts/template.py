"""Drafts that rewrite expressions like an edited one: `Replace(a, b, c, -1)` as `ReplaceAll(a, b, c)`.

What is on both sides of an edit becomes a variable of its form, as in Coccinelle's semantic patches and in comby: a
list item matches any item, a name or a value any operand. All else must be the same, with a distinctive name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from calomel.code.budget import check
from calomel.code.languages import RESERVED
from calomel.code.lines import Rows
from calomel.code.scan import CLOSING
from calomel.code.tokens import Token, changes, is_distinctive, is_identifier, is_literal, is_name, tokens
from calomel.suggest.drafts.arguments import list_edits
from calomel.suggest.drafts.evidence import EditDraft, Evidence

MAKER: Final = "template"
# Lines that an expression may span, and lines that are searched.
_LINES: Final = 12
_PLACES: Final = 48
_LONGEST: Final = 48
_CLOSERS: Final = frozenset(CLOSING.values())
_JOINS: Final = frozenset({".", "::", "?.", "->"})
_ENDS: Final = frozenset({",", ";"})


@dataclass(frozen=True, slots=True)
class Variable:
    """Matches any operand, or with `item` any list item."""

    number: int
    item: bool


_Form = tuple[str | Variable, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """The old form of an expression, without blanks, and its new form."""

    old: _Form
    new: _Form

    @property
    def anchor(self) -> str:
        """A distinctive token of the old form, to search for it."""
        return next(part for part in _fixed(self.old) if is_distinctive(part))

    @property
    def grows(self) -> bool:
        """Whether the new form has everything that the old one has, and so may match it again."""
        return Counter(_fixed(self.old)) <= Counter(_fixed(self.new))


def template(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for expressions of the form that an edited one had.

    This is how cobra went to `ReplaceAll`, koa to `statuses.message[code]`, rust-url to `starts_with`.
    """
    # Changes of one name's list have their own rules.
    telling = [edit for edit in seen.telling() if not list_edits(edit.old, edit.new)]
    found = Counter(each for edit in telling for each in templates(edit.old, edit.new))
    edited = seen.rows()
    for each, support in found.items():
        near = dict.fromkeys(rows.row(match.start()) for match in rows.uses(each.anchor))
        for row in list(near)[:_PLACES]:
            if not (row in edited and each.grows):
                yield from _places(rows, row, each, support)


def templates(old: str, new: str) -> Iterator[Template]:
    """The templates of a changed line: of all changes together, and of each alone."""
    one, other = tokens(old), tokens(new)
    ops = changes(one, other)
    if not ops or max(len(one), len(other)) > 4 * _LONGEST:
        return
    shift, spans = 0, list[tuple[int, int, int, int]]()
    for op in ops:
        spans.append((op.first, op.last, op.first + shift, op.first + shift + len(op.inserted)))
        shift += len(op.inserted) - (op.last - op.first)
    whole = (spans[0][0], spans[-1][1], spans[0][2], spans[-1][3])
    texts, others = [token.text for token in one], [token.text for token in other]
    for span in dict.fromkeys((whole, *spans)):
        found = _formed(texts, others, span)
        if found is not None:
            yield found


def _formed(old: Sequence[str], new: Sequence[str], span: tuple[int, int, int, int]) -> Template | None:
    """The template of a change, widened until its brackets are balanced and it has a distinctive name."""
    low, high, first, last = span
    for _ in range(_LONGEST):
        check()
        before, after = _abstracted(old[low:high], new[first:last])
        if not _tells(before):
            # In `statuses[code]`, `statuses` is not a variable.
            heads = zip(old[low:high], old[low + 1 : high], strict=False)
            head = next((text for text, behind in heads if is_name(text) and behind in CLOSING), "")
            before, after = _abstracted(old[low:high], new[first:last], head)
        opened = [max(_open(part), key=abs, default=0) for part in (old[low:high], new[first:last])]
        left = min(opened) < 0
        right = max(opened) > 0
        if not left and not right:
            called = old[low : low + 1] == ["("] and low > 0 and is_identifier(old[low - 1])
            if _tells(before) and not called:
                return Template(before, _stripped(after)) if _rewords(before, after) else None
            follows = old[high : high + 1]
            left, right = True, not called and bool(follows) and (follows[0] in CLOSING or follows[0] in _CLOSERS)
        if left:
            if not low or not first or old[low - 1] != new[first - 1] or old[low - 1].isspace():
                return None
            low, first = low - 1, first - 1
        if right:
            if high == len(old) or last == len(new) or old[high] != new[last]:
                return None
            high, last = high + 1, last + 1
    return None


def _tells(form: _Form) -> bool:
    """Whether a form is specific: it has a variable and a distinctive token."""
    return any(map(is_distinctive, _fixed(form))) and len(_fixed(form)) < len(form)


def _rewords(before: _Form, after: _Form) -> bool:
    """Whether more than punctuation differs."""
    one, other = Counter(_fixed(before)), Counter(_fixed(after))
    return before != after and any(is_identifier(text) or is_literal(text) for text in (*(one - other), *(other - one)))


def _stripped(form: _Form) -> _Form:
    """The form without blanks at its ends."""
    full = [at for at, part in enumerate(form) if isinstance(part, Variable) or not part.isspace()]
    return form[full[0] : full[-1] + 1] if full else ()


def _fixed(form: _Form) -> list[str]:
    return [part for part in form if isinstance(part, str)]


def _open(texts: Sequence[str]) -> list[int]:
    """-1 if there is an unopened bracket, 1 if there is an unclosed one."""
    depth, found = 0, list[int]()
    for text in texts:
        depth += (text in CLOSING) - (text in _CLOSERS)
        if depth < 0:
            depth, found = 0, [-1]
    return [*found, 1] if depth else found


def _abstracted(old: Sequence[str], new: Sequence[str], kept: str = "") -> tuple[_Form, _Form]:
    """Both texts with variables for what they have in common, the longest items first."""
    one, other = ([text for text in texts if not text.isspace()] for texts in (old, new))
    spans = sorted(_items(one), key=lambda span: span[0] - span[1])
    spans += [(at, at + 1) for at, text in enumerate(one) if _is_operand(one, at) and text not in RESERVED]
    forms: tuple[list[str | Variable], list[str | Variable]] = (list(one), list(new))
    blanks = [at for at, text in enumerate(new) if not text.isspace()]
    taken: tuple[set[int], set[int]] = (set(), set())
    number = 0
    for low, high in spans:
        wanted = one[low:high]
        if (
            kept in wanted
            or taken[0] & set(range(low, high))
            or not any(is_identifier(text) or is_literal(text) for text in wanted)
        ):
            continue
        places = [
            at
            for at in range(len(other) - len(wanted) + 1)
            if other[at : at + len(wanted)] == wanted
            and _is_operand(other, at)
            and not taken[1] & set(range(at, at + len(wanted)))
        ]
        if not places:
            continue
        variable = Variable(number, item=high - low > 1 or (low, high) in _items(one))
        number += 1
        for form, span in (
            (forms[0], range(low, high)),
            *((forms[1], range(blanks[at], blanks[at + high - low - 1] + 1)) for at in places),
        ):
            for at in span:
                form[at] = variable if at == span[0] else ""
        taken[0].update(range(low, high))
        taken[1].update(each for at in places for each in range(at, at + high - low))
    return tuple(part for part in forms[0] if part != ""), tuple(part for part in forms[1] if part != "")


def _items(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Start and end of each list item."""
    found, starts = list[tuple[int, int]](), list[int]()
    for at, text in enumerate(texts):
        if text in CLOSING:
            starts.append(at + 1)
        elif starts and (text == "," or text in _CLOSERS):
            if at > starts[-1]:
                found.append((starts[-1], at))
            starts[-1] = at + 1
            if text != ",":
                starts.pop()
    return found


def _is_operand(texts: Sequence[str], at: int) -> bool:
    """Whether an operand starts there, which is neither called nor a part of something."""
    text, before, behind = texts[at], texts[at - 1] if at else "", texts[at + 1] if at + 1 < len(texts) else ""
    return (
        is_literal(text)
        or (is_identifier(text) and before not in _JOINS and behind not in {"(", "!", "::"})
        or text in CLOSING
    )


def _places(rows: Rows, row: int, wanted: Template, support: int) -> Iterator[EditDraft]:
    lines = range(row, min(len(rows), row + _LINES))
    line = [
        Token(text, rows.start(at) + start)
        for at in lines
        for text, start in tokens(rows.lines[at])
        if not text.isspace()
    ]
    end = rows.end(row)
    at = 0
    while at < len(line) and line[at].start < end:
        check()
        bound: dict[int, tuple[int, int]] = {}
        behind = _matched(line, at, wanted.old, bound)
        if behind is None:
            at += 1
            continue
        values = {number: rows.text[line[low].start : line[high - 1].end] for number, (low, high) in bound.items()}
        text = "".join(part if isinstance(part, str) else values[part.number] for part in wanted.new)
        yield EditDraft(line[at].start, line[behind - 1].end, text, MAKER, support)
        at = behind


def _matched(line: Sequence[Token], at: int, form: _Form, bound: dict[int, tuple[int, int]]) -> int | None:
    """The end of a match of the form at a token; None without a match."""
    if not form:
        return at
    check()
    part, rest = form[0], form[1:]
    if isinstance(part, str):
        return _matched(line, at + 1, rest, bound) if at < len(line) and line[at].text == part else None
    known = bound.get(part.number)
    if known is not None:
        texts = [token.text for token in line[known[0] : known[1]]]
        same = [token.text for token in line[at : at + len(texts)]] == texts
        return _matched(line, at + len(texts), rest, bound) if same else None
    ends = list(_values(line, at, item=part.item))
    for end in ends if rest else ends[-1:]:
        bound[part.number] = at, end
        found = _matched(line, end, rest, bound)
        if found is not None:
            return found
        del bound[part.number]
    return None


def _values(line: Sequence[Token], at: int, *, item: bool) -> Iterator[int]:
    """The ends of the values that start at a token, shortest first."""
    depth = 0
    for end in range(at, min(len(line), at + _LONGEST)):
        text = line[end].text
        depth += (text in CLOSING) - (text in _CLOSERS)
        if depth < 0 or (not depth and text in _ENDS):
            return
        operand = is_name(text) or is_literal(text) or text in _JOINS or text in _CLOSERS
        if not depth and not item and not operand:
            return
        if not depth:
            yield end + 1
