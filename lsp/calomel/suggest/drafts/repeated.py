"""A line that was inserted beside another is inserted beside lines like it, with their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from calomel.suggest.drafts.draft import EditDraft
from calomel.suggest.drafts.evidence import Evidence, Insertion
from calomel.suggest.drafts.renaming_map import differing_names, renamed_line
from calomel.suggest.drafts.rows import Rows, indent_of
from calomel.suggest.drafts.tokens import is_import, is_name, is_prose, shape, words

MAKER: Final = "repeated"
_LINES: Final = 4
_REACH: Final = 400
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
            for at in range(max(0, row - _REACH), min(len(rows), row + _REACH))
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
    return EditDraft(place, place, text, MAKER, support, 0.8 if names else 0.6)
