"""What was edited lately, as Zed tells it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Final

_CONTEXT: Final = 3


@dataclass(frozen=True, slots=True)
class Event:
    """One change of a file; `predicted` when the user accepted it."""

    path: str
    before: str
    after: str
    predicted: bool = False

    @property
    def text(self) -> str:
        """As a prompt shows it."""
        diff = difflib.unified_diff(
            self.before.splitlines(keepends=True), self.after.splitlines(keepends=True), n=_CONTEXT
        )
        hunks = "".join(line if line.endswith("\n") else f"{line}\n" for line in list(diff)[2:])
        mark = "// User accepted prediction:\n" if self.predicted else ""
        return f"{mark}--- a/{self.path}\n+++ b/{self.path}\n{hunks}"
