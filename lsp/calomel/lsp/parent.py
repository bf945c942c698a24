"""Ends this process when the editor that started it is gone without a word."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import Final

POLL_SECONDS: Final = 2.0


def watch(process_id: int, gone: Callable[[], None]) -> None:
    """Call `gone` from another thread once the process has ended; a process that is not there counts as ended.

    A process of another user or another container cannot be watched: it counts as alive.
    """
    threading.Thread(target=_wait, args=(process_id, gone), name="calomel-parent", daemon=True).start()


def _wait(process_id: int, gone: Callable[[], None]) -> None:
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        gone()
        return
    except (OSError, AttributeError, OverflowError):
        _poll(process_id, gone)
        return
    select.select([descriptor], [], [])
    os.close(descriptor)
    gone()


def _poll(process_id: int, gone: Callable[[], None]) -> None:
    pause = threading.Event()
    while True:
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            gone()
            return
        except (OSError, OverflowError):
            return
        pause.wait(POLL_SECONDS)
