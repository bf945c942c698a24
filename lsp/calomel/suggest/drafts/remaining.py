"""What is left of a rename: every occurrence of the old name that still means what was renamed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rapidfuzz.distance import Levenshtein

from calomel.code.bindings import Binding, Mention, mentions, scoping_of
from calomel.code.lines import Rows
from calomel.code.names import parts
from calomel.code.scopes import around, by_words, is_in_link, may_be
from calomel.code.tokens import is_comment

# Before a parameter of TypeScript that is a field, too.
_PROPERTY: Final = re.compile(r"\b(?:public|private|protected|readonly)\s+$")
# Characters between a receiver and its member, at most.
_DOT: Final = 2
# Letters in which a misspelt word differs from the right one.
_SLIP: Final = 2
_SHORT: Final = 4
# Before a parameter that a comment explains.
_DOCUMENTS: Final = re.compile(r"(?:@param|@arg)\b(?:\s*\{[^}]*\})?\s*\[?$|:param\b(?:\s+[\w.]+)?\s+$")


def occurrences(rows: Rows, *names: str) -> tuple[Mention, ...]:
    """The occurrences of names, by the tree where the language has a table of scopes; none where that fails."""
    if scoping_of(rows.names.grammar) is None:
        return by_words(rows, *names)
    return mentions(rows, *names) or ()


class Remaining:
    """The places of the old name that mean what was renamed.

    Args:
        rows: of the text.
        every: the occurrences of both names, in order.
        edited: those of them that the edits renamed.
        new: the new name.
        support: number of lines in which it was renamed.
    """

    def __init__(self, rows: Rows, every: Sequence[Mention], edited: Sequence[Mention], new: str, support: int) -> None:
        self._rows, self._every, self._edited, self._support = rows, every, edited, support
        starts = {each.start for each in edited}
        others = [each for each in every if each.start not in starts]
        self._old = [each for each in others if each.name != new]
        self._strangers = [each for each in others if each.name == new]

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
            calls = {each.start: each for each in occurrences(self._rows, name)}
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
        makers = [each for name in ("__init__", "initialize") for each in occurrences(self._rows, name)]
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
                known = occurrences(self._rows, each.receiver)
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
