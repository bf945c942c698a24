"""The process that reads files for the index: paths come in, segments go out.

It runs separately, with low priority, so that reading thousands of files takes no time from the process that answers
the editor. It keeps nothing between two requests, and ends with the process that started it.

A request is a list of `SourceFile`s and whether n-grams are wanted, a response what `answer` returns; they travel over
the socket that is its standard input.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe
from typing import Final

from calomel.storage import behind_others, read_regular
from calomel.workspace.privacy import content_refusal
from calomel.workspace.segment import Analysis, Segment, SourceFile, analyse, build_segment

# Lower priority than the editor and its language servers, higher than jobs that run for days.
_NICE: Final = 10
LONGEST_FILE: Final = 512_000


def read_source(path: str) -> tuple[str | None, str]:
    """The text of a file with LF line ends; else None, and why it is not read."""
    try:
        data = read_regular(path, LONGEST_FILE + 1)
    except OSError:
        return None, "unreadable"
    if len(data) > LONGEST_FILE:
        return None, "too_large"
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None, "undecodable"
    return text, ""


def answer(files: Sequence[SourceFile], *, ngrams: bool) -> tuple[Segment, dict[str, str]]:
    """The segment of some files, with or without n-grams, and path → reason of the skipped ones."""
    read: list[tuple[SourceFile, Analysis]] = []
    skipped: dict[str, str] = {}
    for file in files:
        text, reason = read_source(file.path) if file.text is None else (file.text, "")
        if text is not None:
            reason = content_refusal(text, wanted=file.wanted) or ""
        if text is None or reason:
            skipped[file.path] = reason
            continue
        read.append((file._replace(text=None), analyse(text.replace("\r\n", "\n").replace("\r", "\n"), file.path)))
    return build_segment(read, ngrams=ngrams), skipped


def main() -> None:
    """Answer requests until there are no more, at low priority."""
    behind_others(_NICE)
    asker = Connection(sys.stdin.fileno())
    try:
        while True:
            files, ngrams = asker.recv()
            asker.send(answer(files, ngrams=ngrams))
    except (EOFError, OSError, KeyboardInterrupt):
        # The other process is gone; nothing is lost.
        os._exit(0)


# `-P`: a folder that the user works in must not be able to replace our modules.
COMMAND: Final = (sys.executable, "-P", "-m", "calomel.workspace.index_worker")
# It only reads files; a numerical library's threads would take processor time from others.
_ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class WorkerDied(Exception):  # noqa: N818 (an event)
    """The worker process ended. The message says how."""


class IndexProcess:
    """One worker. For one thread only, except `kill`, which any thread may call and which ends a waiting `read`."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._worker, theirs = Pipe()
        try:
            # A new process, not a fork: this one has threads.
            self.process = subprocess.Popen(  # noqa: S603 (our own module)
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD},
                start_new_session=True,
            )
        except OSError as error:
            self._worker.close()
            raise WorkerDied(str(error)) from error
        finally:
            theirs.close()

    def read(self, files: Sequence[SourceFile], *, ngrams: bool) -> tuple[Segment, dict[str, str]]:
        """Let the worker read files: returns their segment, and path → reason of the skipped ones."""
        try:
            self._worker.send((files, ngrams))
            segment, skipped = self._worker.recv()
        except (OSError, EOFError) as error:
            raise WorkerDied(str(error) or type(error).__name__) from error
        return segment, skipped

    def kill(self) -> None:
        """End the process now."""
        self.process.kill()

    def close(self) -> str:
        """End the process, close the socket to it, and return how it ended."""
        self.kill()
        self._worker.close()
        code = self.process.wait()
        return f"signal {-code}" if code < 0 else f"exit status {code}"


if __name__ == "__main__":
    main()
