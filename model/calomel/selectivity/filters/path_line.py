"""A comment that names the file: the head of a prompt's excerpt, no part of the file itself."""

from __future__ import annotations

import re
from typing import Final

from calomel.selectivity.proposal import Proposal

_PATH_LINE: Final = re.compile(
    r"\s*(?:(?:#|//|--|;|%|/\*|<!--|\"{3})\s*(?:(?:[Ff]ile ?)?[Pp]ath|[Ff]ile(?: ?[Nn]ame)?)|current_file_path)\s*:"
    r"\s*[`'\"]?(?:[\w.-]*[/\\])*[\w-]+\.\w{1,8}[`'\"]?\s*(?:\*/|-->)?\s*(?:[\r\n]|\Z)"
)


def path_line(proposal: Proposal) -> bool:
    """Whether what it writes begins with such a line, `# Path: src/app.py`, which stands in no file at its cursor."""
    return any(_PATH_LINE.match(new) is not None for _, _, new in proposal.edits)
