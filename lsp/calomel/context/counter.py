"""How many tokens a text has: exactly, with the model's tokenizer, or about, while there is none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Protocol

from calomel.prompts.context import ContextRenderer
from calomel.prompts.parts import Excerpt, Hunk
from calomel.prompts.tokenizer import Tokenizer

# Low on purpose, so that an estimate rarely promises room that is not there.
_BYTES_PER_TOKEN: Final = 3
# Markers and path of an excerpt.
_HEADING_TOKENS: Final = 12
_REMEMBERED: Final = 256


class TokenCounter(Protocol):
    """Counts tokens; the same text always counts the same."""

    exact: bool

    def text(self, text: str) -> int:
        """Tokens of a text."""

    def excerpt(self, excerpt: Excerpt) -> int:
        """Tokens of an excerpt with its heading."""

    def edits(self, hunks: Sequence[Hunk]) -> int:
        """Tokens of a stream of edits with its headings."""


class ExactCounter:
    """Counts with the tokenizer of the model that will read the text."""

    exact = True

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._renderer = ContextRenderer(tokenizer)
        self._counted = lru_cache(maxsize=_REMEMBERED)(lambda text: len(tokenizer.encode(text)))

    def text(self, text: str) -> int:
        """Tokens of a text. Lines before the last are remembered: typing changes the last one."""
        cut = text.rfind("\n") + 1
        return self._counted(text[:cut]) + (self._counted(text[cut:]) if cut < len(text) else 0)

    def excerpt(self, excerpt: Excerpt) -> int:
        """Tokens of an excerpt with its heading."""
        return self._renderer.excerpt_tokens(excerpt)

    def edits(self, hunks: Sequence[Hunk]) -> int:
        """Tokens of a stream of edits with its headings."""
        return self._renderer.edits_tokens(hunks)


class EstimateCounter:
    """Three bytes a token."""

    exact = False

    def text(self, text: str) -> int:
        """About how many tokens a text has."""
        return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)

    def excerpt(self, excerpt: Excerpt) -> int:
        """About how many tokens an excerpt has."""
        return self.text(excerpt.text) + _HEADING_TOKENS

    def edits(self, hunks: Sequence[Hunk]) -> int:
        """About how many tokens the edits have."""
        return sum(self.text(hunk.before + hunk.after) + _HEADING_TOKENS for hunk in hunks)
