"""JSON as editors write their settings: with comments and commas before closing brackets."""

from __future__ import annotations

import json
import re
from typing import Any, Final

# Strings first: what looks like a comment inside of one is none.
_TOKEN: Final = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*(?://[^\n]*\s*|/\*.*?\*/\s*)*[}\]])', re.DOTALL
)


def loads(text: str) -> Any:
    """The value in `text`. Raises ValueError."""
    return json.loads(_TOKEN.sub(lambda match: match[0] if match[0].startswith('"') else " ", text))
