"""An answer that has to begin with some text, however its tokens are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calomel.prompts.text_tokenizer import TextTokenizer


@dataclass(frozen=True, slots=True)
class Begins:
    """Answers that begin with `text`; a `calomel.engine.Constraint`.

    Attributes:
        text: as bytes.
        pieces: the bytes of every token; none for a control token.
    """

    text: bytes
    pieces: Sequence[bytes]

    def begin(self) -> BeginsWalk:
        """A walk at the beginning of an answer."""
        return BeginsWalk(self.text, self.pieces)


class BeginsWalk:
    """One way through the text; behind it everything is allowed."""

    def __init__(self, text: bytes, pieces: Sequence[bytes]) -> None:
        self._left = text
        self._pieces = pieces

    def advance(self, tokens: Sequence[int]) -> int:
        """Take in the longest beginning of `tokens` that is allowed, and return its length."""
        for count, token in enumerate(tokens):
            if not self._fits(token):
                return count
            self._left = self._left[len(self._pieces[token]) :]
        return len(tokens)

    def may_end(self) -> bool:
        """Whether the text is there."""
        return not self._left

    def allowed(self) -> bytes:
        """The tokens that may come next, one bit each, the lowest first."""
        bits = bytearray(-(-len(self._pieces) // 8))
        for token in range(len(self._pieces)):
            if self._fits(token):
                bits[token // 8] |= 1 << token % 8
        return bytes(bits)

    def forced(self) -> Sequence[int]:
        """Nothing: a token may be longer than the text."""
        return ()

    def _fits(self, token: int) -> bool:
        if not self._left:
            return True
        piece = self._pieces[token] if 0 <= token < len(self._pieces) else b""
        return bool(piece) and (piece.startswith(self._left) or self._left.startswith(piece))


def token_pieces(tokenizer: TextTokenizer) -> tuple[bytes, ...]:
    """The bytes of every token, by id; none of control tokens."""
    control = frozenset(tokenizer.control.values())
    return tuple(b"" if token in control else tokenizer.decode_bytes([token]) for token in range(tokenizer.size))


def cut_back(prefix: str, tokenizer: TextTokenizer) -> int:
    """Where the last word of a prefix begins, white space in front of it included as tokens have it.

    The end of the prefix where its line has nothing but white space: an indentation is no half of a word.
    """
    start = prefix.rfind("\n") + 1
    line = prefix[start:]
    return start + tokenizer.boundary(line) if line.strip() else len(prefix)
