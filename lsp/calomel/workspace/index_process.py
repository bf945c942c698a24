"""The worker process of the index, as seen by the one who starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from calomel.workspace.index_worker import FRAME
from calomel.workspace.segment import Segment, SourceFile

# `-P`: a folder that the user works in must not be able to replace our modules.
COMMAND: Final = (sys.executable, "-P", "-m", "calomel.workspace.index_worker")
# It only reads files; threads of a numerical library would take the processor from others.
_ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class WorkerDied(Exception):  # noqa: N818 (an event)
    """The worker process ended, or spoke nonsense. The message says how."""


class IndexProcess:
    """One worker. Not for several threads, but for `kill`, which any may call and which ends a waiting `read`."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        try:
            # A new process, not a fork: this one has threads.
            self._process = subprocess.Popen(  # noqa: S603 (our own module)
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **_ONE_THREAD},
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerDied(str(error)) from error

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def read(self, number: int, files: Sequence[SourceFile]) -> tuple[Segment, dict[str, str]]:
        """Let the worker read files: what it made of them, and path → reason of those that it left out."""
        request = json.dumps({"id": number, "files": files}).encode() + b"\n"
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise WorkerDied("no pipes")
        try:
            stdin.write(request)
            stdin.flush()
            header_size, data_size = FRAME.unpack(_exactly(stdout.read(FRAME.size), FRAME.size))
            header: dict[str, Any] = json.loads(_exactly(stdout.read(header_size), header_size))
            data = _exactly(stdout.read(data_size), data_size)
            if header["id"] != number:
                raise WorkerDied("an answer to another request")
            return Segment.from_bytes(header, data), header["skipped"]
        except (OSError, ValueError, KeyError) as error:
            raise WorkerDied(str(error) or type(error).__name__) from error

    def kill(self) -> None:
        """End the process now."""
        self._process.kill()

    def close(self) -> str:
        """End the process, let go of its pipes, and say how it ended."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    # Unsent bytes to a process that is gone.
                    continue
        code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit status {code}"


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise WorkerDied("it ended in the middle of an answer")
    return data
