"""How the tokens of a context are shared out among its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Beside the cursor more than this says little, and a keystroke after a jump has to encode all of it.
WINDOW_TOKENS: Final = 1536
# By how much a window moves when it is full.
HOP_TOKENS: Final = 512
# Of the window, what stands behind the cursor.
SUFFIX_SHARE: Final = 1 / 4
EDITS_SHARE: Final = 1 / 8
EDITS_TOKENS: Final = 1024
FAR_SHARE: Final = 3 / 8
# Below this budget the window holds what matters of the file, and a snapshot of the rest would only be a copy of it.
FAR_FROM: Final = 4096
# In a small context with related code, an excerpt or two.
SMALL_RELATED_SHARE: Final = 1 / 4
# What headings, marks and the nearest suffix take.
MARKS: Final = 48


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens for each part.

    Attributes:
        total: of the prompt.
        prefix, suffix: of the window, at most.
        edits, far: at most.
        related: at least; it also has what the others leave.
    """

    total: int
    prefix: int
    suffix: int
    edits: int
    far: int
    related: int


def share_out(total: int, *, has_edits: bool, has_related: bool) -> Budget:
    """Divide `total` tokens. Without edits and related code a small context is all window."""
    edits = min(EDITS_TOKENS, int(total * EDITS_SHARE)) if has_edits or total >= FAR_FROM else 0
    far = int(total * FAR_SHARE) if total >= FAR_FROM else 0
    related = int(total * SMALL_RELATED_SHARE) if has_related and not far else 0
    window = max(1, min(WINDOW_TOKENS if far else total, total - edits - far - related) - MARKS)
    suffix = int(window * SUFFIX_SHARE)
    return Budget(total, window - suffix, suffix, edits, far, related or max(0, total - edits - far - window - MARKS))
