"""llama.cpp inside: one process with a GGUF model, shared by all of the user's editor windows (extra `llama`).

The process is the server of the package xllamacpp. It listens on a Unix socket in the runtime folder, or at a port
of 127.0.0.1 where there are none, with a random key; publishes both in a runtime file; and ends when nobody has asked
it for the idle time. The editor's side asks it as it asks any llama.cpp (`calomel.infer.upstream`).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from calomel.infer import runtime_file
from calomel.infer.completer import PROTOCOL_VERSION, version
from calomel.infer.runtime_file import RuntimeFileError, ServerRecord, check_folder, connection
from calomel.storage import ENDING, processors, start_of
from calomel.weights import gguf_in
from calomel.weights.gguf import GgufError, check_gguf

# Two windows, or text at the cursor and an edit, at a time; they share the context.
_SLOTS: Final = 2
_CONTEXT: Final = 8192
# Prompts that were moved out of the context, so that another window's file is not read anew.
_CACHE_MIB: Final = 512
# llama.cpp's levels of its log: 1 errors, 2 warnings, 3 information.
_WARNINGS: Final = 2
_LOOK_SECONDS: Final = 5.0
_ANSWER_BYTES: Final = 1024 * 1024
# What llama.cpp counts whenever it is asked (its `/metrics`).
_COUNTED: Final = (b"llamacpp:prompt_tokens_total ", b"llamacpp:tokens_predicted_total ", b"llamacpp:n_decode_total ")
_RUNNING: Final = b"llamacpp:requests_processing "


def opens(place: Path) -> bool:
    """Whether the model at `place` runs in llama.cpp: it is a GGUF file, and the extra `llama` is there."""
    return find_spec("xllamacpp") is not None and gguf_in(place) is not None


def threads() -> int:
    """Processor threads, if the user sets none: one is left to the editor and to everything else."""
    return max(1, processors() - 1)


def main(arguments: Sequence[str] | None = None) -> None:
    """The process. Raises SystemExit with a sentence for a file that llama.cpp cannot open."""
    parser = argparse.ArgumentParser(prog="llama.cpp")
    parser.add_argument("file", type=Path)
    parser.add_argument("--runtime-file", type=Path, required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=threads())
    parser.add_argument("--idle-minutes", type=float, default=30.0)
    given = parser.parse_args(arguments)
    ended = threading.Event()
    for number in ENDING:
        signal.signal(number, lambda *_: ended.set())
    key = os.urandom(32).hex()
    path = runtime_file.socket_path(given.runtime_file)
    try:
        with _opened(given, path, key) as url:
            pid = os.getpid()
            record = ServerRecord(
                url, key, pid, start_of(pid), str(given.file), given.weights, given.device, version(), PROTOCOL_VERSION
            )
            with runtime_file.published(given.runtime_file, record):
                _wait(url, key, given.idle_minutes * 60, ended)
    except RuntimeFileError as error:
        raise SystemExit(f"error: {error}") from None


@contextlib.contextmanager
def _opened(given: argparse.Namespace, path: Path | None, key: str) -> Iterator[str]:
    """The server, once its model is loaded; yields its address."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(given.file)
    parameters.hostnames = ["127.0.0.1" if path is None else str(path)]
    parameters.port = 0
    parameters.api_keys = [key]
    parameters.n_ctx, parameters.n_parallel, parameters.kv_unified = _CONTEXT, _SLOTS, True
    parameters.cache_ram_mib = _CACHE_MIB
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = given.threads
    if given.device == "cpu":
        parameters.n_gpu_layers = 0
    parameters.verbosity = _WARNINGS
    parameters.ui, parameters.offline, parameters.endpoint_metrics = False, True, True
    if path is not None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_folder(path.parent)
        os.umask(0o177)
    try:
        server = xllamacpp.Server(parameters)
    except (RuntimeError, ValueError, OSError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        try:
            check_gguf(given.file)
        except GgufError as damage:
            raise SystemExit(f"error: {damage}; fetch it again") from None
        raise SystemExit(f"error: llama.cpp cannot open {given.file}: {reason}") from None
    try:
        yield _url(path, server)
    finally:
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink()
        # llama.cpp's own end may wait for a running request; nobody is left to read its answer.
        sys.stderr.flush()


def _url(path: Path | None, server: Any) -> str:
    return str(server.listening_address) if path is None else f"unix:{path}"


def _wait(url: str, key: str, idle_seconds: float, ended: threading.Event) -> None:
    """Return when the process is told to end, or nobody has asked for so long."""
    counted, since = b"", time.monotonic()
    while not ended.wait(min(_LOOK_SECONDS, idle_seconds)):
        now = time.monotonic()
        counts = _counts(url, key)
        if counts is None or counts != counted:
            counted, since = counts or counted, now
        elif now - since >= idle_seconds:
            return


def _counts(url: str, key: str) -> bytes | None:
    """The counters that grow with each question; None while one runs or nothing is said."""
    body = get(url, "/metrics", key)
    lines = body.splitlines()
    running = next((line.removeprefix(_RUNNING) for line in lines if line.startswith(_RUNNING)), b"0")
    return None if running.strip() != b"0" else b"\n".join(line for line in lines if line.startswith(_COUNTED))


def get(url: str, path: str, key: str = "", seconds: float = _LOOK_SECONDS) -> bytes:
    """The body of a good answer of a server; empty for any other, and for none."""
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    head = f"GET {path} HTTP/1.0\r\nHost: localhost\r\n{authorization}\r\n"
    data = b""
    try:
        with connection(url, seconds) as talk:
            talk.sendall(head.encode())
            while (chunk := talk.recv(65_536)) and len(data) < _ANSWER_BYTES:
                data += chunk
    except OSError:
        return b""
    first, _, body = data.partition(b"\r\n\r\n")
    return body if b" 200 " in first.partition(b"\r\n")[0] + b" " else b""


if __name__ == "__main__":
    main()
