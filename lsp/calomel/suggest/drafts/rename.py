"""Drafts that continue a rename: other uses of the old name with the same meaning, and names derived from it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, Literal

import regex

from calomel.code.languages import RESERVED, TYPES
from calomel.code.lines import Rows
from calomel.code.names import Names, parts, respelled, spellings
from calomel.code.scopes import around, binds, block_end, function_rows, is_inline, parameter_head
from calomel.code.tokens import is_comment, is_name, is_quoted
from calomel.prompts.parts import differences
from calomel.suggest.drafts.evidence import EditDraft, Evidence, LineEdit

MAKER: Final = "rename"
_SHORTEST: Final = 3
_PLACES: Final = 48
# The likeness of renaming a derived name, which is less sure.
_RELATED: Final = 0.5
# A type's name may be another one's, too, such as a parameter `string` or `list`.
_NEVER: Final = RESERVED - TYPES
# Share of common words for a line to be the other with renamed names.
_SAME: Final = 0.6
_DECLARED: Final = (
    r"(?:\b(?:let|const|var|mut|for)\s+(?:mut\s+)?[({{\[]?|^\s*\(?)(?:\w+\s*,\s*)*{0}(?:\s*,\s*\w+)*[)}}\]]?"
    r"\s*(?::[^=]*)?(?::?=(?!=)|\bin\b|\bof\b)"
)
# Before the name that a block gives an error or a context.
_CAUGHT: Final = re.compile(r"^\s*(?:except|with|async with)\b.*\bas\s+$")
_FIELD: Final = r"\s+(?:pub(?:\([^)]*\))?\s+|public\s+|private\s+|readonly\s+)*{0}\s*[?:\s]\s*\S"
# Before the name of a parameter; its type has other text before it.
_NAMED: Final = re.compile(r"(?:^|[(,*.{])\s*(?:(?:mut|public|private|protected|readonly|const|final)\s+)*$")
_Use = Literal["attribute", "keyword", "quoted", "plain"]


@dataclass(frozen=True, slots=True)
class Renaming:
    """`old` became `new`.

    Attributes:
        old, new: names.
        support: number of lines in which it did.
        use: how it is used in them.
        row: of that line.
        local: the lines in which the name means the same; None for everywhere.
        partly: that line still has the old name, too.
        copied: the lines of a copy, in which alone it goes on; None if the line is no copy's.
        around: the lines that a declaration or an attribute stands in, outermost last; None for other uses.
        called: whether it is a function's name, and something else has it, too, or the reverse; None if nothing has.
    """

    old: str
    new: str
    support: int
    use: _Use
    row: int | None
    local: range | None
    partly: bool
    copied: range | None = None
    called: bool | None = None
    around: tuple[str, ...] | None = None

    def holds(self, rows: Rows, start: int, end: int, use: _Use) -> bool:
        """Whether the old name means the same at a place with this use."""
        row = rows.row(start)
        if (
            (self.copied is not None and row not in self.copied)
            or (use != "quoted" and self.called not in {None, _is_function(rows.before(start), rows.behind(end))})
            or (self.use == "attribute" and use == "plain" and _is_variable(rows, row, self.old))
            # The key or field of the same name in another structure.
            or (self.around is not None and declares(rows, row, self.old) and around(rows, row) != self.around)
        ):
            return False
        if self.use == "quoted" != use:
            return False  # words in a string are not names in code
        if self.local is None:
            return len(self.old) >= _SHORTEST or use == "attribute"
        return use == "quoted" or (use != "attribute" if row in self.local else use == "keyword")


def rename(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts that continue the renames among the last edits, in any language with names."""
    for each in renamings(rows, seen):
        by_row: defaultdict[int, list[regex.Match[str]]] = defaultdict(list)
        variable = each.row is not None and rows.names.is_variable(rows.lines[each.row], each.new)
        for match in rows.uses(each.old):
            if match.lastgroup or not variable:
                by_row[rows.row(match.start())].append(match)
            if len(by_row) > _PLACES:
                break
        for row, matches in by_row.items():
            yield from _of_line(rows, each, row, matches)


