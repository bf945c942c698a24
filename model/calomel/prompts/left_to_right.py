"""Plain text up to the cursor, for models that only continue a text: they have no fill-in-the-middle tokens.

    [begin] // path of another file, its text … // path, file up to the cursor  →  answer

Nothing says where such an answer ends: the text after the hole does (`calomel.infer.continuation`).
"""

from __future__ import annotations

from collections.abc import Sequence

from calomel.prompts.own import FimTokens, last_tokens
from calomel.prompts.parts import Excerpt, PromptParts
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
        """The window may take all the room; other files get the rest, those given last first."""
        room = max_context - len(self._begin)
        before, cut = last_tokens(parts.prefix, room, self._tokenizer)
        front: list[int] = []
        related = (*parts.related, *parts.far)
        for first in reversed(range(len(related))):
            ids = self._tokenizer.encode(write_front(related[first:], parts.path))
            if len(ids) > room - len(before):
                break
            front = ids
        context = (*self._begin, *front, *before)
        if not context:
            # A model needs something to begin with: an empty line is what most files could have there.
            context = tuple(self._tokenizer.encode("\n"))
        return FimTokens(context, reuse=len(context), cut=cut)


def write_front(files: Sequence[Excerpt], path: str | None) -> str:
    """What comes before the text of a file: other files, and its own name behind them; empty without other files.

    With the file that defines a name in front, SmolLM2-135M gave a line that uses it 1.28 times the probability a token
    (24 lines of the standard library); comments or another sign before the path made no difference.
    """
    others = "".join(f"// {each.path}\n{each.text.rstrip()}\n\n" for each in files)
    return f"{others}// {path or 'untitled'}\n" if others else ""
