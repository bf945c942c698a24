"""A workspace full of secrets, through the real programs: none in a context, an answer, a log or a file of ours."""

from __future__ import annotations

import json
import os
import random
import string
from pathlib import Path
from typing import Any

import pytest
from tests.editors.shared import no_server_stays
from tests.lsp.editor import change_params, edit_params, inline_params, open_params, span
from tests.lsp.program import REAL, Program
from tests.server.conftest import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

RNG = random.Random(80)


def some(count: int) -> str:
    return "".join(RNG.choice(string.ascii_letters + string.digits) for _ in range(count))


# Put together here, so that this file itself holds none.
ENV = some(40)
TOKEN = "gh" + "p_" + some(36)
TYPED = "sk" + "-ant-" + some(40)
PASSWORD = "q7Zp" + some(24)
KEY_LINES = [some(64) for _ in range(8)]
PEM = "-----BEGIN RSA " + "PRIVATE KEY-----\n" + "\n".join(KEY_LINES) + "\n-----END RSA " + "PRIVATE KEY-----\n"
SECRETS = [ENV, TOKEN, TYPED, PASSWORD, *KEY_LINES]

SOURCE = f'''import client

PASSWORD = "{PASSWORD}"


def connect(token: str = "{TOKEN}") -> None:
    """Open the connection."""
    client.open(token, PASSWORD)


def fetch(name: str) -> bytes:
    connect()
    return client.
'''


def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "main.py").write_text(SOURCE)
    (folder / ".env").write_text(f"CLIENT_KEY={ENV}\n")
    (folder / "server.pem").write_text(PEM)
    (folder / "keys.py").write_text(f'def open_key() -> str:\n    return """{PEM}"""\n')
    (folder / "client.py").write_text(f'API_TOKEN = "{TOKEN}"\n\n\ndef open(token, password):\n    return API_TOKEN\n')
    return folder


class Editor:
    def __init__(self, program: Program, file: Path) -> None:
        self.program, self.uri, self.version = program, file.as_uri(), 1
        program.notify("textDocument/didOpen", open_params(file.read_text(), self.uri))

    def replace(self, line: int, start: int, end: int, text: str) -> None:
        self.version += 1
        change = {"range": span(line, start, end), "text": text}
        self.program.notify("textDocument/didChange", change_params(self.version, change, uri=self.uri))

    def command(self, name: str, *arguments: object) -> Any:
        return self.program.ask("workspace/executeCommand", {"command": name, "arguments": list(arguments)})

    def look(self, line: int, column: int) -> list[object]:
        where = edit_params(line, column, None, self.uri)
        return [
            self.program.ask("textDocument/inlineCompletion", inline_params(line, column, uri=self.uri)),
            self.program.ask("textDocument/copilotInlineEdit", where),
            self.command("calomel.showContext", where),
            self.command("calomel.status"),
        ]


def looked(program: Program, folder: Path) -> list[object]:
    """All that an editor is told of a workspace in which a secret is typed."""
    initialize = {
        "processId": os.getpid(),
        "rootUri": folder.as_uri(),
        "workspaceFolders": [{"uri": folder.as_uri(), "name": "w"}],
        "capabilities": {},
        "initializationOptions": {
            "log": {"level": "debug"},
            "suggest": {"aggressiveness": 0.0, "debounce_seconds": 0.0, "context_tokens": 2048},
            "backend": {"idle_minutes": 1.0},
        },
    }
    seen = [program.ask("initialize", initialize)]
    program.notify("initialized", {})
    editor = Editor(program, folder / "main.py")
    last = SOURCE.count("\n") - 1
    end = len(SOURCE.splitlines()[last])
    until(lambda: editor.command("calomel.status")["state"] == "ready", 60)
    seen += editor.look(last, end)
    # A secret is typed, and deleted again.
    editor.replace(9, 0, 0, "key = '")
    for index, character in enumerate(TYPED):
        editor.replace(9, 7 + index, 7 + index, character)
        if index % 9 == 8:
            seen += editor.look(9, 8 + index)
    editor.replace(9, 0, 7 + len(TYPED), "")
    editor.replace(2, 0, 0, "# ")
    seen += editor.look(2, 2)
    seen += editor.look(last, end)
    return seen + Editor(program, folder / ".env").look(0, 5)


def test_no_secret_of_a_workspace_comes_out_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    (own / "tmp").mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(own / "tmp"))
    with no_server_stays(own), Program(own, REAL) as program:
        seen = looked(program, workspace(tmp_path))
        program.ask("shutdown")
        program.notify("exit")
        program.end()
    said = json.dumps(seen)
    # Something was said at all: the context of the file, with the names that are no secrets.
    assert "def fetch" in said
    files = [file for file in own.rglob("*") if file.is_file() and not file.is_socket()]
    written = "".join(file.read_text(errors="replace") for file in files)
    assert written
    for secret in SECRETS:
        for length in (len(secret), 20):
            assert secret[:length] not in said
            assert secret[-length:] not in said
            assert secret[:length] not in written
            assert secret[-length:] not in written
