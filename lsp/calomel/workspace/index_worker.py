"""The process that reads files for the index: paths come in, segments go out.

It runs apart, with low priority, so that reading thousands of files takes no time from the process that answers the
editor. It keeps nothing between two requests, and ends when the one who started it does.

A request is a line of JSON, `{"id": 1, "files": [["/abs/path", "name", null], ...]}`, where a text in the place of null
counts instead of the disk. An answer is two lengths (4 bytes each, little endian), a header in JSON
(`{"id", "skipped": {path: reason}, "files", "sizes"}`) and the arrays of a segment.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO, Final

from calomel.workspace.analysis import Analysis, analyse
from calomel.workspace.ignore import content_refusal
from calomel.workspace.segment import SourceFile, build_segment

FRAME: Final = struct.Struct("<II")
# Behind the editor and its language servers, before jobs that run for days.
_NICE: Final = 10
LONGEST_FILE: Final = 512_000


def read_source(path: str) -> tuple[str | None, str]:
    """The text of a file with LF line ends; else None, and why it is not read."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LONGEST_FILE + 1)
    except OSError:
        return None, "unreadable"
    if len(data) > LONGEST_FILE:
        return None, "too_large"
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None, "undecodable"
    return text, ""


def answer(request: dict[str, Any]) -> tuple[bytes, bytes]:
    """Header and arrays for one request."""
    read: list[tuple[SourceFile, Analysis]] = []
    skipped: dict[str, str] = {}
    for each in request["files"]:
        file = SourceFile(*each)
        text, reason = read_source(file.path) if file.text is None else (file.text, "")
        if text is not None:
            reason = content_refusal(text) or ""
        if text is None or reason:
            skipped[file.path] = reason
            continue
        read.append((file._replace(text=None), analyse(text.replace("\r\n", "\n").replace("\r", "\n"), file.path)))
    header, arrays = build_segment(read).to_bytes()
    return json.dumps({"id": request["id"], "skipped": skipped}).encode()[:-1] + b", " + header[1:], arrays


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more."""
    for line in requests:
        header, arrays = answer(json.loads(line))
        answers.write(FRAME.pack(len(header), len(arrays)))
        answers.write(header)
        answers.write(arrays)
        answers.flush()


def main() -> None:
    """Serve on the standard streams, behind everybody else."""
    os.nice(_NICE)
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except (BrokenPipeError, KeyboardInterrupt):
        # The one who asked is gone; nothing is lost.
        os._exit(0)


if __name__ == "__main__":
    main()
