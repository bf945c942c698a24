"""An answer of a server as it grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log, nan
from typing import Final

from calomel.infer.completer import FinishReason, sure_end
from calomel.infer.upstream.adapter import Piece
from calomel.prompts.fim_tokens import FimFormat, unescape


@dataclass(slots=True)
class Answer:
    """A growing answer: pieces of text, each with the log-probabilities of its tokens.

    Attributes:
        owed: what it must begin with: the end of the text before the hole.
        form: whose tokens are broken up in the text around the hole; None if none are.
        joint: log-probability, in nats, of all that came beyond what is owed; NaN if it is unknown.
        estimate: of the tokens of the prompt, for servers that count none, or only at an end that is not awaited.
    """

    owed: str = ""
    form: FimFormat | None = None
    whole: str = ""
    pieces: list[Piece] = field(default_factory=list)
    finish: FinishReason | None = None
    joint: float = 0.0
    estimate: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    trimmed: bool = False

    def begin(self, owed: str) -> None:
        """Forget what has come, for an answer that begins otherwise."""
        self.owed, self.whole, self.finish, self.joint = owed, "", None, 0.0
        self.pieces.clear()

    def take(self, piece: Piece, floor: float | None = None) -> None:
        """Add a piece; or end before it, if with it the joint log-probability of the text falls below `floor`, in nats.

        A piece that begins with what the answer owes counts as certain, if the model would have written it unasked: of
        the words that begin as the one at the cursor, it hardly ever means another one. One piece without
        log-probabilities, and nothing is unlikely.
        """
        with_it = self.whole + piece.text
        if piece.text and len(with_it) > len(self.owed):
            self.joint += sum(self._of(piece, len(self.whole) - len(self.owed))) if piece.is_scored else nan
        if floor is not None and self.joint < floor and with_it.startswith(self.owed):
            self.whole = max(self.owed, self.whole[: sure_end(self.whole, piece.text)], key=len)
            self.finish = "unlikely"
            return
        self.whole += piece.text
        self.pieces.append(piece)
        self.finish = piece.finish or self.finish
        self.prompt_tokens = piece.prompt_tokens or self.prompt_tokens
        self.cached_tokens = piece.cached_tokens or self.cached_tokens

    @property
    def text(self) -> str:
        """Beyond what it owes; empty while that is incomplete."""
        return self._read(growing=False)

    @property
    def growing(self) -> str:
        """The start of `text` that no later piece changes."""
        return self._read(growing=self.finish is None)

    def _read(self, *, growing: bool) -> str:
        text = self.whole[len(self.owed) :] if self.whole.startswith(self.owed) else ""
        return text if self.form is None else unescape(text, self.form, growing=growing)

    @property
    def strays(self) -> bool:
        """Whether it begins otherwise than it must."""
        return not self.whole.startswith(self.owed) and (bool(self.finish) or not self.owed.startswith(self.whole))

    @property
    def own_pieces(self) -> list[tuple[int, Piece]]:
        """The pieces that say anything beyond what is owed, and where they begin in `text`."""
        pieces, at = [], -len(self.owed)
        for piece in self.pieces:
            if piece.text and at + len(piece.text) > 0:
                pieces.append((at, piece))
            at += len(piece.text)
        return pieces

    @property
    def tokens(self) -> int:
        """Estimate: servers send about one token per piece."""
        return sum(max(len(piece.log_probs), 1) for _, piece in self.own_pieces)

    def log_probs(self, length: int) -> tuple[float, ...]:
        """Those of the tokens that start in the first `length` characters; empty if any is missing or NaN.

        A token that begins with what the answer owes is certain, if the model would have written it unasked.
        """
        values: list[float] = []
        for at, piece in self.own_pieces:
            if at < length:
                if not piece.is_scored:
                    return ()
                values += self._of(piece, at)
        return tuple(values)

    @staticmethod
    def _of(piece: Piece, at: int) -> list[float]:
        """The log-probabilities of a piece that begins `at` characters behind what is owed."""
        values = [min(0.0, value) for value in piece.log_probs]
        return [0.0 if at < 0 and value > _UNASKED else value for value in values]


# A word that has to begin as the one at the cursor may be one that the model would never have written.
_UNASKED: Final = log(0.1)
