"""JSON as editors write their settings: with comments and commas before closing brackets."""

from __future__ import annotations

import json
import re
from typing import Any, Final

# Strings first: what looks like a comment or a comma inside of one is none.
_STRING: Final = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT: Final = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMA: Final = re.compile(_STRING + r"|,(?=\s*[}\]])")


def loads(text: str) -> Any:
    """The value in `text`. Raises ValueError."""
    text = text.removeprefix("\ufeff")
    for pattern in (_COMMENT, _COMMA):
        text = pattern.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)
    return json.loads(text)
