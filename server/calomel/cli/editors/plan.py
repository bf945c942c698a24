"""What setting up an editor comes to: files to write, and what is left to the user."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Change:
    """A file, before and after; `before` is None where there is none yet."""

    path: Path
    before: str | None
    after: str

    @property
    def needed(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after

    def diff(self) -> str:
        """The change as a unified diff."""
        name = str(self.path)
        old, new = ("" if self.before is None else self.before), self.after
        lines = difflib.unified_diff(
            old.splitlines(keepends=True),
            new.splitlines(keepends=True),
            "/dev/null" if self.before is None else name,
            name,
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text that is the user's to put somewhere: what, and where."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """For one editor.

    Attributes:
        changes: files that can be written safely.
        snippets: what cannot.
        notes: sentences about what else is to be done.
    """

    changes: tuple[Change, ...] = ()
    snippets: tuple[Snippet, ...] = ()
    notes: tuple[str, ...] = field(default=())
