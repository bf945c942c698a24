"""An answer of a server as it grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, isfinite, log, nan
from typing import Final

from calomel.infer.completer import FinishReason, sure_end
from calomel.infer.upstream.adapter import Piece, Token
from calomel.prompts.fim_tokens import FimFormat, unescape


@dataclass(slots=True)
class Answer:
    """A growing answer: pieces of text, each with the log-probabilities of its tokens.

    Attributes:
        owed: what it must begin with: the end of the text before the hole.
        form: whose tokens are broken up in the text around the hole; None if none are.
        joint: log-probability, in nats, of all that came, given what is owed; NaN if it is unknown.
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

        One piece without log-probabilities, and nothing is unlikely.
        """
        with_it = self.whole + piece.text
        if piece.text:
            self.joint += sum(self._of(piece, len(self.whole) - len(self.owed)))
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
        return sum(max(len(piece.tokens), 1) for _, piece in self.own_pieces)

    def log_probs(self, length: int) -> tuple[float, ...]:
        """Those of the tokens that start in the first `length` characters; empty if any is missing or NaN.

        The first one has the doubt about the tokens before it, which say no more than is owed.
        """
        values: list[float] = []
        owing, at = 0.0, -len(self.owed)
        for piece in self.pieces:
            if piece.text and at < length:
                found = self._of(piece, at)
                if at + len(piece.text) <= 0:
                    owing += sum(found)
                else:
                    values += [found[0] + owing, *found[1:]]
                    owing = 0.0
            at += len(piece.text)
        return tuple(values) if all(map(isfinite, values)) else ()

    def _of(self, piece: Piece, at: int) -> list[float]:
        """The log-probabilities of a piece that begins `at` characters behind what is owed; NaN for an unknown one."""
        if not piece.is_scored:
            return [0.0 if at + len(piece.text) <= 0 else nan]
        tokens = piece.tokens
        if "".join(token.text for token in tokens) != piece.text:
            tokens = (Token(piece.text, tokens[0].log_prob), *(Token("", token.log_prob) for token in tokens[1:]))
        values = []
        for token in tokens:
            values.append(_given(self.owed[at:] if at < 0 else "", token))
            at += len(token.text)
        return values


def _given(owed: str, token: Token) -> float:
    """The log-probability of a token where the text has to begin with `owed`: among the likeliest that may begin it.

    If the token is none of these, or they are unknown, it is certain if it says no more than is owed or the model would
    have written it unasked: of the words that begin as the one at the cursor, it hardly ever means another one.
    """
    own = min(0.0, token.log_prob)
    if not owed:
        return own
    if len(token.rivals) < _FEW or all(text != token.text for text, _ in token.rivals):
        return 0.0 if own > _UNASKED or owed.startswith(token.text) else own
    others = (value for text, value in token.rivals if text != token.text and _begins(text, owed))
    return own - log(exp(own) + sum(exp(min(0.0, value)) for value in others if isfinite(value)))


def _begins(text: str, owed: str) -> bool:
    """Whether a token may stand at the start of a text that begins with `owed`."""
    return bool(text) and (text.startswith(owed) or owed.startswith(text))


# A word that has to begin as the one at the cursor may be one that the model would never have written. One that is not
# among its ten likeliest was right 25 of 40 times, however few of those begin alike, and any other 262 of 282 times.
_UNASKED: Final = log(0.1)
# With the likeliest token alone, nothing is known of others.
_FEW: Final = 2
