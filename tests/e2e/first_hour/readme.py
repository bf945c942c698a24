"""What the README tells somebody to do in the first hour."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SECTION: Final = re.compile(
    r"^## Connect your editor\s*$(.*?^## Check that it works\s*$.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)
_START: Final = re.compile(r"^## Quick start\s*$.*?^```sh\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_EDITOR: Final = re.compile(r"^\*\*(.+?)\*\*", re.MULTILINE)
_FILE: Final = re.compile(r"[Ss]ave this as `([^`]+)`")
_CHANGE: Final = re.compile(r"[Cc]hange `([^`]+)` in the first line to `([^`]+)`")


@dataclass(frozen=True, slots=True)
class FirstHour:
    """The words of the README that a program can follow.

    Attributes:
        first: shell lines for everybody, in order.
        editors: by the editor's name, those for its users, in order.
        file: name of the file to type in.
        text: of it.
        old: what is to be changed in its first line.
        new: into what.
    """

    first: tuple[str, ...]
    editors: dict[str, tuple[str, ...]]
    file: str
    text: str
    old: str
    new: str

    @property
    def typed(self) -> str:
        """The text once the user has done what he is told to."""
        return self.text.replace(self.old, self.new, 1)

    @property
    def done(self) -> str:
        """The text once every next edit was taken."""
        return re.sub(rf"\b{re.escape(self.old)}\b", self.new, self.text)


def read(path: Path) -> FirstHour:
    """Read it. Raises ValueError where something is missing."""
    readme = path.read_text(encoding="utf-8")
    start, section = _START.search(readme), _SECTION.search(readme)
    if start is None or section is None:
        raise ValueError("the README has no quick start, or no section on connecting an editor")
    words = section[1]
    first: list[str] = start[1].splitlines()
    editors: dict[str, tuple[str, ...]] = {}
    text, end = "", 0
    for block in _BLOCK.finditer(words):
        named = _EDITOR.findall(words, end, block.start())
        end = block.end()
        lines = tuple(line for line in block[2].splitlines() if line.strip())
        if block[1] != "sh":
            text = block[2]
        elif named:
            editors[named[-1]] = lines
        else:
            first += lines
    file, change = _FILE.search(words), _CHANGE.search(" ".join(words.split()))
    if not first or not text or file is None or change is None:
        raise ValueError("the README's section on editors lacks its commands, its file or its edit")
    return FirstHour(tuple(first), editors, file[1], text, change[1], change[2])
