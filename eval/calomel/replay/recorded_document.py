"""One document of a recording: its text as far as it is known, and whether it is what the log says it is."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from calomel.replay.causes import CauseFinder
from calomel.replay.events import Edit, Problem
from calomel.replay.units import joined

# Enough of a hash to tell the texts of a session apart; the recorder keeps no more.
CONTENT_ID_LENGTH: Final = 24


def content_id(text: str) -> str:
    """The recorder's name of a text: the first 24 characters of the base64 of its SHA-256."""
    data = joined(text).encode("utf-8", "replace")
    return base64.b64encode(hashlib.sha256(data).digest()).decode("ascii")[:CONTENT_ID_LENGTH]


@dataclass(slots=True)
class RecordedDocument:
    """What is known of a document.

    Attributes:
        path: as prompts name it.
        text: None as long as it is not known, or not for sure.
        version: of the text, None when the log counts none.
        opened: the replay was told of it.
        finder: of the causes of its changes.
    """

    path: str
    text: str | None = None
    version: int | None = None
    opened: bool = False
    finder: CauseFinder = field(default_factory=CauseFinder)
    _aside: Problem | None = None
    _left_out: int = 0

    def put_aside(self, entry: int, why: str) -> None:
        """From here on the text is not known for sure: what follows is left out until it is."""
        if self._aside is None:
            self._aside = Problem(entry, why)
        self.text = None

    def leave_out(self, entry: int) -> None:
        """Count an entry that is of no use without the text."""
        if self._aside is None:
            self._aside = Problem(entry, f"The text of {self.path} is not known here.")
        else:
            self._left_out += 1

    def known(self, text: str, version: int | None, entry: int, problems: list[Problem]) -> None:
        """The log says the whole text."""
        self.settle(problems, entry)
        self.text, self.version = text, version
        self.finder = CauseFinder()

    def settle(self, problems: list[Problem], entry: int | None = None) -> None:
        """Say what was left out since the text became uncertain, until `entry`; None: until the end."""
        if self._aside is None:
            return
        until = "to the end" if entry is None else f"until entry {entry}, which says the text anew"
        later = f" So are {self._left_out} later entries of {self.path}, {until}." if self._left_out else ""
        problems.append(Problem(self._aside.entry, f"{self._aside.message} The entry is left out.{later}"))
        self._aside, self._left_out = None, 0


def edits_of(value: object) -> tuple[Edit, ...]:
    """The edits of an entry, `[[start, end, text], ...]`, sorted. Raises ValueError when they are none."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValueError("its edits are no list")  # noqa: TRY004 - of a file, not an argument
    found: list[Edit] = []
    for each in value:
        if not isinstance(each, Sequence) or len(each) != len(("start", "end", "text")):
            raise ValueError(f"an edit of it is {each!r}, not [start, end, text]")
        start, end, text = each
        numbers = type(start) is int and type(end) is int
        if not numbers or not isinstance(text, str):
            raise ValueError(f"an edit of it is {each!r}, not [start, end, text]")
        found.append(Edit(start, end, text))
    return tuple(sorted(found, key=lambda edit: (edit.start, edit.end)))
