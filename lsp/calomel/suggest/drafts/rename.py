"""Drafts that continue a rename: of the uses of one binding, and of names derived from it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from rapidfuzz.distance import Levenshtein

from calomel.code.bindings import Binding, Mention, mentions
from calomel.code.languages import RESERVED, TYPES
from calomel.code.lines import Rows
from calomel.code.names import Names, parts, respelled, spellings
from calomel.code.scopes import around, by_words, function_rows, may_be
from calomel.code.tokens import is_comment, is_name
from calomel.prompts.parts import differences
from calomel.suggest.drafts.evidence import EditDraft, Evidence, LineEdit

MAKER: Final = "rename"
_SHORTEST: Final = 3
_PLACES: Final = 48
# The likeness of renaming a derived name, and of a word in a comment or a string, which are less sure.
_RELATED: Final = 0.5
_WORDS: Final = 0.6
# A type's name may be another one's, too, such as a parameter `string` or `list`.
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
_LINK: Final = re.compile(r"\w+://\S*|\]\([^)\s]*|\bwww\.\S*")


@dataclass(frozen=True, slots=True)
class Renaming:
    """`old` became `new`.

    Attributes:
        old, new: names.
        support: number of lines in which it did.
        is_local: whether nothing outside of a function can mean it.
        places: where the same is still called `old` in code, in the order of the text.
        words: where a comment or a string names it.
    """

    old: str
    new: str
    support: int
    is_local: bool = False
    places: tuple[Mention, ...] = ()
    words: tuple[Mention, ...] = ()


def rename(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts that continue the renames among the last edits, in any language with names.

    Comments and strings follow when no code is left.
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
    """The text from the first to the last place with the new name; `{ name }` keeps the name of the field."""
    text, at = "", found[0].start
    for each in found:
        key = f"{each.name}: " if each.shorthand else ""
        text += rows.text[at : each.start] + key + renaming.new
        at = each.end
    return text


def relatives(rows: Rows, seen: Evidence) -> Iterator[EditDraft]:
    """Drafts for `OldName` and `OLD_NAME` if `old_name` was renamed, and for names with a word replaced twice.

    Only names that this file declares, and none that means something already.
    """
    found = renamings(rows, seen)
    names = {
        old: (new, each.support)
        for each in reversed(found)
        if not each.is_local and len(parts(each.old)) > 1
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
        every = _mentions(rows, old, new)
        declared = {each.binding for each in every if each.mode not in {"", "imports"}}
        if any(each.name == new for each in every):
            continue
        for each in every:
            if each.binding in declared and each.role in {"variable", "member"} and not each.shorthand:
                yield EditDraft(each.start, each.end, new, MAKER, support, _RELATED)


def _replaced_word(renaming: Renaming) -> tuple[str, str] | None:
    """The one word in which two names of several words differ."""
    one, other = parts(renaming.old), parts(renaming.new)
    differing = [(a, b) for a, b in zip(one, other, strict=False) if a != b]
    return differing[0] if len(one) == len(other) > 1 and len(differing) == 1 else None


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
            starts = [len("".join(other[: first + at])) for at, _, _ in changed]
            found += [
                (start, a, b) for start, (_, a, b) in zip(starts, changed, strict=True) if {a, b}.isdisjoint(_NEVER)
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
    pairs: defaultdict[tuple[str, str], _Pair] = defaultdict(_Pair)
    for edit in (*seen.edits, *seen.copies):
        for start, *pair in _renamed_at(edit.old, edit.new, rows.names):
            key = (pair[0], pair[1])
            if edit.is_foreign and not (_defines(edit.old, pair[0]) and _defines(edit.new, pair[1])):
                continue
            if _is_rename(rows.names, edit, key) and key[::-1] not in pairs:
                if edit not in pairs[key].edits:
                    pairs[key].edits.append(edit)
                if edit.row is not None:
                    pairs[key].starts.add(rows.start(edit.row) + start)
    # A name that was replaced by different ones has no single new name.
    olds = Counter(old for old, _ in pairs)
    return [_renaming(rows, old, new, pair) for (old, new), pair in pairs.items() if olds[old] == 1]


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


def _renaming(rows: Rows, old: str, new: str, pair: _Pair) -> Renaming:
    every, support = _mentions(rows, old, new), len(pair.edits)
    edited = [each for each in every if each.start in pair.starts]
    left = _Left(rows, every, edited, new, support)
    groups = {(each.role, each.binding, each.receiver, each.called): each for each in reversed(edited)}
    copied = next((edit.copied for edit in pair.edits if edit.copied is not None), None)
    found = [place for each in groups.values() for place in left.like(each)] if edited else list(left.imported())
    places = {each.start: each for each in found if copied is None or rows.row(each.start) in copied}
    homes = {each.binding for each in edited if each.binding is not None and each.role in {"variable", "member"}}
    words = [place for home in homes for place in left.words(home)] if copied is None and len(homes) == 1 else []
    words += [] if places or homes else list(left.texts(edited))
    is_local = bool(edited) and all(each.binding is not None and each.binding.is_local for each in edited)
    ordered = tuple(places[start] for start in sorted(places))
    if not is_local and (old in TYPES or new in TYPES or len(old) < _SHORTEST):
        ordered = tuple(each for each in ordered if each.role == "member" and len(old) < _SHORTEST)
    return Renaming(old, new, support, is_local, ordered, tuple(words))


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
        if not declared and (new or imported or edited.called):
            # Another one was put in its place, which concerns the uses alone.
            enough = self._support > 1 or not (new or imported)
            same = [each for each in same if not each.mode and each.called == edited.called] if enough else []
        elif new and self._support < 2 and any(each.mode for each in new):  # noqa: PLR2004
            return []
        if declared and any(each.mode == "parameter" for each in declared):
            same += self._keywords(home)
            if any(_PROPERTY.search(self._rows.before(each.start)) for each in declared):
                same += self._fields(declared[0])
        if declared and home.is_class:
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
            and (each.receiver == edited.receiver or (len(receivers) > 1 and each.binding is None))
        ]

    def _foreign(self, home: Binding) -> list[Mention]:
        """Members of other values, which are those of a class if no other one has them, and the value may be of it."""
        others = any(each.binding != home and (each.mode == "methods" or each.binding) for each in self._old)
        owner = home.scope.removeprefix("class ")
        return [
            each
            for each in self._old
            if each.role == "member" and each.binding is None and not others and may_be(self._rows, each.start, owner)
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
        """The comments and strings in a scope that name it: a word that anybody may use is not its name."""
        for each in self._old:
            if each.role in {"comment", "string"} and home.start <= each.start < home.end and self._names(each):
                yield each

    def _names(self, word: Mention) -> bool:
        line, column = self._rows.lines[self._rows.row(word.start)], len(self._rows.before(word.start))
        if any(found.start() <= column < found.end() for found in _LINK.finditer(line)):
            return False
        new = next((each.name for each in self._edited), "")
        slip = new[:1] == word.name[:1] and Levenshtein.distance(word.name, new) <= _SLIP
        text = self._rows.text
        marked = text[word.start - 1 : word.start] == "`" == text[word.end : word.end + 1]
        documented = re.search(r"(?:@param|:param|@arg)\b[^:]*$", line[:column]) is not None
        return len(parts(word.name)) > 1 or slip or marked or documented

    def texts(self, edited: Sequence[Mention]) -> Iterator[Mention]:
        """What changes as a word in a comment or a string did: the same of it that is a whole string, or a slip."""
        for one in edited:
            for each in self._old:
                if one.role == each.role and each.role in {"comment", "string"}:
                    whole = self._is_whole(one) and self._is_whole(each)
                    if whole or (self._names(each) and not each.shorthand):
                        yield each

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
