"""Drafts that repeat a change on similar lines: where the lines differ in names, so does the change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

from calomel.suggest.drafts.evidence import EditDraft, Evidence, LineEdit
from calomel.suggest.drafts.text import (
    KEYWORDS,
    Op,
    Rows,
    changes,
    is_literal,
    is_name,
    is_operand,
    is_prose,
    kind,
    respelled,
    shape,
    texts_of,
    tokens,
)

MAKER: Final = "shape"
# Least similarity of two shapes, 0 to 100.
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
    """Drafts for lines that look like an edited line before the edit.

    Args:
        rows: of the document.
        seen: the last edits.
        row: of the cursor.
    """
    edited = {edit.row for edit in seen.edits} | {each.row for each in seen.insertions}
    done = {edit.new for edit in seen.edits}
    telling = seen.telling()
    near = range(max(0, row - _REACH), min(len(rows), row + _REACH))
    for rule in [Rule.of(edit) for edit in telling[:_EDITS]]:
        support = sum(rule.apply(edit.old) == edit.new for edit in seen.edits[:_COMPARED_EDITS])
        if support < 2 and rule.is_one_off:  # noqa: PLR2004
            continue
        alike = []
        for at in near:
            line = rows.lines[at]
            told = not line.strip() or line in done or (is_prose(line) and len(telling) < 2)  # noqa: PLR2004
            if at in edited or told or not rule.may_fit(line):
                continue
            score = fuzz.ratio(rule.shape, shape(line), score_cutoff=_ALIKE if support > 1 else _ALIKE_ONCE)
            if score:
                alike.append((-score, abs(at - row), at))
        for score, _, at in sorted(alike)[:_COMPARED]:
            line = rows.lines[at]
            text, likeness = rule.apply(line), rule.likeness(line)
            # A change of one function's call does not apply to another function's; one of two functions' calls may.
            if text is None or text == line or (likeness < 1 and support < 2):  # noqa: PLR2004
                continue
            likeness *= (-score / 100 + fuzz.ratio(rule.text, line.strip()) / 100) / 2
            yield EditDraft(rows.start(at), rows.end(at), text, MAKER, max(1, support), likeness)


@dataclass(frozen=True, slots=True)
class Rule:
    """The change of one line, to be applied to others."""

    old: tuple[str, ...]
    ops: tuple[Op, ...]
    text: str
    shape: str
    fixed: frozenset[str]

    @classmethod
    def of(cls, edit: LineEdit) -> Rule:
        """Derive it from an edit."""
        old = tokens(edit.old)
        ops, texts = changes(old, tokens(edit.new)), texts_of(old)
        inserted = {text for op in ops for text in op.inserted}
        # Replaced text must be there, unless it is a part of its replacement.
        replaced = {text for op in ops for text in texts[op.first : op.last] if not text.isspace()}
        return cls(texts, ops, edit.old.strip(), shape(edit.old), frozenset(replaced - inserted))

    @property
    def is_one_off(self) -> bool:
        """Whether only an operator was changed, which concerns one line; but `===` for `==` concerns the whole file.

        (koa, axios: they replaced all converting comparisons.)
        """
        touched = [text for op in self.ops for text in (*op.inserted, *self.old[op.first : op.last])]
        if touched in (["===", "=="], ["!==", "!="]):
            return False
        return not any(is_operand(text) or text in KEYWORDS for text in touched)

    def may_fit(self, line: str) -> bool:
        """A quick check before `apply`."""
        return all(text in line for text in self.fixed)

    def likeness(self, line: str) -> float:
        """Lower for a line that calls something else, if the change is among the arguments."""
        other = texts_of(tokens(line))
        places = aligned(self.old, other)
        for op in self.ops:
            callee = _callee(self.old, op.first)
            place = None if callee is None else places[callee]
            if callee is not None and (place is None or other[place] != self.old[callee]):
                return _OTHER_CALLEE
        return 1.0

    def apply(self, line: str) -> str | None:
        """What the line becomes; None if the rule does not apply."""
        one, other = self.old, texts_of(tokens(line))
        places = aligned(one, other)
        if any(text in KEYWORDS and at not in places for at, text in enumerate(other[: len(one) * 2])):
            return None
        names = self._names(other, places)
        result: list[str] = []
        at = 0
        for op in self.ops:
            span = self._span(op, other, places)
            if span is None or span[0] < at:
                return None
            inserted = list(_renamed(op.inserted, names))
            if span[0] == span[1] and _stands("".join(inserted), other, span[0]):
                return None
            result += (*other[at : span[0]], *inserted)
            at = span[1]
        return "".join([*result, *other[at:]])

    def _names(self, other: Sequence[str], places: Sequence[int | None]) -> dict[str, str]:
        """The other line's counterparts of the names and literals in this one."""
        inserted = {text for op in self.ops for text in op.inserted}
        found: dict[str, str] = {}
        for text, place in zip(self.old, places, strict=True):
            if (
                place is not None
                and text != other[place]
                and (is_name(text) or (is_literal(text) and text in inserted))
            ):
                found.setdefault(text, other[place])
        return found

    def _span(self, op: Op, other: Sequence[str], places: Sequence[int | None]) -> tuple[int, int] | None:
        """The range of the other line's tokens that the change replaces, empty for an insertion."""
        if op.first == op.last:
            at = self._insertion(op.first, other, places)
            return None if at is None else (at, at)
        known = [place for place in places[op.first : op.last] if place is not None]
        if len(known) < op.last - op.first or known[-1] - known[0] != op.last - op.first - 1:
            return None
        pairs = zip(self.old[op.first : op.last], known, strict=True)
        same = all(text not in self.fixed or text == other[place] for text, place in pairs)
        return (known[0], known[-1] + 1) if same else None

    def _insertion(  # noqa: PLR0911 (one for each kind of neighbour)
        self, first: int, other: Sequence[str], places: Sequence[int | None]
    ) -> int | None:
        """Before which token of the other line to insert what was inserted before token `first` of this one."""
        one = self.old
        at_left = next((at for at in range(first - 1, -1, -1) if not one[at].isspace()), None)
        at_right = next((at for at in range(first, len(one)) if not one[at].isspace()), None)
        left = None if at_left is None else places[at_left]
        right = None if at_right is None else places[at_right]
        if at_right is None:
            # At the end of the line: at the other line's end too.
            return len(other) if left is not None and left == len(other) - 1 else None
        if at_left is None:
            return right if right is not None and not "".join(other[:right]).strip() else None
        after, before = one[at_right], one[at_left]
        if after in _CLOSING and right is not None and after == other[right]:
            return right - (first < at_right and other[right - 1].isspace())
        if left is not None and before in _OPENING and before == other[left]:
            return left + 1
        if left is None or right is None or right <= left or "".join(other[left + 1 : right]).strip():
            return None
        if before != other[left] and after != other[right]:
            return None
        return left + 1 if at_left == first - 1 else right


