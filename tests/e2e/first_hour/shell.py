"""One shell for all commands of the README, as somebody has one open: what it exports stays."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Final, Self

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
