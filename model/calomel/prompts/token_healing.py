"""Token healing: the half word before a cursor is left out of the prompt, and the answer must begin with it.

A cursor within a word splits a token, and a model has hardly seen the halves. So the prompt may end before the word,
and the answer must begin with what was left out, whichever tokens spell it and whatever else the last of them contains.
The same weights fill many more holes this way (docs/decisions/013).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Final

from calomel.prompts.tokenizer import TextTokenizer, encodable

# How many characters are searched for the last word: splitting a line of megabytes takes seconds.
_FARTHEST: Final = 512
# Anything longer is not a word: half of a data blob does not help.
_LONGEST: Final = 64


class Pieces:
    """The tokens of a vocabulary by their bytes. Safe to share.

    Args:
        pieces: the bytes of every token, by id; empty for one that stands for no text.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.by_id = tuple(pieces)
        self._ids: defaultdict[bytes, list[int]] = defaultdict(list)
        for token, piece in enumerate(self.by_id):
            if piece:
                self._ids[piece].append(token)
        self._sorted = sorted(self._ids)

    def fitting(self, text: bytes) -> list[int]:
        """The tokens that begin with `text`, and those that it begins with; `text` is not empty."""
        first = bisect_left(self._sorted, text)
        longer = takewhile(lambda piece: piece.startswith(text), iter(self._sorted[first:]))
        shorter = (text[:size] for size in range(1, len(text)))
        return [token for piece in (*longer, *shorter) for token in self._ids.get(piece, ())]


@lru_cache(maxsize=4)
def pieces_of(tokenizer: TextTokenizer) -> Pieces:
    """All tokens of a tokenizer; control tokens stand for no text."""
    control = frozenset(tokenizer.control.values())
    return Pieces([b"" if token in control else tokenizer.decode_bytes([token]) for token in range(tokenizer.size)])


@dataclass(frozen=True, slots=True, eq=False)
class HealingConstraint:
    """Answers that begin with `text`; a `calomel.engine.Constraint`.

    Attributes:
        text: may be spelled by any tokens.
        pieces: of the vocabulary.
        least: how many tokens must go beyond `text` before the answer may end.
        most: how many may at most; None for any number.
    """

    text: str
    pieces: Pieces
    least: int = 0
    most: int | None = None

    def begin(self) -> HealingWalk:
        """A walk at the beginning of an answer."""
        return HealingWalk(encodable(self.text).encode(), self.pieces, self.least, self.most)


class HealingWalk:
    """A position in the text; after it everything is allowed, up to the maximum number of tokens."""

    def __init__(self, text: bytes, pieces: Pieces, least: int, most: int | None) -> None:
        self._left = text
        self._pieces = pieces
        self._least = least
        self._most = most
        self._said = 0

    def advance(self, tokens: Sequence[int]) -> int:
        """Accept the longest beginning of `tokens` that is allowed, and return its length."""
        for count, token in enumerate(tokens):
            if self._said == self._most:
                return count
            if self._left:
                piece = self._pieces.by_id[token] if 0 <= token < len(self._pieces.by_id) else b""
                if not piece or not (piece.startswith(self._left) or self._left.startswith(piece)):
                    return count
                self._said += len(piece) > len(self._left)
                self._left = self._left[len(piece) :]
            else:
                self._said += 1
        return len(tokens)

    def may_end(self) -> bool:
        """Whether the text is complete, and the required tokens after it."""
        return not self._left and self._said >= self._least

    def allowed(self) -> bytes:
        """The tokens that may come next, one bit each, the lowest first."""
        size = -(-len(self._pieces.by_id) // 8)
        if self._said == self._most:
            return bytes(size)
        if not self._left:
            return b"\xff" * size
        bits = bytearray(size)
        for token in self._pieces.fitting(self._left):
            bits[token // 8] |= 1 << token % 8
        return bytes(bits)

    def forced(self) -> Sequence[int]:
        """Nothing: a token may be longer than the text."""
        return ()


@dataclass(frozen=True, slots=True)
class TokenHealing:
    """The text that an answer must begin with.

    Attributes:
        text: of the half word, including a space before it if tokens have it so; empty if there is none.
    """

    text: str = ""

    @classmethod
    def before(cls, prefix: str, tokenizer: TextTokenizer, stop: Sequence[str] = ()) -> TokenHealing:
        """For a prefix; empty if a stop string could begin in it, as those are searched for in answers alone."""
        text = prefix[cut_back(prefix, tokenizer) :]
        if len(text) > _LONGEST or any(each and _overlap(text, each) for each in stop):
            return cls()
        return cls(text)

    @property
    def most_tokens(self) -> int:
        """How many tokens spell it at most: one per byte."""
        return len(encodable(self.text).encode())

    def constraint(self, tokenizer: TextTokenizer, *, least: int, most: int | None) -> HealingConstraint:
        """Answers must begin with the text, and between `least` and `most` tokens go beyond it."""
        return HealingConstraint(self.text, pieces_of(tokenizer), least=least, most=most)

    def rest(self, text: str) -> str:
        """What an answer says beyond the text; empty while the text is incomplete."""
        return text[len(self.text) :] if text.startswith(self.text) else ""

    def tokens(self, ids: Sequence[int], tokenizer: TextTokenizer) -> int:
        """How many of an answer's leading tokens say nothing beyond the text."""
        if not self.text:
            return 0
        owed, pieces = len(encodable(self.text).encode()), pieces_of(tokenizer).by_id
        for count, token in enumerate(ids):
            owed -= len(pieces[token])
            if owed < 0:
                return count
        return len(ids)

    def given(self, text: str, tokenizer: TextTokenizer) -> tuple[tuple[int, ...], int]:
        """The tokens of an answer that continues with `text`, and how many of them only complete the half word."""
        ids = tuple(tokenizer.encode(self.text + text))
        return ids, self.tokens(ids, tokenizer)


NO_HEALING: Final = TokenHealing()


def cut_back(prefix: str, tokenizer: TextTokenizer) -> int:
    """Where the last word of a prefix begins, in characters, including a space before it if tokens have it so.

    An indentation is not half of a word: nothing of it is cut off, or its last blank, for tokenizers that give that to
    the word after it.
    """
    start = max(prefix.rfind("\n") + 1, len(prefix) - _FARTHEST)
    # In a longer line, words are the same from any space on.
    start = max(start, prefix.find(" ", start, -_FARTHEST // 2)) if len(prefix) - start == _FARTHEST else start
    line = prefix[start:]
    if tokenizer.indents_apart:
        return start + tokenizer.boundary(line) if line.strip() else len(prefix)
    if not line.strip():
        return max(0, len(prefix) - 1)
    found = start + tokenizer.boundary(line)
    return len(prefix) - 1 if prefix[found:].isspace() else found


def _overlap(text: str, stop: str) -> bool:
    """Whether `stop` occurs in `text`, or begins at its end."""
    return stop in text or any(text.endswith(stop[:size]) for size in range(1, len(stop)))
