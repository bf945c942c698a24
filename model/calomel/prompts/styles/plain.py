"""Answers that are the text itself: of models that fill between tokens, or between prefix and suffix."""

from __future__ import annotations

from collections.abc import Sequence

from calomel.prompts.text_tokenizer import TextTokenizer


class PlainAnswer:
    """Reads the text up to the first token that ends an answer.

    Args:
        tokenizer: of the model.
        ends: ids that end an answer.
    """

    def __init__(self, tokenizer: TextTokenizer, ends: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._ends = frozenset(ends)

    def read(self, ids: Sequence[int], *, whole: bool = True) -> str:
        """The text; a beginning is as good as the whole."""
        del whole
        return self._tokenizer.decode(self.before_end(ids))

    def ended(self, ids: Sequence[int]) -> bool:
        """Whether one of the ends is there."""
        return not self._ends.isdisjoint(ids)

    def shown(self, text: str) -> str:
        """All of it."""
        return text

    def before_end(self, ids: Sequence[int]) -> Sequence[int]:
        """The ids before the first end."""
        return ids[: next((at for at, number in enumerate(ids) if number in self._ends), len(ids))]
