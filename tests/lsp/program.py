"""The real program with a scripted model: how to start it, and a client that speaks bytes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

SCRIPTED = [sys.executable, str(Path(__file__).parent / "scripted_server.py")]
REAL = [sys.executable, "-m", "calomel.cli", "lsp"]


def environment(folder: Path, script: dict[str, Any] | None = None) -> dict[str, str]:
    """Private folders, and the script of the model."""
    (folder / "script.json").write_text(json.dumps(script or {"fill": "return a + b"}), encoding="utf-8")
    names = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    private = {name: str(folder / name.lower()) for name in names}
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    return {
        **os.environ,
        **private,
        "XDG_RUNTIME_DIR": str(runtime),
        # What the tests themselves were told to take comes with them.
        "PYTHONPATH": os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")))),
        "CALOMEL_TEST_SCRIPT": str(folder / "script.json"),
        "CALOMEL_TEST_ASKED": str(folder / "asked.jsonl"),
    }


class Program:
    """A running program; `read` gives its next message."""

    def __init__(self, folder: Path, command: list[str] | None = None, script: dict[str, Any] | None = None) -> None:
        self.process = subprocess.Popen(
            command or SCRIPTED,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(folder, script),
        )
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        body = json.dumps(message).encode()
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while line := self.process.stdout.readline():
            if not line.strip():
                return dict(json.loads(self.process.stdout.read(length)))
            name, _, value = line.partition(b":")
            # Nothing but headers may stand here.
            assert name == b"Content-Length", line
            length = int(value)
        raise EOFError

    def ask(self, method: str, params: Any = None) -> Any:
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == self._number and "method" not in message:
                assert "error" not in message, message
                return message["result"]

    def initialize(self, **options: Any) -> Any:
        params = {
            "processId": os.getpid(),
            "rootUri": None,
            "capabilities": {},
            "initializationOptions": {"calomel": options},
        }
        result = self.ask("initialize", params)
        self.notify("initialized", {})
        return result

    def end(self) -> int:
        return self.process.wait(20)
