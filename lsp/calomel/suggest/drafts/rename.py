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

from rapidfuzz.distance import Levenshtein

from calomel.code.bindings import EXPORT, PAIR, Binding, Mention, mentions, scoping_of
from calomel.code.languages import RESERVED, TYPES
from calomel.code.lines import Rows
from calomel.code.names import Names, parts
from calomel.code.scopes import around, by_words, function_rows, is_in_link, may_be
from calomel.code.tokens import is_comment
from calomel.prompts.parts import differences
from calomel.suggest.drafts.evidence import EditDraft, Evidence, LineEdit

MAKER: Final = "rename"
_SHORTEST: Final = 3
_PLACES: Final = 48
# The likeness of a word in a comment or a string, which is less sure.
_WORDS: Final = 0.6
# What is no name where no tree tells; a type's may be another one's, too, such as a parameter `string` or `list`.
_NEVER: Final = RESERVED - TYPES
# Share of common words for a line to be the other with renamed names.
_SAME: Final = 0.6
_FIELD: Final = r"\s+(?:pub(?:\([^)]*\))?\s+|public\s+|private\s+|readonly\s+)*{0}\s*[?:\s]\s*\S"
# Before a parameter of TypeScript that is a field, too.
_PROPERTY: Final = re.compile(r"\b(?:public|private|protected|readonly)\s+$")
# What defines a name, `{0}`, that other files can see: a function, a type, or a variable that is in no function.
_DEFINED: Final = (
    r"^\s*(?:(?:export|default|async|public|static|abstract|pub(?:\([^)]*\))?|const)\s+)*"
    r"(?:def|class|fn|func|function\*?|struct|enum|trait|interface|type)\s+(?:\([^)\n]*\)\s*)?{0}\b"
    r"|^(?:export\s+)?(?:(?:const|let|var)\s+)?{0}\s*(?::[^=\n]*)?=(?!=)"
)
# Characters between a receiver and its member, at most.
_DOT: Final = 2
# Letters in which a misspelt word differs from the right one.
_SLIP: Final = 2
_SHORT: Final = 4
# Before a parameter that a comment explains.
_DOCUMENTS: Final = re.compile(r"(?:@param|@arg)\b(?:\s*\{[^}]*\})?\s*\[?$|:param\b(?:\s+[\w.]+)?\s+$")


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


