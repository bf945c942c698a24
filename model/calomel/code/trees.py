"""Syntax trees: parsing in a bounded time, errors, and what text at a place would become a part of.

The parser always reads two bytes per code point: what UTF-16 would encode in four is replaced by a stand-in, so that a
byte offset in the tree is twice an offset in the text. A lone CR becomes LF, so that both count the same lines.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from typing import Final, Literal, NamedTuple

from tree_sitter import Node, Parser, Point, Tree

from calomel.code.budget import check, spent
from calomel.code.languages import Grammar, grammar_of, is_comment, is_interpolation, is_string, parser_for

# Bytes at a time. One view of the buffer is kept for each length that a last piece may have: the parser keeps every
# object that it was given.
_PIECE: Final = 1 << 14


class ParserInput(threading.local):
    """Returns the text piece by piece; every thread has its own buffer."""

    def __init__(self) -> None:
        self._data = b""
        self._buffer = memoryview(bytearray(_PIECE))
        self._views: dict[int, memoryview] = {_PIECE: self._buffer}

    def take(self, data: bytes) -> None:
        """Read from `data` from now on; only this releases the text read before."""
        self._data = data

    def __call__(self, at: int, _point: Point) -> memoryview:
        """The bytes from `at` on, valid until the next call."""
        size = max(0, min(_PIECE, len(self._data) - at))
        view = self._views.get(size)
        if view is None:
            view = self._views[size] = self._buffer[:size]
        view[:] = self._data[at : at + size]
        return view


class Work:
    """A clock of the parser's own work: it advances each time the parser reads it, usually every 8 to 20 µs.

    So whether a text gets a tree is the same on every machine, however busy it is. Where a grammar knows little of it,
    the parser reads it much less often: then a share of the thread's processor time counts.
    """

    _SECONDS: Final = 16e-6
    # A machine that is this much slower still gives the same trees.
    _SHARE: Final = 0.25

    def __init__(self) -> None:
        self._looks = 0
        self._seconds = 0.0
        self._latest = 0.0
        # The thread that looked at its own clock, what that said, and how much was counted until then.
        self._before = (0, 0.0, 0.0)

    def __call__(self) -> float:
        """Seconds, including this reading."""
        self._looks += 1
        self._seconds += self._SECONDS
        before, self._latest = self._latest, time.monotonic()
        if self._latest - before > _FAR_APART or self._looks % _RARELY == 0:
            (thread, then, counted), here, now = self._before, threading.get_ident(), time.thread_time()
            if thread == here:
                self._seconds = max(self._seconds, counted + (now - then) * self._SHARE)
            self._before = (here, now, self._seconds)
        return self._seconds


# Looks at the counter for one at a thread's clock, which takes as long as ten of them; and seconds between two looks
# after which it is looked at anyway.
_RARELY: Final = 8
_FAR_APART: Final = 5e-4
_UNUSUAL: Final = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]|\r(?!\n)")
_INPUT: Final = ParserInput()


def parser_text(text: str) -> bytes:
    """What the parser reads: two bytes per code point of the text."""
    if not text.isascii() or "\r" in text:
        text = _UNUSUAL.sub(_stand_in, text)
    return text.encode("utf-16-le")


def _stand_in(found: re.Match[str]) -> str:
    character = found[0]
    if character == "\r":
        return "\n"
    return "\u0101" if character.isalnum() else "\ufffd"


def parse_within(
    parser: Parser, data: bytes, old: Tree | None, deadline: float, clock: Callable[[], float]
) -> Tree | None:
    """The tree of `data`; None when the deadline came first, or the budget was spent: the same call continues."""
    _INPUT.take(data)
    looks = count(1)

    def late(_at: int, _error: bool) -> bool:  # noqa: FBT001 (the library's signature)
        return clock() > deadline or (next(looks) % _RARELY == 0 and spent())

    try:
        if old is None:
            return parser.parse(_INPUT, encoding="utf16le", progress_callback=late)
        return parser.parse(_INPUT, old, "utf16le", late)
    except ValueError:
        return None
    finally:
        _INPUT.take(b"")


def parse(
    text: str, grammar: Grammar | None, seconds: float, clock: Callable[[], float] = time.monotonic
) -> Tree | None:
    """The tree of a text that is parsed once; None without a grammar, or when it takes longer."""
    parser = None if grammar is None else parser_for(grammar)
    return None if parser is None else parse_within(parser, parser_text(text), None, clock() + seconds, clock)


def error_count(text: str, language_id: str, seconds: float, clock: Callable[[], float] = time.monotonic) -> int | None:
    """How many places in `text` its grammar does not understand; None without a grammar, or when it takes longer."""
    grammar = grammar_of(language_id)
    tree = parse(text, grammar, seconds, clock)
    return None if tree is None else errors(tree.root_node, grammar)


# A text that takes longer is read without a tree.
_SECONDS: Final = 0.1


@lru_cache(maxsize=16)
def parsed(text: str, grammar: Grammar | None) -> Tree | None:
    """The tree of one of the last texts, which is parsed once; None without a grammar, or when it takes long.

    Raises SpentError.
    """
    tree = parse(text, grammar, _SECONDS, Work())
    check()  # whose work is given up must not be remembered as a text without a tree
    return tree


# Nodes; ten thousand take some 5 ms.
_WIDEST: Final = 10_000


def errors(root: Node, grammar: Grammar | None = None) -> int | None:
    """The number of errors and missing nodes in a tree, and with a grammar of statements where its language has none.

    Only the parts with an error are visited. None if there are too many nodes: in ten thousand rows of data, say.
    """
    if root.child_count > _WIDEST:
        return None
    misplaced = frozenset() if grammar is None else grammar.misplaced
    count = sum(child.type in misplaced for child in root.children) if misplaced else 0
    left = [root]
    while left:
        check()
        node = left.pop()
        # A missing token without a name of its own, such as Python's line end, is in no list of children.
        hidden = node.has_error and not any(child.has_error for child in node.children)
        if node.is_error or node.is_missing or hidden:
            count += 1
        if node.has_error:
            if len(left) + node.child_count > _WIDEST:
                return None
            left.extend(node.children)
    return count


class Step(NamedTuple):
    """A node on the way down to a place, and the field of its parent that it is in."""

    node: Node
    field: str = ""


# Levels that code has. Chains of thousands of operators, brackets or tags are as deep as they are long.
_DEEPEST: Final = 2_000


def way(tree: Tree, start: int, end: int | None = None) -> tuple[Step, ...]:
    """The nodes around `start:end`, or the character at `start`, from the root down to the smallest.

    Empty where the tree is too deep. Found on one way down: `Node.parent` looks from the root again, for each level.
    Raises SpentError.
    """
    check()
    low, high = 2 * start, 2 * (start + 1 if end is None else end)
    cursor = tree.root_node.walk()
    found = [Step(tree.root_node)]
    while cursor.goto_first_child_for_byte(low) is not None:
        node = cursor.node
        if node is None or node.start_byte > low or node.end_byte < high:
            break
        if len(found) >= _DEEPEST:
            return ()
        found.append(Step(node, cursor.field_name or ""))
    return tuple(found)


Inside = Literal["comment", "string"]
_CLOSED: Final = ("*/", "-->", "=end", "-}")


def inside(tree: Tree, text: str, offset: int) -> Inside | Literal["unknown"] | None:
    """What text at `offset` would become a part of; "unknown" if the tree has an error there, or is too deep."""
    if offset == 0:
        return None
    steps = way(tree, offset - 1)
    for at in range(len(steps) - 1, -1, -1):
        node, above = steps[at].node, steps[at - 1].node if at else None
        if is_comment(node.type):
            return "comment" if _open_comment(node, text, offset) else None
        if is_interpolation(node.type):
            return None
        # Where a piece of a string ends, the string itself knows.
        piece = above is not None and (is_string(above.type) or above.is_error)
        if is_string(node.type) and not piece:
            return "string" if _open_string(node, text, offset) else None
        if node.is_error:
            return "unknown"
    return None if steps else "unknown"


def begins_unclosed_string(tree: Tree, quote: int) -> bool:
    """Whether the quote at this offset is an error for the grammar, since no other one closes it; or nobody knows."""
    steps = way(tree, quote)
    return not steps or any(step.node.is_error for step in steps[-2:])


def _open_comment(node: Node, text: str, offset: int) -> bool:
    end = node.end_byte // 2
    if offset < end:
        return True
    comment = text[node.start_byte // 2 : end]
    return not comment.endswith(_CLOSED) and not comment.endswith("\n")


def _open_string(node: Node, text: str, offset: int) -> bool:
    start, end = node.start_byte // 2, node.end_byte // 2
    if start < offset < end:
        # Between the characters of a prefix (r", f""") there is no text yet.
        return text[start:offset].strip("bBfFrRuULtT$@") != ""
    last = node.child(node.child_count - 1) if node.child_count else None
    return offset == end and (last is not None and last.is_missing)


def in_error(tree: Tree, offset: int) -> bool:
    """Whether the tree has an error around the character at `offset`, or is too deep to know."""
    return tree.root_node.has_error and is_erroneous(way(tree, offset))


def is_erroneous(steps: Sequence[Step]) -> bool:
    """Whether a way down is unknown, or goes through an error."""
    return not steps or any(step.node.is_error for step in steps)
