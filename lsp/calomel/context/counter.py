"""How many tokens a text has: exactly, with the model's tokenizer, or about, while there is none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Protocol

from calomel.prompts.context import ContextRenderer
from calomel.prompts.fim import FAR_TOKENS, NEAR_TOKENS, split_suffix
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

    def suffix(self, text: str) -> int:
        """Tokens that a prompt has of the text behind the cursor."""

    def excerpts(self, excerpts: Sequence[Excerpt]) -> int:
        """Tokens of excerpts that stand one behind another, with the headings that they need."""

    def edits(self, hunks: Sequence[Hunk]) -> int:
        """Tokens of a stream of edits with its headings."""


class ExactCounter:
    """Counts with the tokenizer of the model that will read the text."""

    exact = True

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._renderer = ContextRenderer(tokenizer)
        self._counted = lru_cache(maxsize=_REMEMBERED)(lambda text: len(tokenizer.encode(text)))
        # A front is counted several times a keystroke, and stays.
        self._standing = lru_cache(maxsize=_REMEMBERED)(self._renderer.excerpts_tokens)

    def text(self, text: str) -> int:
        """Tokens of a text. Lines before the last are remembered: typing changes the last one."""
        cut = text.rfind("\n") + 1
        return self._counted(text[:cut]) + (self._counted(text[cut:]) if cut < len(text) else 0)

    def suffix(self, text: str) -> int:
        """Tokens that a prompt has of the text behind the cursor: what is near, and lines from the next anchor on."""
        near, far = split_suffix(text, self._tokenizer)
        return len(near) + min(FAR_TOKENS, self.text(far))

    def excerpts(self, excerpts: Sequence[Excerpt]) -> int:
        """Tokens of excerpts, with the headings that they need."""
        return self._standing(tuple(excerpts))

    def edits(self, hunks: Sequence[Hunk]) -> int:
        """Tokens of a stream of edits with its headings."""
        return self._renderer.edits_tokens(hunks)


class EstimateCounter:
    """Three bytes a token."""

    exact = False

    def text(self, text: str) -> int:
        """About how many tokens a text has."""
        return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)

    def suffix(self, text: str) -> int:
        """About how many tokens a prompt has of the text behind the cursor."""
        return min(NEAR_TOKENS + FAR_TOKENS, self.text(text))

    def excerpts(self, excerpts: Sequence[Excerpt]) -> int:
        """About how many tokens the excerpts have."""
        return sum(self.text(excerpt.text) + _HEADING_TOKENS for excerpt in excerpts)

    def edits(self, hunks: Sequence[Hunk]) -> int:
        """About how many tokens the edits have."""
        return sum(self.text(hunk.before + hunk.after) + _HEADING_TOKENS for hunk in hunks)
