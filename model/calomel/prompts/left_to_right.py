"""Plain text up to the cursor, for models that only continue a text: they have no fill-in-the-middle tokens.

    [begin] other files … file up to the cursor  →  answer

Nothing says where such an answer ends: the text after the hole does (`calomel.suggest.continuation`).
"""

from __future__ import annotations

from collections.abc import Sequence

from calomel.prompts.own import FimTokens, last_tokens
from calomel.prompts.parts import PromptParts
from calomel.prompts.renderer import PlainAnswer
from calomel.prompts.tokenizer import TextTokenizer


class LeftToRightRenderer(PlainAnswer):
    """Shows the text before a hole, or before a region, whose own text is not shown.

    Args:
        tokenizer: of the model.
        ends: ids that end an answer.
        begin: ids at the start of every context.
    """

    def __init__(self, tokenizer: TextTokenizer, ends: Sequence[int], begin: Sequence[int] = ()) -> None:
        super().__init__(tokenizer, ends)
        self._begin = tuple(begin)

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """The end of the text before the hole."""
        before, cut = last_tokens(parts.prefix, max_context - len(self._begin), self._tokenizer)
        context = (*self._begin, *before)
        if not context:
            # A model needs something to begin with: an empty line is what most files could have there.
            context = tuple(self._tokenizer.encode("\n"))
        return FimTokens(context, reuse=len(context), cut=cut)
