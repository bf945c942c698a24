"""The progress of a command: one bar on the terminal, if there is one."""

from __future__ import annotations

import atexit
import sys
from threading import Lock, Timer
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

# A shorter phase needs no bar.
PATIENCE_SECONDS: Final = 2.0


class Progress:
    """A bar on stderr for the phases of a command; it disappears after the last one, and is absent without a terminal.

    Text printed meanwhile appears above it. Use it as a context manager where a phase may fail.

    Args:
        console: of the bar; None for one on stderr.

    Attributes:
        timer: starts the phase of `later`; None without it.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self._bar: Bar | None = None
        self._left = 0
        self.timer: Timer | None = None
        self._lock = Lock()
        self._over = False

    def phase(self, name: str, total: int | None = None) -> None:
        """Begin a phase of `total` steps; None for an unknown number."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as TimeLeftColumn

        with self._lock:
            console = self._console or Console(stderr=True)
            if self._over or not console.is_terminal:
                return
            self._stop()
            known = () if total is None else (MofNCompleteColumn(), TimeLeftColumn())
            self._bar = Progress(
                *(TextColumn("{task.description}", markup=False), BarColumn(), *known, TimeElapsedColumn()),
                console=console,
                transient=True,
                # Output into a file stays in it.
                redirect_stdout=sys.stdout.isatty(),
            )
            self._bar.add_task(name, total=total)
            self._left = total or 0
            self._bar.start()
            # A program that ends midway must restore the cursor.
            atexit.register(self._stop)

    def step(self, done: int | None = None) -> None:
        """Count one more step, or set the number of steps done."""
        if self._bar is not None:
            task = self._bar.tasks[0]
            self._bar.update(task.id, completed=task.completed + 1 if done is None else done)
            if task.finished:
                self._stop()

    def say(self, sentence: str) -> None:
        """Write one line, with or without a terminal."""
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()

    def later(self, name: str) -> Self:
        """Begin a phase of unknown length if this context lasts longer than a moment."""
        self.timer = Timer(PATIENCE_SECONDS, self.phase, (name,))
        self.timer.daemon = True
        self.timer.start()
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        if self.timer is not None:
            self.timer.cancel()
        with self._lock:
            self._over = True
            self._stop()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
