"""The half word before a cursor: left out of the prompt, and owed by the answer.

A cursor within a word cuts a token in two. Asked from the word's beginning on, with an answer that has to begin with
what the person typed of it, the same weights fill many more holes (`calomel bench decoding`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from calomel.prompts.begins import Begins, Pieces, cut_back
from calomel.prompts.text_tokenizer import TextTokenizer, encodable

if TYPE_CHECKING:
    from calomel.engine import Result

# A longer word is none: of a data blob the cursor's half is no use.
_LONGEST: Final = 64


@dataclass(frozen=True, slots=True)
class HalfWord:
    """What an answer owes.

    Attributes:
        text: of the half word, a space before it included where tokens have it so; empty where nothing is owed.
    """

    text: str = ""

    @classmethod
    def before(cls, prefix: str, tokenizer: TextTokenizer, stop: Sequence[str] = ()) -> HalfWord:
        """Of a prefix; nothing where a stop string could begin in it, which is to be found in answers alone."""
        text = prefix[cut_back(prefix, tokenizer) :]
        if len(text) > _LONGEST or any(each and _overlap(text, each) for each in stop):
            return cls()
        return cls(text)

    @property
    def most_tokens(self) -> int:
        """Tokens that spell it at most: one for each of its bytes."""
        return len(encodable(self.text).encode())

    def constraint(self, tokenizer: TextTokenizer, *, least: int, most: int | None) -> Begins:
        """What the answer has to begin with, and so many tokens that have to, or may, say more."""
        return Begins(self.text, _pieces(tokenizer), least=least, most=most)

    def rest(self, text: str) -> str:
        """What an answer says beyond what it owed; nothing while that is not there."""
        return text[len(self.text) :] if text.startswith(self.text) else ""

    def tokens(self, ids: Sequence[int], tokenizer: TextTokenizer) -> int:
        """How many of an answer's leading tokens say nothing but what was owed."""
        if not self.text:
            return 0
        owed, pieces = len(encodable(self.text).encode()), _pieces(tokenizer).by_id
        for count, token in enumerate(ids):
            owed -= len(pieces[token])
            if owed < 0:
                return count
        return len(ids)

    def given(self, text: str, tokenizer: TextTokenizer) -> tuple[tuple[int, ...], int]:
        """The tokens of an answer that goes on with `text`, and how many of them say nothing but what was owed."""
        ids = tuple(tokenizer.encode(self.text + text))
        return ids, self.tokens(ids, tokenizer)


NOTHING_OWED: Final = HalfWord()


def told(result: Result, said: slice) -> Result:
    """A result of those of its tokens alone that say more than what was owed."""
    if said.start == 0 and len(result.ids) <= said.stop:
        return result
    return replace(
        result,
        ids=result.ids[said],
        log_probs=result.log_probs[said],
        entropies=result.entropies[said],
        flips=result.flips[said],
    )


@lru_cache(maxsize=4)
def _pieces(tokenizer: TextTokenizer) -> Pieces:
    return Pieces.of(tokenizer)


def _overlap(text: str, stop: str) -> bool:
    """Whether `stop` stands in `text`, or begins at its end."""
    return stop in text or any(text.endswith(stop[:size]) for size in range(1, len(stop)))
