"""The bytes of a connection: standard input and output, reserved for the protocol."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Final

from calomel.storage import process_of

POLL_SECONDS: Final = 2.0


def watch_parent(process_id: int, gone: Callable[[], None]) -> None:
    """Call `gone` from another thread once the process has ended; a process that does not exist counts as ended."""
    threading.Thread(target=_wait_for_parent, args=(process_id, gone), name="calomel-parent", daemon=True).start()


def _wait_for_parent(process_id: int, gone: Callable[[], None]) -> None:
    pause = threading.Event()
    while process_of(process_id) is not None:
        pause.wait(POLL_SECONDS)
    gone()


CHUNK_BYTES: Final = 1 << 16
# If a client sends faster than its messages are handled, the rest waits in the pipe, not in memory.
MAX_PENDING_BYTES: Final = 64 * 1024 * 1024


class Transport:
    """Reads in its own thread, so that no pool, slow handler or unusual kind of pipe can block it.

    Args:
        read: blocks until there are bytes; empty at the end of the stream.
        write: blocks until all bytes are written.
    """

    def __init__(self, read: Callable[[int], bytes], write: Callable[[bytes], None]) -> None:
        self._receive = read
        self._write = write
        self._closed = False

    def read(self, size: int) -> bytes:
        """Wait for bytes; empty at the end of the stream. Not allowed after `start`."""
        try:
            return self._receive(size)
        except OSError:
            return b""

    def start(self, arrived: Callable[[bytes], None]) -> None:
        """Call `arrived` on the running event loop with each chunk, finally with an empty one."""
        import asyncio

        loop = asyncio.get_running_loop()
        room = threading.Semaphore(MAX_PENDING_BYTES // CHUNK_BYTES)

        def deliver(data: bytes) -> None:
            room.release()
            arrived(data)

        def pump() -> None:
            data = b"."
            while data:
                data = self.read(CHUNK_BYTES)
                room.acquire()
                try:
                    loop.call_soon_threadsafe(deliver, data)
                except RuntimeError:
                    return  # the loop is closed: nobody listens any more

        threading.Thread(target=pump, name="calomel-read", daemon=True).start()

    def write(self, data: bytes) -> bool:
        """Send `data`; False when nobody reads any more."""
        if not self._closed:
            try:
                self._write(data)
            except (OSError, ValueError):
                self._closed = True
        return not self._closed


def claim_stdio() -> Transport:
    """Take standard input and output away from everything else in this process and its children.

    Everything printed goes to stderr; whatever reads standard input finds it empty. Call it before anything else can
    print.
    """
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a stderr
        os.dup2(nothing, 2)
        os.dup2(nothing, 1)
    os.close(nothing)
    sys.stdout = sys.stderr
    return Transport(lambda size: os.read(reading, size), lambda data: _write_all(writing, data))


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
