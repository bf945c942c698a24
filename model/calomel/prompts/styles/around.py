"""Prefix and suffix as they are, for models that read in both directions.

[begin] prefix  →  answer  ←  suffix [close]
"""

from __future__ import annotations

from collections.abc import Sequence

from calomel.prompts.fim import FimTokens
from calomel.prompts.parts import PromptParts
from calomel.prompts.styles.plain import PlainAnswer
from calomel.prompts.styles.window import window
from calomel.prompts.text_tokenizer import TextTokenizer


class AroundRenderer(PlainAnswer):
    """Shows a hole by what stands before and behind it.

    Args:
        tokenizer: of the model.
        ends: ids that end an answer.
        begin: ids at the start of every context.
        close: ids behind every suffix.
    """

    def __init__(
        self, tokenizer: TextTokenizer, ends: Sequence[int], begin: Sequence[int] = (), close: Sequence[int] = ()
    ) -> None:
        super().__init__(tokenizer, ends)
        self._begin, self._close = tuple(begin), tuple(close)

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """What is around the hole, or around the region, whose own text is not shown."""
        room = max_context - len(self._begin) - len(self._close) - 1
        before, behind = window(parts.prefix, parts.suffix, room, self._tokenizer)
        context = (*self._begin, *before)
        if not context:
            # A model needs something to begin with: an empty line is what most files could have there.
            context = tuple(self._tokenizer.encode("\n"))
        cut = len(self._tokenizer.decode(before)) < len(parts.prefix)
        return FimTokens(context, reuse=len(context), cut=cut, suffix=(*behind, *self._close))
