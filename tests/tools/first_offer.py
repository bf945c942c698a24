"""Seconds until an editor of the installed Calomel shows text of a GGUF file, in an environment without PyTorch.

first_offer.py model FILE      Calomel opens the file in llama.cpp
first_offer.py upstream FILE   a llama.cpp with the file runs already, and is asked
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from importlib.util import find_spec
from typing import IO, Any

URI = "file:///project/shapes.py"
TEXT = "def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):\n    return a - b\n\n\ndef multiply(a, b):\n    \n"
SECONDS = 120.0


def send(pipe: IO[bytes], message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    pipe.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    pipe.flush()


def answer(pipe: IO[bytes], number: int) -> Any:
    """The result of a request; what else comes is of no interest."""
    while True:
        length = 0
        while (line := pipe.readline()) not in {b"\r\n", b""}:
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        if not length:
            raise SystemExit("the language server ended")
        message = json.loads(pipe.read(length))
        if message.get("id") == number and "method" not in message:
            return message["result"]


def first_offer(settings: dict[str, Any]) -> tuple[float, str]:
    """Seconds from the start of the language server to a text, and the text."""
    began = time.monotonic()
    command = [sys.executable, "-m", "calomel.cli", "lsp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        to, back = server.stdin, server.stdout
        options = {"backend": settings, "suggest": {"debounce_seconds": 0.0, "aggressiveness": 0.0}}
        params = {"processId": None, "rootUri": None, "capabilities": {}, "initializationOptions": options}
        send(to, {"id": 0, "method": "initialize", "params": params})
        answer(back, 0)
        send(to, {"method": "initialized", "params": {}})
        document = {"uri": URI, "languageId": "python", "version": 1, "text": TEXT}
        send(to, {"method": "textDocument/didOpen", "params": {"textDocument": document}})
        place = {"line": TEXT.count("\n") - 1, "character": 4}
        asked, number = {"textDocument": {"uri": URI}, "position": place, "context": {"triggerKind": 1}}, 0
        items: list[Any] = []
        while not items and time.monotonic() - began < SECONDS:
            number += 1
            send(to, {"id": number, "method": "textDocument/inlineCompletion", "params": asked})
            items = (answer(back, number) or {"items": []})["items"]
            time.sleep(0 if items else 0.05)
        seconds = time.monotonic() - began
        server.kill()
    if not items:
        raise SystemExit(f"no text within {SECONDS:.0f} s")
    return seconds, str(items[0]["insertText"])


def main(kind: str, file: str) -> None:
    """Print the time of the first offer, and of one more editor, which finds the model loaded."""
    if find_spec("torch") is not None:
        raise SystemExit("PyTorch is installed here")
    settings, running = {kind: file}, None
    if kind == "upstream":
        import xllamacpp  # type: ignore[import-not-found, unused-ignore]

        parameters = xllamacpp.CommonParams()
        parameters.model.path, parameters.hostnames, parameters.port = file, ["127.0.0.1"], 0
        parameters.n_gpu_layers, parameters.verbosity = 0, 0
        running = xllamacpp.Server(parameters)
        settings = {kind: running.listening_address}
    for which in ("the first editor", "the next one"):
        seconds, text = first_offer(settings)
        sys.stdout.write(f"{which}: {seconds:.1f} s to {text!r}\n")
    del running


if __name__ == "__main__":
    main(*sys.argv[1:])
