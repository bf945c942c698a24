"""A program in a terminal of its own: keys go in, and what would stand on the screen can be looked at.

The screen understands what the programs of these tests send: text, places, and what clears. Colours are left out.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.editors.shared import SECONDS, Scripted
from tests.lsp.program import environment

LINES: Final = 40
COLUMNS: Final = 120

# Control sequences, strings for the terminal itself, other escapes, single control characters, text.
_PIECE: Final = re.compile(
    r"\x1b\[(?P<args>[0-9;:?<=>]*)[ !\"$']*(?P<end>[@-~])"
    r"|\x1b[]PX^_].*?(?:\x07|\x1b\\)"
    r"|\x1b[()*+#%].|\x1b[^\[\]PX^_()*+#%]"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f])"
    r"|(?P<text>[^\x00-\x1f]+)",
    re.DOTALL,
)

# Opened first by a session of its own, the terminal becomes the one that its keys act on.
_START: Final = "import os, sys; os.open(os.ttyname(0), os.O_RDWR); os.execv(sys.argv[1], sys.argv[1:])"


class Screen:
    """Rows of characters."""

    def __init__(self, lines: int = LINES, columns: int = COLUMNS) -> None:
        self._rows = [[" "] * columns for _ in range(lines)]
        self._row = self._column = 0
        self._rest = ""

    def feed(self, text: str) -> None:
        """Take what the program wrote; a sequence that is not whole yet waits for its rest."""
        text = self._rest + text
        at = 0
        while found := _PIECE.match(text, at):
            at = found.end()
            if found["text"] is not None:
                self._put(found["text"])
            elif found["control"] is not None:
                self._control(found["control"])
            elif found["end"] is not None:
                self._sequence(found["end"], found["args"])
        self._rest = text[at:]

    def lines(self) -> list[str]:
        """The rows, without blanks at their ends."""
        return ["".join(row).rstrip() for row in self._rows]

    def _put(self, text: str) -> None:
        for character in text:
            if self._column < len(self._rows[0]):
                self._rows[self._row][self._column] = character
            self._column += 1

    def _control(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._row = min(self._row + 1, len(self._rows) - 1)
        elif character == "\b":
            self._column = max(0, self._column - 1)

    def _sequence(self, end: str, args: str) -> None:
        if not re.fullmatch(r"[0-9;]*", args):
            return
        first, second = ([int(each or 0) for each in args.split(";")] + [0])[:2]
        if end in "Hf":
            self._row, self._column = min(max(first, 1), len(self._rows)) - 1, max(second, 1) - 1
        elif end in "ABCD":
            step = max(first, 1)
            self._row = min(max(self._row + {"A": -step, "B": step}.get(end, 0), 0), len(self._rows) - 1)
            self._column = max(self._column + {"C": step, "D": -step}.get(end, 0), 0)
        elif end in "JK":
            row, start = self._rows[self._row], 0 if first else self._column
            row[start:] = [" "] * (len(row) - start)
            for other in self._rows[0 if first else self._row + 1 :] if end == "J" else []:
                other[:] = [" "] * len(other)


class Terminal:
    """One program."""

    def __init__(self, command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-S", "-c", _START, *command],
                stdin=slave,
                stdout=slave,
                stderr=slave,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        finally:
            os.close(slave)
        self._screen = Screen()
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def end(self) -> None:
        """End the program; what it started ends with it."""
        self.process.terminate()
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(SECONDS)
        os.close(self._master)

    def _read(self) -> None:
        # The other end is gone when the program is.
        with contextlib.suppress(OSError):
            while data := os.read(self._master, 65536):
                with self._lock:
                    self._screen.feed(data.decode("utf-8", "replace"))

    def write(self, text: str) -> None:
        """Press keys, as a terminal sends them."""
        os.write(self._master, text.encode())

    def lines(self) -> list[str]:
        """What stands on the screen."""
        with self._lock:
            return self._screen.lines()


class InTerminal(Scripted):
    """An editor in a terminal, with one language server that reads nothing but the buffers."""

    def __init__(self, command: Sequence[str | Path], folder: Path, **more: str) -> None:
        """`more` is of its environment, beside an empty home."""
        self.folder = folder
        self.seconds = SECONDS
        # The folder that the server is started for.
        (folder / "calomel.toml").write_text("[workspace]\nindex = false\n", encoding="utf-8")
        private = environment(folder, {"fill": None})
        self.terminal = Terminal(command, folder, private | {"HOME": str(folder), "LC_ALL": "C.UTF-8", **more})

    def report(self) -> str:
        """The screen, and what the model was asked."""
        return "\n".join([f"asked {self.asked()[-4:]}", *filter(None, self.terminal.lines())])
