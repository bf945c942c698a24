"""How many tokens a context has, how they are divided among its parts, and how they are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from calomel.prompts.own import FAR_TOKENS, NEAR_TOKENS, ContextRenderer, split_suffix
from calomel.prompts.parts import Excerpt, Hunk
from calomel.prompts.tokenizer import Tokenizer

# More than this around the cursor helps little, and a keystroke after a jump has to encode all of it.
WINDOW_TOKENS: Final = 1280
# By how much a full window moves.
HOP_TOKENS: Final = 512
# The share of the window that is for the text after the cursor.
SUFFIX_SHARE: Final = 1 / 4
EDITS_SHARE: Final = 1 / 8
EDITS_TOKENS: Final = 1024
FAR_SHARE: Final = 3 / 8
# Below this budget the window holds what matters of the file, and a snapshot of the rest would only be a copy of it.
FAR_FROM: Final = 4096
# In a small context with related code: room for an excerpt or two.
SMALL_RELATED_SHARE: Final = 1 / 4
# Tokens for headings, markers and the nearest suffix.
MARKS: Final = 48


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens for each part.

    Attributes:
        total: of the prompt.
        prefix, suffix: of the window, at most.
        edits, far: at most.
        related: at least; it also gets what the others leave.
    """

    total: int
    prefix: int
    suffix: int
    edits: int
    far: int
    related: int


def share_out(total: int, *, has_edits: bool, has_related: bool) -> Budget:
    """Divide `total` tokens. Without edits and related code, a small context is all window."""
    edits = min(EDITS_TOKENS, int(total * EDITS_SHARE)) if has_edits or total >= FAR_FROM else 0
    far = int(total * FAR_SHARE) if total >= FAR_FROM else 0
    related = int(total * SMALL_RELATED_SHARE) if has_related and not far else 0
    window = max(1, min(WINDOW_TOKENS if far else total, total - edits - far - related) - MARKS)
    suffix = int(window * SUFFIX_SHARE)
    return Budget(total, window - suffix, suffix, edits, far, related or max(0, total - edits - far - window - MARKS))


# Low on purpose, so that an estimate rarely promises room that does not exist.
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
        """Tokens that the text after the cursor takes in a prompt."""

    def excerpts(self, excerpts: Sequence[Excerpt]) -> int:
        """Tokens of consecutive excerpts, with the headings they need."""

    def edits(self, hunks: Sequence[Hunk]) -> int:
        """Tokens of a stream of edits, with its headings."""


class ExactCounter:
    """Counts with the tokenizer of the model that will read the text."""

    exact = True

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._renderer = ContextRenderer(tokenizer)
        self._counted = lru_cache(maxsize=_REMEMBERED)(lambda text: len(tokenizer.encode(text)))
        # A front is counted several times per keystroke, and stays the same.
        self._standing = lru_cache(maxsize=_REMEMBERED)(self._renderer.excerpts_tokens)

    def text(self, text: str) -> int:
        """Tokens of a text. Lines before the last are cached: typing changes the last one."""
        cut = text.rfind("\n") + 1
        return self._counted(text[:cut]) + (self._counted(text[cut:]) if cut < len(text) else 0)

    def suffix(self, text: str) -> int:
        """Tokens that the text after the cursor takes in a prompt: what is near, and lines from the next anchor on."""
        near, far = split_suffix(text, self._tokenizer)
        return len(near) + min(FAR_TOKENS, self.text(far))

    def excerpts(self, excerpts: Sequence[Excerpt]) -> int:
        """Tokens of excerpts, with the headings they need."""
        return self._standing(tuple(excerpts))

    def edits(self, hunks: Sequence[Hunk]) -> int:
        """Tokens of a stream of edits, with its headings."""
        return self._renderer.edits_tokens(hunks)


class EstimateCounter:
    """Estimates three bytes per token."""

    exact = False

    def text(self, text: str) -> int:
        """About how many tokens a text has."""
        return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)

    def suffix(self, text: str) -> int:
        """About how many tokens the text after the cursor takes in a prompt."""
        return min(NEAR_TOKENS + FAR_TOKENS, self.text(text))

    def excerpts(self, excerpts: Sequence[Excerpt]) -> int:
        """About how many tokens the excerpts have."""
        return sum(self.text(excerpt.text) + _HEADING_TOKENS for excerpt in excerpts)

    def edits(self, hunks: Sequence[Hunk]) -> int:
        """About how many tokens the edits have."""
        return sum(self.text(hunk.before + hunk.after) + _HEADING_TOKENS for hunk in hunks)
