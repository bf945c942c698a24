from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from calomel.suggest.process import DEAD_THREADS, DeadThread, dead_threads_logged


def end_badly(name: str) -> None:
    """Have a thread end with an error that quotes a user's text."""

    def fail() -> None:
        raise ValueError("the customer's name")

    thread = threading.Thread(target=fail, name=name)
    thread.start()
    thread.join()


def test_a_thread_that_dies_is_logged_and_kept_by_name_and_place_without_its_words(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[DeadThread] = []
    before = threading.excepthook
    with dead_threads_logged(logging.getLogger("tests.dead_threads")):
        DEAD_THREADS.tell.add(told.append)
        end_badly("calomel-reader")
        DEAD_THREADS.tell.discard(told.append)
        [dead] = DEAD_THREADS.seen
    assert threading.excepthook is before
    assert (dead.name, dead.error, dead.place.split(":")[0]) == ("calomel-reader", "ValueError", Path(__file__).name)
    assert told == [dead]
    assert DEAD_THREADS.seen == []
    assert str(dead) in caplog.text
    assert str(DeadThread("a", "KeyError", "b.py:1")) == "the thread a ended with KeyError at b.py:1"
    assert "customer" not in caplog.text + capsys.readouterr().err
