"""An answer that has to begin with some text, however its tokens are cut.

A cursor within a word cuts a token in two, and a model has hardly seen the halves. So the prompt may end before the
word, and the answer begins with what was left out: whichever tokens spell it, whatever follows in the last of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile

from calomel.prompts.text_tokenizer import TextTokenizer, encodable


class Pieces:
    """The tokens of a vocabulary by their bytes. Safe to share.

    Args:
        pieces: the bytes of every token, by id; none for one that stands for no text.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.by_id = tuple(pieces)
        self._ids: defaultdict[bytes, list[int]] = defaultdict(list)
        for token, piece in enumerate(self.by_id):
            if piece:
                self._ids[piece].append(token)
        self._sorted = sorted(self._ids)

    @classmethod
    def of(cls, tokenizer: TextTokenizer) -> Pieces:
        """All tokens of a tokenizer; control tokens stand for no text."""
        control = frozenset(tokenizer.control.values())
        return cls([b"" if token in control else tokenizer.decode_bytes([token]) for token in range(tokenizer.size)])

    def fitting(self, text: bytes) -> list[int]:
        """The tokens that begin with `text`, and those that it begins with; `text` is not empty."""
        first = bisect_left(self._sorted, text)
        longer = takewhile(lambda piece: piece.startswith(text), iter(self._sorted[first:]))
        shorter = (text[:size] for size in range(1, len(text)))
        return [token for piece in (*longer, *shorter) for token in self._ids.get(piece, ())]


class Begins:
    """Answers that begin with `text`; a `calomel.engine.Constraint`.

    Args:
        text: whatever tokens spell it.
        pieces: of the vocabulary.
        least: tokens that say more than `text`, before the answer may end.
        most: of those at most; None for any number.
    """

    def __init__(self, text: str, pieces: Pieces, *, least: int = 0, most: int | None = None) -> None:
        self.text = text
        self.least = least
        self.most = most
        self._pieces = pieces

    def begin(self) -> BeginsWalk:
        """A walk at the beginning of an answer."""
        return BeginsWalk(encodable(self.text).encode(), self._pieces, self.least, self.most)


class BeginsWalk:
    """One way through the text; behind it everything is allowed, as many tokens as may be said."""

    def __init__(self, text: bytes, pieces: Pieces, least: int, most: int | None) -> None:
        self._left = text
        self._pieces = pieces
        self._least = least
        self._most = most
        self._said = 0

    def advance(self, tokens: Sequence[int]) -> int:
        """Take in the longest beginning of `tokens` that is allowed, and return its length."""
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
        """Whether the text is there, and what has to come behind it."""
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


def cut_back(prefix: str, tokenizer: TextTokenizer) -> int:
    """Where the last word of a prefix begins, in characters, a space in front of it included where tokens have it so.

    The end of the prefix where its line has nothing but white space: an indentation is no half of a word.
    """
    start = prefix.rfind("\n") + 1
    line = prefix[start:]
    return start + tokenizer.boundary(line) if line.strip() else len(prefix)
