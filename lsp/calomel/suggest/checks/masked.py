"""Suggestions that touch masked secrets, or that contain what looks like one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from calomel.suggest.suggestion import TextEdit

# A secret is masked by asterisks, one for each character. Banners of comments have them too, but not inside of quotes,
# nor behind an equals sign.
_MASKED_VALUE: Final = re.compile(r"""["'`=:@]\s*\*{6,}|\*{6,}["'`@]""")


def touches_masked(edits: Iterable[TextEdit], text: str, masked: str) -> bool:
    """Whether an edit replaces characters that the model did not see, or stands directly beside them.

    Args:
        edits: of `text`.
        text: the document's.
        masked: the same with every character of a secret replaced.
    """
    if text is masked or text == masked:
        return False
    return any(
        text[max(0, edit.start - 1) : edit.end + 1] != masked[max(0, edit.start - 1) : edit.end + 1] for edit in edits
    )


def has_mask(text: str) -> bool:
    """Whether a suggested text has a masked value in it: the model learned it from the prompt."""
    return _MASKED_VALUE.search(text) is not None