def rename(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts that continue the renames among the last edits, in any language with names.

    Comments follow when no code is left.
    """
    for each in renamings(rows, seen):
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


def _mentions(rows: Rows, *names: str) -> tuple[Mention, ...]:
    found = mentions(rows, *names)
    return by_words(rows, *names) if found is None else found


def _renaming(rows: Rows, old: str, new: str, pair: _Pair) -> Renaming | None:
    every, support = _mentions(rows, old, new), len(pair.edits)
    edited = [each for each in every if each.start in pair.starts]
    if edited and all(each.role == "token" for each in edited):
        return None
    left = _Left(rows, every, edited, new, support)
    groups = {(each.role, each.binding, each.receiver, each.called): each for each in reversed(edited)}
    copied = next((edit.copied for edit in pair.edits if edit.copied is not None), None)
    found = [place for each in groups.values() for place in left.like(each)] if edited else list(left.imported())
    places = {each.start: each for each in found if copied is None or rows.row(each.start) in copied}
    homes = {each.binding for each in edited if each.binding is not None and each.role in {"variable", "member"}}
    words = [place for home in homes for place in left.words(home)] if copied is None and len(homes) == 1 else []
    words += [each for each in left.texts(edited, within=bool(homes)) if each not in words]
    is_local = bool(edited) and all(each.binding is not None and each.binding.is_local for each in edited)
    is_known = any(each.binding is not None or each.role == "member" for each in edited)
    ordered = tuple(places[start] for start in sorted(places))
    known = all(each.binding is not None for each in edited)
    if not is_local and len(old) < _SHORTEST and not (known and scoping_of(rows.names.grammar)):
        ordered = tuple(each for each in ordered if each.role == "member")
    elif not known and (old in TYPES or new in TYPES):
        ordered = ()
    return Renaming(old, new, support, is_known, ordered, tuple(words))


class _Left:
    """What is left of a rename: the places of the old name that mean what was renamed."""

    def __init__(self, rows: Rows, every: Sequence[Mention], edited: Sequence[Mention], new: str, support: int) -> None:
        self._rows, self._edited, self._support = rows, edited, support
        starts = {each.start for each in edited}
        self._every = every
        self._old = [each for each in every if each.name != new or each.start in starts]
        self._old = [each for each in self._old if each.start not in starts]
        self._strangers = [each for each in every if each.name == new and each.start not in starts]

    def like(self, edited: Mention) -> Iterable[Mention]:
        """The places that change as an edited one did."""
        if edited.role == "variable":
            return self._free(edited) if edited.binding is None else self._bound(edited, edited.binding)
        if edited.role == "member":
            return self._members(edited)
        if edited.role == "keyword":
            return [each for each in self._old if each.role == "keyword" and self._callee(each) == self._callee(edited)]
        if edited.role == "key":
            home = around(self._rows, self._rows.row(edited.start))
            return [
                each
                for each in self._old
                if each.role == "key" and home == around(self._rows, self._rows.row(each.start))
            ]
        return ()

    def _free(self, edited: Mention) -> Iterator[Mention]:
        """Of a name that this file does not declare, one use says nothing about the others."""
        if self._support > 1:
            yield from (
                each
                for each in self._old
                if each.role == "variable" and each.binding is None and each.called == edited.called
            )

    def _bound(self, edited: Mention, home: Binding) -> list[Mention]:
        same = [each for each in self._old if each.binding == home and each.role in {"variable", "member"}]
        new = [each for each in self._strangers if each.binding == home and each.role in {"variable", "member"}]
        declared = [each for each in self._edited if each.binding == home and each.mode]
        imported = any(each.mode == "imports" and each.binding == home for each in self._every)
        if not declared and (imported or any(each.mode for each in new)):
            # Another one was put in its place, which concerns the uses alone.
            enough = self._support > 1
            same = [each for each in same if not each.mode and each.called == edited.called] if enough else []
        elif new and self._support < 2:  # noqa: PLR2004
            return []
        if declared and any(each.mode == "parameter" for each in declared):
            same += self._keywords(home)
            if any(_PROPERTY.search(self._rows.before(each.start)) for each in declared):
                same += self._fields(declared[0])
        if declared and home.is_class:
            members = [
                each for each in (*self._edited, *self._old) if each.binding is not None and each.binding.is_class
            ]
            if len({each.binding for each in members if each.mode and each in self._edited}) > 1:
                # What several classes have.
                same += [each for each in members if each.binding != home and each in self._old]
            same += self._foreign(home)
        return same

    def _members(self, edited: Mention) -> list[Mention]:
        if edited.binding is not None and (edited.mode or not edited.called):
            return self._bound(edited, edited.binding)
        receivers = {each.receiver for each in self._edited if each.role == "member" and not each.mode}
        return [
            each
            for each in self._old
            if each.role == "member"
            and each.called == edited.called
            and not each.mode
            and each.binding == edited.binding
            and (each.receiver == edited.receiver or len(receivers) > 1)
        ]

    def _foreign(self, home: Binding) -> list[Mention]:
        """Members of other values, which are those of a class if no other one has them, and the value may be of it."""
        others = any(each.binding != home and (each.mode == "methods" or each.binding) for each in self._old)
        owner = home.scope.removeprefix("class ")
        return [
            each
            for each in self._old
            if each.role == "member"
            and each.binding is None
            and not others
            and (may_be(self._rows, each.start, owner) or self._is_slip(each))
        ]

    def _fields(self, declared: Mention) -> list[Mention]:
        """The uses of a field that a parameter of the constructor declares."""
        members = [each for each in self._old if each.role == "member" and each.binding is not None]
        return [each for each in members if each.binding.start <= declared.start < each.binding.end]  # type: ignore[union-attr]

    def _keywords(self, home: Binding) -> list[Mention]:
        """The arguments that name a parameter at the calls of its function."""
        found = [each for each in self._old if each.role == "keyword" and each.callee is not None]
        names = {name: None for each in found if (name := self._callee(each)[0])}
        kept: list[Mention] = []
        for name in names:
            calls = {each.start: each for each in _mentions(self._rows, name)}
            kept += [each for each in found if self._is_of(each, calls, home)]
        kept += [each for each in found if self._makes(each, home)]
        return kept

    def _is_of(self, keyword: Mention, calls: dict[int, Mention], home: Binding) -> bool:
        """Whether a keyword belongs to a call of the function that a scope is."""
        call = calls.get(keyword.callee or -1)
        declared = [each for each in calls.values() if each.mode in {"around", "methods"} and self._begins(each, home)]
        if call is None or not declared:
            return False
        if call.binding is not None:
            return call.binding == declared[0].binding
        alone = sum(1 for each in calls.values() if each.mode) == 1
        owner = declared[0].binding
        return (
            alone
            and owner is not None
            and owner.is_class
            and may_be(self._rows, call.start, owner.scope.removeprefix("class "))
        )

    def _makes(self, keyword: Mention, home: Binding) -> bool:
        """Whether a keyword belongs to a call of a class whose constructor a scope is."""
        makers = [each for name in ("__init__", "initialize") for each in _mentions(self._rows, name)]
        owners = {each.binding.scope for each in makers if each.mode and each.binding and self._begins(each, home)}
        return f"class {self._callee(keyword)[0]}" in owners

    def _begins(self, name: Mention, home: Binding) -> bool:
        """Whether a name is that of the function that a scope is."""
        between = self._rows.text[home.start : name.start]
        return home.start <= name.start < home.end and not re.search(r"[({\n]", between)

    def _callee(self, keyword: Mention) -> tuple[str, str]:
        """The name of the function that a keyword belongs to, and its receiver."""
        if keyword.callee is None:
            return "", ""
        found = self._rows.names.beginning(self._rows.text, keyword.callee)
        return found, keyword.receiver

    def imported(self) -> Iterator[Mention]:
        """What another file declares: names that this one imports, or does not declare, and members of imports."""
        own = {each.binding for each in self._every if each.mode not in {"", "imports"}}
        if self._strangers and self._support < 2:  # noqa: PLR2004
            return
        for each in self._old:
            if each.role == "variable" and each.binding not in own:
                yield each
            elif each.role == "member" and each.receiver.isidentifier():
                known = _mentions(self._rows, each.receiver)
                homes = {one.binding for one in known if one.mode == "imports"}
                if any(one.binding in homes and one.end < each.start <= one.end + _DOT for one in known):
                    yield each

    def words(self, home: Binding) -> Iterator[Mention]:
        """The comments in a scope that name it: a word that anybody may use is not its name."""
        for each in self._old:
            if each.role == "comment" and self._head(home) <= each.start < home.end and self._names(each, home):
                yield each

    def _head(self, home: Binding) -> int:
        """Where the comment above a function begins."""
        row = self._rows.row(home.start)
        while row and (is_comment(self._rows.lines[row - 1]) or self._rows.lines[row - 1].lstrip().startswith("@")):
            row -= 1
        return self._rows.start(row)

    def _names(self, word: Mention, home: Binding | None = None) -> bool:
        line, column = self._rows.lines[self._rows.row(word.start)], len(self._rows.before(word.start))
        if is_in_link(line, column):
            return False
        text = self._rows.text
        marked = text[word.start - 1 : word.start] == "`" == text[word.end : word.end + 1]
        if _DOCUMENTS.search(line[:column]):
            return any(each.mode == "parameter" and each.binding == home for each in self._every)
        return len(parts(word.name)) > 1 or self._is_slip(word) or marked

    def texts(self, edited: Sequence[Mention], *, within: bool) -> Iterator[Mention]:
        """What changes as a word in a comment or a string did: the same of it that is a whole string, or a slip.

        `within`: the edits changed code, too, which says where the word is its name; then only slips are corrected.
        """
        for one in edited:
            for each in self._old:
                if one.role == each.role and each.role in {"comment", "string"}:
                    whole = self._is_whole(one) and self._is_whole(each)
                    if self._is_slip(each) or (not within and (whole or self._names(each))):
                        yield each

    def _is_slip(self, word: Mention) -> bool:
        """Whether the new name only mends the spelling of the old one."""
        new = next((each.name for each in self._edited), "")
        ends = (new[:1], new[-1:]) == (word.name[:1], word.name[-1:])
        return ends and len(new) > _SHORT and Levenshtein.distance(word.name, new) <= _SLIP

    def _is_whole(self, word: Mention) -> bool:
        text = self._rows.text
        return text[word.start - 1 : word.start] in set("\"'`") and text[word.end : word.end + 1] in set("\"'`")


# The name of a key at the start of its line.
_KEY: Final = r"[ \t]*(?:-[ \t]+)*[\"']?{0}[\"']?[?!]?\s*[:=](?!=)"


def declares(rows: Rows, row: int) -> bool:
    """Whether a line outside of functions begins with a key or a field."""
    line, pattern = rows.lines[row], r"[\w$.-]+"
    begins = re.match(_KEY.format(pattern), line) or re.match(_FIELD.format(pattern), line)
    return begins is not None and function_rows(rows, row) is None