def _of_line(rows: Rows, renaming: Renaming, row: int, matches: Sequence[regex.Match[str]]) -> Iterator[EditDraft]:
    """Drafts for all uses of the old name in a line, and for only those of the same kind."""
    line, start = rows.lines[row], rows.start(row)
    uses = [(match, _use(rows, row, line, match.start() - start, match.end() - start)) for match in matches]
    kept = [(match, use) for match, use in uses if renaming.holds(rows, match.start(), match.end(), use)]
    # Code only: changing a string or a comment is a separate change, and less sure.
    code = [match for match, use in kept if use != "quoted"]
    same = [match for match, use in kept if use == renaming.use]
    quoted = [match for match, use in kept if use == "quoted"]
    outside = renaming.local is not None and row not in renaming.local
    likeness = 0.4 if outside or (renaming.partly and row == renaming.row) else 1.0
    for chosen, worth in (code, 1.0), (same if len(same) < len(code) else [], 0.9), (quoted, 0.6):
        if chosen:
            spelled = dict.fromkeys(_respelled(rows, chosen, renaming, full=full) for full in (True, False))
            for text, share in zip(spelled, (1.0, 0.9), strict=False):
                first, last = chosen[0].start(), chosen[-1].end()
                alone, sure = chosen is quoted, likeness * worth * share
                yield EditDraft(first, last, text, MAKER, renaming.support, sure, alone=alone)