def _stands(new: str, texts: Sequence[str], at: int) -> bool:
    """Whether the text to insert is there already."""
    return "".join(texts[at:]).startswith(new) or "".join(texts[:at]).endswith(new)


@lru_cache(maxsize=4096)
def aligned(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[int | None, ...]:
    """For each token of `one`, the index of its counterpart in `other`; names, numbers and strings may differ.

    Cached: the same lines are compared at every keystroke.
    """
    places: list[int | None] = [None] * len(one)
    for op in Levenshtein.opcodes(one, other):
        if op.tag in {"equal", "replace"}:
            for at, place in zip(range(op.src_start, op.src_end), range(op.dest_start, op.dest_end), strict=True):
                if kind(one[at]) == kind(other[place]):
                    places[at] = place
    return tuple(places)


def _callee(texts: Sequence[str], at: int) -> int | None:
    """The index of the name whose arguments include token `at`."""
    depth = 0
    for place in range(min(at, len(texts)) - 1, -1, -1):
        depth += (texts[place] in {")", "]", "}"}) - (texts[place] in {"(", "[", "{"})
        if depth < 0:
            return place - 1 if place and is_name(texts[place - 1]) else None
    return None


def _renamed(texts: Sequence[str], names: Mapping[str, str]) -> Iterator[str]:
    """Tokens with their names replaced by the other line's, also within longer names."""
    pieces = {old: new for old, new in names.items() if is_name(old) and is_name(new)}
    for text in texts:
        if text in names:
            yield names[text]
        elif is_literal(text) and text[1:-1] in pieces:
            yield text[0] + pieces[text[1:-1]] + text[-1]
        else:
            yield respelled(text, pieces) if is_operand(text) else text
