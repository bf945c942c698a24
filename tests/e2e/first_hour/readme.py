"""What the README tells somebody to do in the first hour."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

_SECTION: Final = re.compile(
    r"^## Connect your editor\s*$(.*?^## Check that it works\s*$.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)
_START: Final = re.compile(r"^## Quick start\s*$.*?^```sh\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_CHOICE: Final = re.compile(r"^## Choose your model\s*$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_BOLD: Final = re.compile(r"^\*\*(.+?)\*\*", re.MULTILINE)
_FILE: Final = re.compile(r"[Ss]ave this as `([^`]+)`")
_CHANGE: Final = re.compile(r"[Cc]hange `([^`]+)` in the first line to `([^`]+)`")


@dataclass(frozen=True, slots=True)
class FirstHour:
    """The words of the README that a program can follow.

    Attributes:
        first: shell lines for everybody, in order.
        editors: by the editor's name, those for its users, in order.
        ways: by what answers, those that choose another model, in order.
        file: name of the file to type in.
        text: of it.
        old: what is to be changed in its first line.
        new: into what.
    """

    first: tuple[str, ...]
    editors: dict[str, tuple[str, ...]]
    ways: dict[str, tuple[str, ...]]
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
    start, section, choice = _START.search(readme), _SECTION.search(readme), _CHOICE.search(readme)
    if start is None or section is None or choice is None:
        raise ValueError("the README has no quick start, or no section on connecting an editor or choosing a model")
    words = section[1]
    text = next((block[2] for block in _BLOCK.finditer(words) if block[1] != "sh"), "")
    file, change = _FILE.search(words), _CHANGE.search(" ".join(words.split()))
    if not text or file is None or change is None:
        raise ValueError("the README's section on editors lacks its file or its edit")
    first = tuple(start[1].splitlines())
    return FirstHour(first, _named(words), _named(choice[1]), file[1], text, change[1], change[2])


def _named(words: str) -> dict[str, tuple[str, ...]]:
    """The shell lines of a section, each block by the bold words before it."""
    found, end = {}, 0
    for block in _BLOCK.finditer(words):
        if block[1] == "sh":
            found[_BOLD.findall(words, end, block.start())[-1]] = tuple(block[2].splitlines())
        end = block.end()
    return found


# One shell for all commands of the README, as somebody has one open: what it exports stays.
_AGREED: Final = b"y\n"
_QUESTION: Final = re.compile(rb"\[[yY]/[nN]\]:? $")
_MARK: Final = "first-hour-exit-status"


class CommandFailedError(Exception):
    """A command of the README failed, or took too long."""


class Shell:
    """A bash behind a terminal; yes is said to every question."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._terminal, theirs = pty.openpty()
        self.process = subprocess.Popen(
            ["bash", "--noediting", "--noprofile", "--norc"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=environment | {"PS1": "", "PS2": "", "TERM": "dumb"},
            start_new_session=True,
        )
        os.close(theirs)
        self.run("stty -echo", 60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._terminal)

    def run(self, command: str, limit: float) -> None:
        """Run a line. Raises CommandFailedError after `limit` seconds or when it fails."""
        began = time.monotonic()
        # The mark is apart here and together in what is printed, since the terminal echoes the line. The braces have
        # all of it read before the command runs, which may itself read from the terminal.
        os.write(self._terminal, f"{{\n{command}\nprintf '%s%s:%d:\\n' {_MARK[:5]} {_MARK[5:]} $?\n}}\n".encode())
        said, answered = b"", 0
        while f"{_MARK}:".encode() not in said or not said.rstrip().endswith(b":"):
            left = limit - (time.monotonic() - began)
            if left <= 0:
                raise CommandFailedError(f"{command}: not done after {limit:.0f} seconds\n{_tail(said)}")
            if select.select([self._terminal], [], [], min(left, 1.0))[0]:
                with contextlib.suppress(OSError):
                    said += os.read(self._terminal, 65_536)
            if _QUESTION.search(said, answered):
                answered = len(said)
                os.write(self._terminal, _AGREED)
        status = said.rsplit(f"{_MARK}:".encode(), 1)[1].split(b":")[0]
        if status != b"0":
            raise CommandFailedError(f"{command}: exit status {status.decode()}\n{_tail(said)}")


def _tail(said: bytes) -> str:
    return said.decode(errors="replace")[-3000:]