def relatives(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for `OldName` and `OLD_NAME` if `old_name` was renamed, and for names with a word replaced twice."""
    found = renamings(rows, seen)
    names = {
        old: (new, each.support)
        for each in reversed(found)
        if each.local is None and len(parts(each.old)) > 1
        for old, new in zip(spellings(each.old), spellings(each.new), strict=True)
        # A name's own words without its sigil are another name.
        if not each.old.endswith(old)
    }
    replaced = Counter(pair for each in found if (pair := _replaced_word(each)) is not None)
    for (old, new), count in replaced.items():
        for name in rows.names.all_in(rows.text) if count > 1 else ():
            if is_name(name) and old in parts(name) != [old]:
                names.setdefault(name, (respelled(name, {old: new}), count))
    for old, (new, support) in names.items():
        for match in rows.uses(old):
            alone = rows.is_quoted(match.start())
            yield EditDraft(match.start(), match.end(), new, MAKER, support, _RELATED, alone=alone)


def _replaced_word(renaming: Renaming) -> tuple[str, str] | None:
    """The one word in which two names of several words differ."""
    one, other = parts(renaming.old), parts(renaming.new)
    differing = [(a, b) for a, b in zip(one, other, strict=False) if a != b]
    return differing[0] if len(one) == len(other) > 1 and len(differing) == 1 else None


@lru_cache(maxsize=512)
def renamed_words(old: str, new: str, names: Names) -> tuple[tuple[str, str], ...]:
    """Pairs of replaced whole names: `old_name` and `new_name`, not `old` and `new`."""
    one, other = names.pieces(old), names.pieces(new)
    pairs: dict[str, str] = {}
    for low, high, first, last in differences(one, other):
        if high - low != last - first or _beside(one, low, high) != _beside(other, first, last):
            continue
        changed = [(a, b) for a, b in zip(one[low:high], other[first:last], strict=True) if a != b]
        if all(names.is_name(a) and names.is_name(b) for a, b in changed):
            for a, b in changed:
                if {a, b}.isdisjoint(_NEVER):
                    pairs.setdefault(a, b)
    return tuple(pairs.items())


def _beside(pieces: Sequence[str], first: int, last: int) -> tuple[str, str]:
    """The texts before and after, ignoring blanks: `f(x)` to `g[x]` is not a rename."""
    before = next((piece for piece in reversed(pieces[:first]) if not piece.isspace()), "")
    return before, next((piece for piece in pieces[last:] if not piece.isspace()), "")


def renamings(rows: Rows, seen: Evidence) -> list[Renaming]:
    """The renames among the last edits, newest first; without those that a newer one undid."""
    support: Counter[tuple[str, str]] = Counter()
    # An attribute and a parameter of the same name are two.
    newest: dict[tuple[tuple[str, str], _Use], LineEdit] = {}
    for edit in (*seen.edits, *seen.copies):
        for pair in renamed_words(edit.old, edit.new, rows.names):
            if _is_rename(rows.names, edit, pair) and pair[::-1] not in support:
                support[pair] += 1
                for use in _uses(rows, edit, pair[1]):
                    newest.setdefault((pair, use), edit)
    found = [_renaming(rows, seen, pair, use, edit, support[pair]) for (pair, use), edit in newest.items()]
    # A name that was replaced by different ones has no single new name.
    olds = Counter(old for old, _ in support)
    return [each for each in found if each is not None and olds[each.old] == 1]


def _uses(rows: Rows, edit: LineEdit, name: str) -> tuple[_Use, ...]:
    """How a line uses a name."""
    if _is_field(rows, edit, name):
        return ("attribute",)
    return tuple(
        dict.fromkeys(_use(rows, edit.row, edit.new, *each.span()) for each in rows.names.uses(edit.new, name))
    )


def _is_rename(names: Names, edit: LineEdit, pair: tuple[str, str]) -> bool:
    """Whether a line is the same except for names; a comment, except for this one."""
    one, other = names.pieces(edit.old), names.pieces(edit.new)
    if is_comment(edit.new):
        return len(one) == len(other) and [pair[1] if word == pair[0] else word for word in one] == other
    changed_places = pair[0] in other and pair[1] in one
    return not changed_places and SequenceMatcher(None, one, other, autojunk=False).ratio() >= _SAME


def _renaming(
    rows: Rows, seen: Evidence, pair: tuple[str, str], use: _Use, edit: LineEdit, support: int
) -> Renaming | None:
    old, new = pair
    local = _local(rows, seen.edits, old, new) if use == "plain" else None
    if local is None:
        # A short name is ambiguous, except as an attribute or within one function.
        if (len(old) < _SHORTEST and use != "attribute") or old in TYPES or new in TYPES:
            return None
        # A new name that exists already is something else: this was a replacement, not a rename.
        if support < 2 and _stands_elsewhere(rows, new, seen):  # noqa: PLR2004
            return None
    called = None
    if local is None and use != "quoted":
        start, end = _first(rows.names, edit.new, new)
        called = _is_function(edit.new[:start], edit.new[end:])
        called = called if _has_other(rows, old, called=called) else None
    partly = _first(rows.names, edit.new, old) != (-1, -1)
    own = edit.row is not None and (declares(rows, edit.row, new) or _OWN.search(edit.new) is not None)
    outside = around(rows, edit.row) if own and edit.row is not None and local is None else None
    return Renaming(old, new, support, use, edit.row, local, partly, edit.copied, called, outside)


# The name of a key at the start of its line.
_KEY: Final = r"[ \t]*(?:-[ \t]+)*[\"']?{0}[\"']?[?!]?\s*[:=](?!=)"
_OWN: Final = re.compile(r"\b(?:self|this)\.")


def declares(rows: Rows, row: int, name: str | None = None) -> bool:
    """Whether a line outside of functions begins with a key or a field, or with that of a name."""
    line, pattern = rows.lines[row], r"[\w$.-]+" if name is None else re.escape(name)
    begins = re.match(_KEY.format(pattern), line) or re.match(_FIELD.format(pattern), line)
    return begins is not None and function_rows(rows, row) is None


# Before the name of a function where it is defined, and how many characters before it.
_NEAR: Final = 200
_DEFINES: Final = re.compile(r"\b(?:def|fn|func|function)\s+(?:\([^)]*\)\s*)?$")


def _is_function(before: str, after: str) -> bool:
    """Whether a name stands between them as a function's."""
    return after.lstrip().startswith("(") or _DEFINES.search(before[-_NEAR:]) is not None


def _has_other(rows: Rows, name: str, *, called: bool) -> bool:
    """Whether a function has this name where something else was renamed, or the reverse."""
    for match in rows.uses(name):
        before, after, row = rows.before(match.start()), rows.behind(match.end()), rows.row(match.start())
        sets = before.endswith(("self.", "this.")) and re.match(r"\s*(?::[^=]*)?=(?!=)", after) is not None
        field = sets or (_declares_field(rows.lines[row], name) and function_rows(rows, row) is None)
        if field if called else _DEFINES.search(before[-_NEAR:]):
            return True
    return False


def _is_variable(rows: Rows, row: int, name: str) -> bool:
    """Whether a name is a parameter or a variable of the function around a line."""
    inside = function_rows(rows, row)
    return inside is not None and _is_variable_in(rows, name, inside)


@lru_cache(maxsize=4)
def _is_variable_in(rows: Rows, name: str, inside: range) -> bool:
    """The same for the lines of a function; remembered, since one asks for each of its uses."""
    low, high = rows.start(inside.start), rows.end(inside.stop - 1)
    uses = rows.names.uses(rows.text[low:high], name)
    return any(_is_bound(rows, low + match.start(), name, inside) for match in uses)


def _is_bound(rows: Rows, offset: int, name: str, inside: range) -> bool:
    """Whether a name at an offset is declared there as a parameter or a variable of a function."""
    bound = binds(rows, offset)
    if bound is not None:
        return bound and function_rows(rows, rows.row(offset), offset) == inside
    row, before = rows.row(offset), rows.before(offset)
    parameter = parameter_head(rows, row, len(before)) == inside.start and _NAMED.search(before) is not None
    return parameter or (
        row != inside.start and re.search(_DECLARED.format(re.escape(name)), rows.lines[row]) is not None
    )


def _is_field(rows: Rows, edit: LineEdit, name: str) -> bool:
    """Whether a line declares a field of a type."""
    return edit.row is not None and _declares_field(edit.new, name) and function_rows(rows, edit.row) is None


def _declares_field(line: str, name: str) -> bool:
    return re.match(_FIELD.format(re.escape(name)), line) is not None


def _stands_elsewhere(rows: Rows, name: str, seen: Evidence) -> bool:
    edited = seen.rows()
    places = (match.start() for match in rows.uses(name))
    return any(rows.row(place) not in edited and not rows.is_quoted(place) for place in places)


def _respelled(rows: Rows, chosen: Sequence[regex.Match[str]], renaming: Renaming, *, full: bool) -> str:
    """The text from the first to the last place with the new name.

    `full`: `{ name }`, which is `{ name: name }` in JavaScript and Rust, keeps the name of the field.
    """
    text, at = "", chosen[0].start()
    for match in chosen:
        shorthand = full and renaming.use == "plain" and _is_shorthand(rows, match.start(), match.end())
        text += rows.text[at : match.start()] + (f"{renaming.old}: " if shorthand else "") + renaming.new
        at = match.end()
    return text


def _is_shorthand(rows: Rows, start: int, end: int) -> bool:
    line = rows.before(start)
    if any(line.count(quote) % 2 for quote in "\"'`"):
        return False  # a placeholder in a string
    # `${name}` is a placeholder, too.
    opened = re.search(r"(?<![$#@])\{[^{}()\[\]=]*$", line)
    if not opened or re.match(r"\s*(?:import|export|const|let|var|use)\b[^=]*$", line):
        return False
    return re.search(r"[{,]\s*$", line) is not None and re.match(r"\s*[,}]", rows.text[end : end + 40]) is not None


def _first(names: Names, line: str, name: str) -> tuple[int, int]:
    return next((match.span() for match in names.uses(line, name)), (-1, -1))


def _use(rows: Rows, row: int | None, line: str, start: int, end: int) -> _Use:
    before, after = line[:start].rstrip(), line[end:].lstrip()
    if is_quoted(line, start, rows.names) if row is None else rows.is_quoted(rows.start(row) + start):
        return "quoted"
    if before.endswith((".", "->")) and not before.endswith(".."):
        return "attribute"
    if before.endswith(("(", ",", "{")) and re.match(r"=(?!=)", after):
        return "keyword"
    return "plain"


def _local(rows: Rows, edits: Sequence[LineEdit], old: str, new: str) -> range | None:
    """The function whose parameter or variable was renamed; None if the name may be visible outside."""
    for edit in edits:
        if edit.row is None or (old, new) not in renamed_words(edit.old, edit.new, rows.names):
            continue
        uses = (match.span() for match in rows.names.uses(edit.new, new))
        place = next((each for each in uses if _use(rows, edit.row, edit.new, *each) == "plain"), None)
        if place is None:
            continue
        start, _ = place
        if is_inline(rows, rows.start(edit.row) + start):
            return range(edit.row, edit.row + 1)
        if _CAUGHT.search(edit.new[:start]):
            return range(edit.row, block_end(rows, edit.row))
        head = parameter_head(rows, edit.row, start)
        inside = function_rows(rows, edit.row if head is None else head, rows.start(edit.row) + start)
        if inside is None:
            continue
        if rows.names.interpolated and new.startswith("$"):
            return inside  # PHP, Perl and PowerShell write types and keywords before it, or nothing
        if _is_bound(rows, rows.start(edit.row) + start, new, inside):
            return inside
    return None
