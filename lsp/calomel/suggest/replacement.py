"""When a visible suggestion may give way to another one: never so that it flickers."""

from __future__ import annotations

from collections.abc import Sequence

from calomel.suggest.planned import Planned


def may_replace(shown: Sequence[Planned] | None, new: Sequence[Planned]) -> bool:
    """Whether `new` may take the place of `shown`, both being edits of the same text.

    A visible suggestion that still agrees with the text stays, unless the new one only goes on where it ends: one edit
    at the same place whose text begins with the shown one. The rule is Zed's.

    Args:
        shown: None when nothing is visible, or when what was visible no longer agrees.
        new: what the model says now.
    """
    if not shown:
        return True
    if len(shown) != 1 or len(new) != 1:
        return False
    old, other = shown[0], new[0]
    return (old.start, old.end) == (other.start, other.end) and other.text.startswith(old.text)
