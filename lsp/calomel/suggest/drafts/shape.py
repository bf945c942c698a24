"""The same change of shape on lines that look alike: where the lines differ in names, so does the change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rapidfuzz import fuzz

from calomel.suggest.drafts.evidence import EditDraft, Evidence, Insertion, LineEdit
from calomel.suggest.drafts.names import aligned, differing_names, renamed, renamed_line, token_texts
from calomel.suggest.drafts.text import (
    KEYWORDS,
    Op,
    Rows,
    Token,
    changes,
    indent_of,
    is_import,
    is_literal,
    is_name,
    is_operand,
    is_prose,
    shape,
    tokens,
    words,
)

MAKER: Final = "shape"
# Of two shapes, 0 to 100.
_ALIKE: Final = 60.0
_ALIKE_ONCE: Final = 75.0
_COMPARED: Final = 8
# Lines further away are hardly siblings, and comparing them costs.
_REACH: Final = 400
_EDITS: Final = 4
_COMPARED_EDITS: Final = 12
_OTHER_CALLEE: Final = 0.4
_CLOSING: Final = frozenset(")]}>;:")
_OPENING: Final = frozenset("([{.@#")


def shape_of_siblings(rows: Rows, seen: Evidence, row: int) -> Iterator[EditDraft]:
    """Drafts for lines that look as an edited line looked before.

    Args:
        rows: of the document.
        seen: the last edits.
        row: of the cursor.
    """
    edited = {edit.row for edit in seen.edits} | {each.row for each in seen.insertions}
    done = {edit.new for edit in seen.edits}
    telling = seen.telling()
    prose = len(telling) > 1
    rules = [Rule.of(edit) for edit in telling[:_EDITS]]
    for rule in rules:
        support = sum(rule.apply(edit.old) == edit.new for edit in seen.edits[:_COMPARED_EDITS])
        near = range(max(0, row - _REACH), min(len(rows), row + _REACH))
        alike = []
        for at in near:
            line = rows.lines[at]
            if (
                at in edited
                or line in done
                or not line.strip()
                or (is_prose(line) and not prose)
                or not rule.may_fit(line)
            ):
                continue
            score = fuzz.ratio(rule.shape, shape(line), score_cutoff=_ALIKE if support > 1 else _ALIKE_ONCE)
            if score:
                alike.append((-score, abs(at - row), at))
        if support < 2 and rule.is_one_off:  # noqa: PLR2004
            continue
        for score, _, at in sorted(alike)[:_COMPARED]:
            text = rule.apply(rows.lines[at])
            if text is not None and text != rows.lines[at]:
                same = fuzz.ratio(rule.text, rows.lines[at].strip()) / 100
                likeness = rule.likeness(rows.lines[at])
                # What one call got, another function does not get; what calls of two functions got, perhaps.
                if likeness < 1 and support < 2:  # noqa: PLR2004
                    continue
                likeness *= (-score / 100 + same) / 2
                yield EditDraft(rows.start(at), rows.end(at), text, MAKER, max(1, support), likeness)


@dataclass(frozen=True, slots=True)
class Rule:
    """How one line was changed, to be done to others."""

    old: tuple[Token, ...]
    ops: tuple[Op, ...]
    text: str
    shape: str
    fixed: frozenset[str]

    @classmethod
    def of(cls, edit: LineEdit) -> Rule:
        """Read it from an edit."""
        old, new = tokens(edit.old), tokens(edit.new)
        ops = changes(old, new)
        inserted = {text for op in ops for text in op.inserted}
        # What is replaced by something that it is no part of must be there to be replaced.
        fixed = {
            token.text
            for op in ops
            for token in old[op.first : op.last]
            if not token.text.isspace() and token.text not in inserted
        }
        return cls(old, tuple(ops), edit.old.strip(), shape(edit.old), frozenset(fixed))

    @property
    def is_one_off(self) -> bool:
        """Whether only an operator was changed, which is a decision about one line."""
        touched = [
            text for op in self.ops for text in (*op.inserted, *token_texts(self.old[op.first : op.last]))
        ]  # fmt: skip
        return not any(is_operand(text) or text in KEYWORDS for text in touched)

    def may_fit(self, line: str) -> bool:
        """A quick look."""
        return all(text in line for text in self.fixed)

    def likeness(self, line: str) -> float:
        """Less for a line that calls something else where the change is among the arguments."""
        one, other = token_texts(self.old), token_texts(tokens(line))
        places = aligned(one, other)
        for op in self.ops:
            callee = _callee(one, op.first)
            place = _place(places, callee) if callee is not None else None
            if callee is not None and (place is None or other[place] != one[callee]):
                return _OTHER_CALLEE
        return 1.0

    def apply(self, line: str) -> str | None:
        """What the line becomes; None when it is not one of these."""
        other = tokens(line)
        one, texts = token_texts(self.old), token_texts(other)
        places = aligned(one, texts)
        counterparts = set(places)
        if any(text in KEYWORDS and at not in counterparts for at, text in enumerate(texts[: len(one) * 2])):
            return None
        names = _names(one, texts, places, self.ops)
        result: list[str] = []
        at = 0
        for op in self.ops:
            span = _span(op, one, texts, places, self.fixed)
            if span is None or span[0] < at:
                return None
            result += texts[at : span[0]]
            inserted = renamed(op.inserted, names)
            if span[0] == span[1] and _there(texts, span[0], inserted):
                return None
            result += inserted
            at = span[1]
        return "".join([*result, *texts[at:]])


def _callee(texts: Sequence[str], at: int) -> int | None:
    """Where the name stands whose arguments are being changed at `at`."""
    depth = 0
    for place in range(min(at, len(texts)) - 1, -1, -1):
        if texts[place] in {")", "]", "}"}:
            depth += 1
        elif texts[place] in {"(", "[", "{"}:
            if depth == 0:
                return place - 1 if place and is_name(texts[place - 1]) else None
            depth -= 1
    return None


def _names(one: Sequence[str], other: Sequence[str], places: Sequence[int | None], ops: Sequence[Op]) -> dict[str, str]:
    """What the other line calls the names and literals of this one."""
    inserted = {text for op in ops for text in op.inserted}
    found: dict[str, str] = {}
    for at, place in enumerate(places):
        if place is None or one[at] == other[place]:
            continue
        if is_name(one[at]) or (is_literal(one[at]) and one[at] in inserted):
            found.setdefault(one[at], other[place])
    return found


def _span(
    op: Op, one: Sequence[str], other: Sequence[str], places: Sequence[int | None], fixed: frozenset[str]
) -> tuple[int, int] | None:
    """Which tokens of the other line the change replaces."""
    if op.first < op.last:
        where = [places[at] for at in range(op.first, op.last) if at < len(places)]
        known = [place for place in where if place is not None]
        if len(known) < op.last - op.first or known[-1] - known[0] != op.last - op.first - 1:
            return None
        if any(
            one[at] in fixed and one[at] != other[place]
            for at, place in zip(range(op.first, op.last), known, strict=True)
        ):
            return None
        return known[0], known[-1] + 1
    return _insertion(op, one, other, places)


def _insertion(  # noqa: PLR0911 (one for each kind of neighbour)
    op: Op, one: Sequence[str], other: Sequence[str], places: Sequence[int | None]
) -> tuple[int, int] | None:
    """Between which tokens of the other line the change inserts."""
    at_left, at_right = op.first - 1, op.first
    while at_left >= 0 and one[at_left].isspace():
        at_left -= 1
    while at_right < len(one) and one[at_right].isspace():
        at_right += 1
    left, right = _place(places, at_left), _place(places, at_right)
    before = one[at_left] if at_left >= 0 else ""
    after = one[at_right] if at_right < len(one) else ""
    if not after:
        # At the end of the line: at the other line's end too.
        return (len(other), len(other)) if left is not None and left == len(other) - 1 else None
    if not before:
        return (right, right) if right is not None and not "".join(other[:right]).strip() else None
    if after in _CLOSING and right is not None and after == other[right]:
        return right - (op.first < at_right and other[right - 1].isspace()), right - (
            op.first < at_right and other[right - 1].isspace()
        )
    if left is not None and before in _OPENING and before == other[left]:
        return left + 1, left + 1
    if left is None or right is None or "".join(other[left + 1 : right]).strip() or right <= left:
        return None
    if before != other[left] and after != other[right]:
        return None
    at = left + 1 if at_left == op.first - 1 else right
    return at, at


def _place(places: Sequence[int | None], at: int) -> int | None:
    return places[at] if 0 <= at < len(places) else None


def _there(texts: Sequence[str], at: int, inserted: Sequence[str]) -> bool:
    """Whether what would be inserted stands there already."""
    return "".join(texts[at:]).startswith("".join(inserted)) or "".join(texts[:at]).endswith("".join(inserted))


REPEATED: Final = "repeated"
_LINES: Final = 4
_FARTHEST: Final = 400
_PLACES: Final = 12
_INSERTIONS: Final = 6
_MARKS: Final = ("@", "#[", "///", "/**")


@dataclass(frozen=True, slots=True)
class _Model:
    """New lines and the line that they stand beside: `above` them or below."""

    lines: tuple[str, ...]
    anchor: str
    above: bool
    rows: range


def repeated(rows: Rows, seen: Evidence, row: int, *, begun: bool = False) -> Iterator[EditDraft]:
    """Drafts of new lines beside lines that look like the neighbours of the last new lines.

    One that was `begun` by hand needs less evidence.
    """
    models = [model for each in seen.insertions[:_INSERTIONS] for model in _models(rows, each)]
    taken = {at for model in models for at in (*model.rows, model.rows.start - 1, model.rows.stop)}
    for model in models:
        support = sum(_as(model, other) for other in models)
        # One new line is only new; it says something of others when it is made with its neighbour's names, or when it
        # is a mark on what it stands above.
        shared = set(filter(is_name, words(model.anchor))) & set(words(" ".join(model.lines)))
        marks = not model.above and model.lines[0].lstrip().startswith(_MARKS)
        if is_import(model.lines[0]) or is_import(model.anchor) or (is_prose(model.lines[0]) and not marks):
            continue
        if support < 2 and not (shared and begun) and not marks:  # noqa: PLR2004
            continue
        wanted = shape(model.anchor)
        found = [
            at
            for at in range(max(0, row - _FARTHEST), min(len(rows), row + _FARTHEST))
            if at not in taken and rows.lines[at].strip() and shape(rows.lines[at]) == wanted
        ]
        for at in sorted(found, key=lambda at: abs(at - row))[:_PLACES]:
            draft = _beside(rows, model, at, support)
            if draft is not None:
                yield draft


def _models(rows: Rows, insertion: Insertion) -> Iterator[_Model]:
    if insertion.row is None or len(insertion.lines) > _LINES:
        return
    own = range(insertion.row, insertion.row + len(insertion.lines))
    if own.start and rows.lines[own.start - 1].strip():
        yield _Model(insertion.lines, rows.lines[own.start - 1], True, own)
    if own.stop < len(rows) and rows.lines[own.stop].strip():
        yield _Model(insertion.lines, rows.lines[own.stop], False, own)


def _as(model: _Model, other: _Model) -> bool:
    """Whether another insertion was made after the same model."""
    if model.above != other.above or len(model.lines) != len(other.lines):
        return False
    names = differing_names(model.anchor, other.anchor)
    if names is None:
        return False
    return [renamed_line(line, names).strip() for line in model.lines] == [line.strip() for line in other.lines]


def _beside(rows: Rows, model: _Model, at: int, support: int) -> EditDraft | None:
    names = differing_names(model.anchor, rows.lines[at])
    if names is None:
        return None
    outer, inner = indent_of(model.anchor), indent_of(rows.lines[at])
    copy = []
    for line in model.lines:
        if not line.startswith(outer):
            return None
        copy.append(inner + renamed_line(line[len(outer) :], names))
    size = len(copy)
    near = rows.lines[at + 1 : at + 1 + size] if model.above else rows.lines[max(0, at - size) : at]
    if near == copy or any(shape(one) == shape(other) for one, other in zip(near, copy, strict=False)):
        return None
    if not names and support < 2 and not model.lines[0].lstrip().startswith(_MARKS):  # noqa: PLR2004
        return None
    place = rows.start(at + 1) if model.above else rows.start(at)
    if model.above and at + 1 >= len(rows):
        return None
    text = "".join(line + rows.line_end for line in copy)
    return EditDraft(place, place, text, REPEATED, support, 0.8 if names else 0.6)
