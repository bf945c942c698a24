from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from calomel.workspace.watch import Debounce


class Timers:
    """Rings when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def make(self, _seconds: float, ring: Callable[[], None]) -> threading.Timer:
        waiting = self.waiting

        class Timer(threading.Timer):
            def start(self) -> None:
                waiting.append(ring)

        return Timer(0, ring)

    def ring(self) -> None:
        self.waiting.pop()()


def test_paths_are_told_of_once_it_is_quiet() -> None:
    told: list[list[str]] = []
    timers = Timers()
    debounce = Debounce(lambda paths: told.append([path.name for path in paths]), 1.0, 3.0, timers.make)
    debounce.add(Path("a"))
    debounce.add(Path("b"))
    timers.ring()
    assert told == []
    debounce.add(Path("a"))
    timers.ring()
    timers.ring()
    assert told == [["a", "b"]]
    assert not timers.waiting


def test_endless_changes_are_told_of_all_the_same() -> None:
    told: list[int] = []
    timers = Timers()
    debounce = Debounce(lambda paths: told.append(len(paths)), 1.0, 3.0, timers.make)
    debounce.add(Path("0"))
    for number in range(1, 4):
        debounce.add(Path(str(number)))
        timers.ring()
    assert told == [4]


def test_what_was_collected_is_forgotten_when_cancelled() -> None:
    told: list[int] = []
    timers = Timers()
    debounce = Debounce(lambda paths: told.append(len(paths)), 1.0, 3.0, timers.make)
    debounce.add(Path("a"))
    debounce.cancel()
    timers.ring()
    assert told == []
