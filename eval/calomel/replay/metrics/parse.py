"""Whether a suggestion leaves code that parses."""

from __future__ import annotations

from calomel.workspace.syntax import SyntaxTrees

# A replay has time: this is a limit against one that never ends, not a budget of the editor's.
_SECONDS = 2.0


def parse_error_delta(before: str, after: str, language_id: str) -> int | None:
    """Errors of the whole text after a suggestion, less those before it; None without a grammar."""
    trees = SyntaxTrees()
    earlier = trees.error_count(before, language_id, seconds=_SECONDS)
    later = trees.error_count(after, language_id, seconds=_SECONDS)
    return None if earlier is None or later is None else later - earlier
