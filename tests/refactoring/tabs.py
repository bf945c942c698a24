"""One edit by a person, then Tab until nothing comes, with the rules alone; and what became of the file's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Final, NamedTuple

from tree_sitter import Node

from calomel.bench.room import Room
from calomel.code.languages import grammar_of
from calomel.code.trees import error_count, parse
from calomel.infer.completer import Candidate, CompleteAnswer, CompleteRequest, ModelInfo
from calomel.infer.models import RULES
from calomel.prompts.parts import Edit, edited
from calomel.replay.events import Changed, Opened, language_of
from calomel.suggest.silence import Silence

_TOKEN: Final = re.compile(r"[\w$]+|\s+|.", re.DOTALL)
_SECONDS: Final = 60.0
# More Tabs than any file of the draw has places.
_TABS: Final = 400


class Rules:
    """Has no model: the drafts of the rules, with nobody who judges them."""

    address: str | None = None

    async def info(self) -> ModelInfo:
        return RULES

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        drafts = tuple(Candidate(draft.text, maker=draft.maker) for draft in request.drafts)
        return CompleteAnswer(drafts, model=RULES.id, judged=False)

    async def aclose(self) -> None:
        """There is nothing to close."""


@dataclass(frozen=True, slots=True)
class Chain:
    """What Tab did.

    Attributes:
        text: in the end.
        offers: the edits of each Tab, and who proposed them.
        ended: nothing came any more.
    """

    text: str
    offers: tuple[tuple[str, tuple[Edit, ...]], ...]
    ended: bool


async def tab_to_the_end(path: str, text: str, edits: tuple[Edit, ...]) -> Chain:
    """Open the file, make these edits, two seconds apart and each in the text after those before, and press Tab."""
    room = Room(Rules())
    room.play([Opened(0, 0.0, path, language_of(path), text)])
    cursor, offers, ended = 0, list[tuple[str, tuple[Edit, ...]]](), False
    for number, edit in enumerate(edits, 1):
        room.play([Changed(number, 2.0 * number, path, (edit,))])
        text, cursor = edited(text, [edit]), edit.start + len(edit.text)
    try:
        while len(offers) < _TABS:
            offer, _ = await room.ask("refactoring", path, cursor)
            if isinstance(offer, Silence):
                ended = True
                break
            room.play([Changed(len(edits) + len(offers) + 1, room.clock() + 0.5, path, offer.edits)])
            room.suggester.accepted(offer.id)
            last = offer.edits[-1]
            shift = sum(len(each.text) - (each.end - each.start) for each in offer.edits[:-1])
            text = edited(text, offer.edits)
            cursor = last.start + shift + len(last.text) if offer.cursor_after is None else offer.cursor_after
            offers.append((offer.maker, offer.edits))
    finally:
        await room.suggester.aclose()
    return Chain(text, tuple(offers), ended)


class Change(NamedTuple):
    """`text[start:end]` of the text before became `new`, in whole words."""

    start: int
    end: int
    new: str


def word_changes(before: str, after: str) -> frozenset[Change]:
    """The words that differ, line by line where both have as many."""
    old, new = before.split("\n"), after.split("\n")
    if len(old) != len(new):
        return frozenset(_changes(_TOKEN.findall(before), _TOKEN.findall(after), 0))
    starts = accumulate((len(line) + 1 for line in old), initial=0)
    found = [
        each
        for start, one, other in zip(starts, old, new, strict=False)
        if one != other
        for each in _changes(_TOKEN.findall(one), _TOKEN.findall(other), start)
    ]
    return frozenset(found)


def _changes(old: list[str], new: list[str], start: int) -> Iterator[Change]:
    starts = list(accumulate(map(len, old), initial=start))
    if len(old) == len(new):
        for at, (one, other) in enumerate(zip(old, new, strict=True)):
            if one != other:
                yield Change(starts[at], starts[at + 1], other)
        return
    for tag, low, high, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield Change(starts[low], starts[high], "".join(new[first:last]))


def kind_at(path: str, text: str, offset: int) -> str:
    """Whether a place is code, in a string, or in a comment or docstring."""
    grammar = grammar_of(None, path)
    tree = None if grammar is None else parse(text, grammar, _SECONDS)
    node = None if tree is None else tree.root_node.descendant_for_byte_range(2 * offset, 2 * offset + 2)
    while node is not None:
        if node.type in {"interpolation", "template_substitution"}:
            return "code"
        if "comment" in node.type:
            return "comment"
        if node.type in {"string", "template_string", "string_literal", "regex"}:
            return "comment" if _is_docstring(node) else "string"
        node = node.parent
    return "code"


def _is_docstring(node: Node) -> bool:
    return node.type == "string" and node.parent is not None and node.parent.type == "expression_statement"


def syntax_errors(path: str, text: str) -> int:
    """Of a text in the language of its path."""
    return error_count(text, language_of(path), _SECONDS) or 0
