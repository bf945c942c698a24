"""Prompts whose parts are left out or stand in another order, of the very tokens of the shipped one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calomel.bench.decoding.variants import Order
from calomel.prompts.context import ContextRenderer
from calomel.prompts.fim import FimTokens
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import Tokenizer


class Ordered:
    """Renders as the shipped renderer does, otherwise ordered."""

    def __init__(self, tokenizer: Tokenizer, order: Order) -> None:
        self._inner = ContextRenderer(tokenizer)
        self._tokenizer = tokenizer
        self._order = order

    def render(self, parts: PromptParts, max_context: int) -> FimTokens:
        """Token ids of at most `max_context`."""
        if self._order == "no_suffix":
            parts = replace(parts, suffix="")
        elif self._order == "no_far_suffix":
            # The rest of the line is always near.
            line, end, _ = parts.suffix.partition("\n")
            parts = replace(parts, suffix=line + end)
        found = self._inner.render(parts, max_context)
        return self._prefix_first(found) if self._order == "prefix_first" else found

    def read(self, ids: Sequence[int], *, whole: bool = True) -> str:
        """The text of an answer."""
        return self._inner.read(ids, whole=whole)

    def shown(self, text: str) -> str:
        """A canvas is the text itself."""
        return text

    def _prefix_first(self, found: FimTokens) -> FimTokens:
        """The far suffix behind the prefix; nothing moves where there is none."""
        ids, marks = list(found.context), self._tokenizer
        if marks.suffix not in ids:
            return found
        far = ids.index(marks.suffix)
        prefix = ids.index(marks.prefix, far)
        near = ids.index(marks.near, prefix)
        moved = [*ids[:far], *ids[prefix:near], *ids[far:prefix], *ids[near:]]
        return replace(found, context=tuple(moved))
