from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from calomel.storage.failures import dead_threads_logged


def test_a_thread_that_dies_is_logged_by_name_and_place_without_its_words(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise ValueError("the customer's name")

    before = threading.excepthook
    with dead_threads_logged(logging.getLogger("tests.dead_threads")):
        thread = threading.Thread(target=fail, name="calomel-reader")
        thread.start()
        thread.join()
    assert threading.excepthook is before
    assert f"the thread calomel-reader ended with ValueError at {Path(__file__).name}:" in caplog.text
    assert "customer" not in caplog.text + capsys.readouterr().err
