"""How much of a suggestion's text is still there later."""

from __future__ import annotations

from calomel.replay.metrics.words import common_characters, in_common, words


def kept_rate(base: str, predicted: str, final: str) -> float:
    """0 to 1: the share of the suggestion's new characters that the final text has, too.

    Words that all three texts share are context. 1 when neither side has anything new, 0 when only the final text has.

    Args:
        base: the text before the suggestion.
        predicted: the text with it.
        final: the text as the person left it.
    """
    old, ours, theirs = words(base), words(predicted), words(final)
    new = _without_context(ours, old, theirs)
    left = _without_context(theirs, old, ours)
    if not new:
        return 0.0 if left else 1.0
    return common_characters(new, left) / len(new)


def _without_context(tokens: list[str], one: list[str], other: list[str]) -> str:
    shared = zip(tokens, in_common(tokens, one), in_common(tokens, other), strict=True)
    return "".join(token for token, in_one, in_other in shared if not (in_one and in_other))
