"""Drafts that continue a rename: of the uses of one binding."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate
from typing import Final

from calomel.code.bindings import EXPORT, PAIR, Mention, scoping_of
from calomel.code.languages import RESERVED, TYPES
from calomel.code.lines import Rows
from calomel.code.names import Names
from calomel.code.scopes import function_rows
from calomel.code.tokens import is_comment
from calomel.prompts.parts import differences
from calomel.suggest.drafts.evidence import EditDraft, Evidence, LineEdit
from calomel.suggest.drafts.remaining import Remaining, occurrences

MAKER: Final = "rename"
_SHORTEST: Final = 3
_PLACES: Final = 48
# The likeness of a word in a comment or a string, which is less sure.
_WORDS: Final = 0.6
# What is no name where no tree tells; a type's may be another one's, too, such as a parameter `string` or `list`.
_NEVER: Final = RESERVED - TYPES
# Share of common words for a line to be the other with renamed names.
_SAME: Final = 0.6
# What defines a name, `{0}`, that other files can see: a function, a type, or a variable that is in no function.
_DEFINED: Final = (
    r"^\s*(?:(?:export|default|async|public|static|abstract|pub(?:\([^)]*\))?|const)\s+)*"
    r"(?:def|class|fn|func|function\*?|struct|enum|trait|interface|type)\s+(?:\([^)\n]*\)\s*)?{0}\b"
    r"|^(?:export\s+)?(?:(?:const|let|var)\s+)?{0}\s*(?::[^=\n]*)?=(?!=)"
)


@dataclass(frozen=True, slots=True)
class Renaming:
    """`old` became `new`.

    Attributes:
        old, new: names.
        support: number of lines in which it did.
        is_known: whether the file says what it stands for: then nothing else is to be replaced.
        places: where the same is still called `old` in code, in the order of the text.
        words: where a comment names it, or a string where only that was changed.
    """

    old: str
    new: str
    support: int
    is_known: bool = False
    places: tuple[Mention, ...] = ()
    words: tuple[Mention, ...] = ()


def rename(rows: Rows, renames: Sequence[Renaming]) -> Iterator[EditDraft]:
    """Drafts that continue renames, in any language with names.

    Comments follow when no code is left.
    """
    for each in renames:
        by_row: defaultdict[int, list[Mention]] = defaultdict(list)
        for place in each.places or each.words:
            by_row[rows.row(place.start)].append(place)
            if len(by_row) > _PLACES:
                break
        likeness = 1.0 if each.places else _WORDS
        for found in by_row.values():
            text = _respelled(rows, found, each)
            yield EditDraft(found[0].start, found[-1].end, text, MAKER, each.support, likeness, alone=not each.places)


def _respelled(rows: Rows, found: Sequence[Mention], renaming: Renaming) -> str:
    """The text from the first to the last place with the new name; `{ name }` keeps the name that others know."""
    text, at = "", found[0].start
    for each in found:
        text += rows.text[at : each.start] + (each.both or "{1}").format(each.name, renaming.new)
        at = each.end
    return text


@lru_cache(maxsize=512)
def renamed_words(old: str, new: str, names: Names) -> tuple[tuple[str, str], ...]:
    """Pairs of replaced whole names: `old_name` and `new_name`, not `old` and `new`."""
    pairs: dict[str, tuple[str, str]] = {}
    for _, one, other in _renamed_at(old, new, names):
        pairs.setdefault(one, (one, other))
    return tuple(pairs.values())


@lru_cache(maxsize=512)
def _renamed_at(old: str, new: str, names: Names) -> tuple[tuple[int, str, str], ...]:
    """Replaced whole names: where the new one starts in its line, the old one, and the new one."""
    one, other = names.pieces(old), names.pieces(new)
    found: list[tuple[int, str, str]] = []
    for low, high, first, last in differences(one, other):
        if high - low != last - first or _beside(one, low, high) != _beside(other, first, last):
            continue
        changed = [(at, one[low + at], other[first + at]) for at in range(high - low)]
        changed = [each for each in changed if each[1] != each[2]]
        if all(names.is_name(a) and names.is_name(b) for _, a, b in changed):
            never = _NEVER if scoping_of(names.grammar) is None else frozenset[str]()
            starts = [len("".join(other[: first + at])) for at, _, _ in changed]
            found += [
                (start, a, b) for start, (_, a, b) in zip(starts, changed, strict=True) if {a, b}.isdisjoint(never)
            ]
    return tuple(found)


def _beside(pieces: Sequence[str], first: int, last: int) -> tuple[str, str]:
    """The texts before and after, ignoring blanks: `f(x)` to `g[x]` is not a rename."""
    before = next((piece for piece in reversed(pieces[:first]) if not piece.isspace()), "")
    return before, next((piece for piece in pieces[last:] if not piece.isspace()), "")


@dataclass(slots=True)
class _Pair:
    """The edits that made a name another one, newest first, and where the new one stands in this text."""

    edits: list[LineEdit] = field(default_factory=list)
    starts: set[int] = field(default_factory=set)


def renamings(rows: Rows, seen: Evidence) -> list[Renaming]:
    """The renames among the last edits, newest first, also those of which nothing is left to do.

    Without those that a newer one undid.
    """
    pairs = _pairs(rows, seen)
    for edit in (each for each in (*seen.edits, *seen.copies, *seen.older) if each.row is not None):
        line = rows.start(edit.row or 0)
        renamed = _renamed_at(edit.old, edit.new, rows.names)
        for (old, new), pair in pairs.items():
            pair.starts |= {line + start for start, *names in renamed if names == [old, new]}
            if new not in edit.old:
                pair.starts |= {line + start for start in _spelled_out(edit.new, old, new)}
    # A name that was replaced by different ones has no single new name.
    olds = Counter(old for old, _ in pairs)
    found = (_renaming(rows, old, new, pair) for (old, new), pair in pairs.items() if olds[old] == 1)
    return [each for each in found if each is not None]


def _pairs(rows: Rows, seen: Evidence) -> dict[tuple[str, str], _Pair]:
    """The names that became others in the last edits, newest first; none that a newer edit turned back."""
    pairs: defaultdict[tuple[str, str], _Pair] = defaultdict(_Pair)
    edits = (*seen.edits, *seen.copies)
    made = {(edit.age, *pair) for edit in edits for pair in renamed_words(edit.old, edit.new, rows.names)}
    for edit in edits:
        for _, old, new in _renamed_at(edit.old, edit.new, rows.names):
            if (edit.age, new, old) in made:
                continue  # two names changed places
            unseen = edit.is_foreign and not (_defines(edit.old, old) and _defines(edit.new, new))
            if unseen or not _is_rename(rows.names, edit, (old, new)) or (new, old) in pairs:
                continue
            if edit not in pairs[old, new].edits:
                pairs[old, new].edits.append(edit)
    return pairs


def _spelled_out(line: str, old: str, new: str) -> Iterator[int]:
    """Where a line has the new name beside the one that others know."""
    for form, shift in (PAIR, len(old) + 2), (EXPORT, 0):
        text = form.format(old, new)
        yield from (found.start() + shift for found in re.finditer(re.escape(text), line))


def is_pure(edit: LineEdit, renames: Iterable[Renaming], names: Names) -> bool:
    """Whether an edit of a line did nothing but rename."""
    one, new, renames = names.pieces(edit.old), edit.new, tuple(renames)
    for each in renames:
        for form in (PAIR, EXPORT):
            new = new.replace(form.format(each.old, each.new), each.new)
    other = names.pieces(new)
    pairs = {(each.old, each.new) for each in renames}
    renamed = {start for start, *pair in _renamed_at(edit.old, new, names) if tuple(pair) in pairs}
    starts = accumulate(map(len, other), initial=0)
    return len(one) == len(other) and all(
        a == b or start in renamed for a, b, start in zip(one, other, starts, strict=False)
    )


def _defines(line: str, name: str) -> bool:
    """Whether a line defines a name that other files can see."""
    return re.search(_DEFINED.format(re.escape(name)), line) is not None


def _is_rename(names: Names, edit: LineEdit, pair: tuple[str, str]) -> bool:
    """Whether a line is the same except for names; a comment, except for this one."""
    one, other = names.pieces(edit.old), names.pieces(edit.new)
    if is_comment(edit.new):
        return len(one) == len(other) and [pair[1] if word == pair[0] else word for word in one] == other
    changed_places = pair[0] in other and pair[1] in one
    return not changed_places and SequenceMatcher(None, one, other, autojunk=False).ratio() >= _SAME


def _renaming(rows: Rows, old: str, new: str, pair: _Pair) -> Renaming | None:
    every, support = occurrences(rows, old, new), len(pair.edits)
    edited = [each for each in every if each.start in pair.starts]
    if edited and all(each.role == "token" for each in edited):
        return None
    left = Remaining(rows, every, edited, new, support)
    groups = {(each.role, each.binding, each.receiver, each.called): each for each in reversed(edited)}
    copied = next((edit.copied for edit in pair.edits if edit.copied is not None), None)
    found = [place for each in groups.values() for place in left.like(each)] if edited else list(left.imported())
    places = {each.start: each for each in found if copied is None or rows.row(each.start) in copied}
    homes = {each.binding for each in edited if each.binding is not None and each.role in {"variable", "member"}}
    words = [place for home in homes for place in left.words(home)] if copied is None and len(homes) == 1 else []
    words += [each for each in left.texts(edited, within=bool(homes)) if each not in words]
    ordered = tuple(places[start] for start in sorted(places))
    bindings = [each.binding for each in edited]
    is_local = bool(edited) and all(each is not None and each.is_local for each in bindings)
    by_tree = scoping_of(rows.names.grammar) is not None
    if len(old) < _SHORTEST and not is_local and (None in bindings or not by_tree):
        ordered = tuple(each for each in ordered if each.role == "member")
    elif None in bindings and (old in TYPES or new in TYPES):
        ordered = ()
    is_known = any(each.binding is not None or each.role == "member" for each in edited)
    return Renaming(old, new, support, is_known, ordered, tuple(words))


# The key or the field at the start of a line.
_KEY: Final = re.compile(
    r"[ \t]*(?:-[ \t]+)*[\"']?[\w$.-]+[\"']?[?!]?\s*[:=](?!=)"
    r"|\s+(?:pub(?:\([^)]*\))?\s+|public\s+|private\s+|readonly\s+)*[\w$.-]+\s*[?:\s]\s*\S"
)


def declares(rows: Rows, row: int) -> bool:
    """Whether a line outside of functions begins with a key or a field."""
    return _KEY.match(rows.lines[row]) is not None and function_rows(rows, row) is None
