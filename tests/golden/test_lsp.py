"""A session of an editor, from `initialize` to `exit`, with everything that the language server answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.golden.conftest import RENAMED, Begin, Transcript
from tests.lsp.editor import at, change_params, edit_params, inline_params, open_params
from tests.lsp.program import REAL, Program

ADD = "def add(a, b):\n    return \n\n\nprint(add(1, 2))\n"


class Session:
    """An editor that writes down what it says and is told. What else the server says it says at any time."""

    def __init__(self, program: Program, transcript: Transcript) -> None:
        self._program, self._transcript = program, transcript
        self._versions: dict[str, int] = {}

    def ask(self, method: str, params: Any) -> Any:
        self._transcript.says(">", f"{method}")
        self._transcript.says(">", params)
        answer = self._program.ask(method, params)
        self._transcript.says("<", answer)
        return answer

    def open(self, name: str, text: str) -> None:
        self._versions[name] = 1
        self._tell("didOpen", open_params(text, f"file:///{name}"))

    def change(self, name: str, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        self._versions[name] += 1
        change = {"range": {"start": at(*start), "end": at(*end)}, "text": text}
        self._tell("didChange", change_params(self._versions[name], change, uri=f"file:///{name}"))

    def inline(self, name: str, line: int, character: int, trigger: int = 2) -> Any:
        return self.ask("textDocument/inlineCompletion", inline_params(line, character, trigger, f"file:///{name}"))

    def next_edit(self, name: str, line: int, character: int) -> Any:
        params = edit_params(line, character, self._versions[name], f"file:///{name}")
        return self.ask("textDocument/copilotInlineEdit", params)

    def command(self, command: dict[str, Any]) -> None:
        self.ask("workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"]})

    def status(self) -> None:
        """What became of suggestions, and why there were none."""
        status = self._program.ask("workspace/executeCommand", {"command": "calomel.status"})
        kept = {name: status[name] for name in ("silences", "outcomes", "requests", "asked", "cached")}
        withheld = {name: status["withheld"][name] for name in ("by_reason", "by_maker")}
        self._transcript.says("<", {**kept, "withheld": withheld})

    def _tell(self, method: str, params: Any) -> None:
        self._transcript.says(">", f"textDocument/{method}")
        self._transcript.says(">", params)
        self._program.notify(f"textDocument/{method}", params)


@contextmanager
def _session(folder: Path, server: httpx.Client, transcript: Transcript, **suggest: Any) -> Iterator[Session]:
    """A session with the model of `server`, ready."""
    with Program(folder, REAL) as program:
        url, token = str(server.base_url).rstrip("/"), server.headers["authorization"].removeprefix("Bearer ")
        program.initialize(backend={"url": url, "token": token}, suggest={"debounce_seconds": 0.0, **suggest})
        end = time.monotonic() + 30
        while program.ask("workspace/executeCommand", {"command": "calomel.status"}).get("model") is None:
            assert time.monotonic() < end
            time.sleep(0.05)
        yield Session(program, transcript)


def test_text_at_the_cursor_is_offered_as_it_was(tmp_path: Path, server: httpx.Client, transcript: Begin) -> None:
    found = transcript("lsp_inline")
    # However unlikely the scripted model thinks a text: hard filters alone decide.
    with _session(tmp_path, server, found, aggressiveness=0.0) as session:
        _inline(session, found)
    found.check()


def test_next_edits_are_offered_as_they_were(tmp_path: Path, server: httpx.Client, transcript: Begin) -> None:
    found = transcript("lsp_next_edit")
    with _session(tmp_path, server, found, aggressiveness=0.0) as session:
        _next_edits(session, found)
    found.check()


def _inline(session: Session, found: Transcript) -> None:
    found.heading("text at the cursor, accepted")
    session.open("a.py", ADD)
    session.change("a.py", (1, 4), (1, 11), "return ")
    (item,) = session.inline("a.py", 1, 11)["items"]
    session.command(item["command"])
    session.change("a.py", (1, 11), (1, 11), "a + b")
    session.status()

    found.heading("typed along: no second question")
    session.open("b.py", ADD)
    session.inline("b.py", 1, 11)
    session.change("b.py", (1, 11), (1, 11), "a")
    session.inline("b.py", 1, 12)
    session.change("b.py", (1, 12), (1, 12), " + ")
    (item,) = session.inline("b.py", 1, 15, trigger=1)["items"]

    found.heading("rejected")
    session.command({**item["command"], "command": "calomel.reject"})
    session.inline("b.py", 1, 15)
    session.status()

    found.heading("nothing to say")
    session.open("c.py", "zebra \n")
    session.inline("c.py", 0, 6)
    session.status()

    found.heading("an end that hangs")
    session.open("d.py", "import re\n\nnames = [\n")
    session.inline("d.py", 2, 9)
    session.status()

    found.heading("an excluded file")
    session.open(".env", "PASSWORD=\n")
    session.inline(".env", 0, 9)
    session.status()

    found.heading("the end")
    session.ask("shutdown", None)


def _next_edits(session: Session, found: Transcript) -> None:
    found.heading("a name changed: the edit that goes on with it, and then no more")
    session.open("cart.py", RENAMED.replace("total", "value"))
    session.change("cart.py", (0, 0), (0, 5), "total")
    (edit,) = session.next_edit("cart.py", 0, 5)["edits"]
    session.command(edit["command"])
    session.change("cart.py", (1, 6), (1, 11), "total")
    session.next_edit("cart.py", 1, 11)
    session.status()

    found.heading("a name changed and changed back: no longer gone on with")
    session.open("undo.py", RENAMED.replace("total", "value"))
    session.change("undo.py", (0, 0), (0, 5), "total")
    session.change("undo.py", (0, 0), (0, 5), "value")
    session.next_edit("undo.py", 0, 5)
    session.status()
