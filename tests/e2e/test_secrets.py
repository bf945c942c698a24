"""A workspace full of secrets, through the real programs: none in a context, an answer, a log or a file of ours."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import string
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calomel.bench.keystrokes import LspSession

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


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    found = dict(os.environ)
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR"):
        folder = tmp_path / "own" / name.lower()
        folder.mkdir(mode=0o700, parents=True)
        found[name] = str(folder)
    yield found
    for file in (tmp_path / "own").rglob("*.json"):
        try:
            os.kill(int(json.loads(file.read_text())["pid"]), signal.SIGTERM)
        except (OSError, ValueError, KeyError, TypeError):
            continue


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
    def __init__(self, session: LspSession, file: Path) -> None:
        self.session, self.uri, self.version = session, file.as_uri(), 1
        self.lines = file.read_text().split("\n")
        document = {"uri": self.uri, "languageId": "python", "version": 1, "text": file.read_text()}
        session.notify("textDocument/didOpen", {"textDocument": document})

    def replace(self, line: int, start: int, end: int, text: str) -> None:
        self.version += 1
        self.lines[line] = self.lines[line][:start] + text + self.lines[line][end:]
        where = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
        self.session.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": self.uri, "version": self.version},
                "contentChanges": [{"range": where, "text": text}],
            },
        )

    async def command(self, name: str, *arguments: object) -> Any:
        return await self.session.request("workspace/executeCommand", {"command": name, "arguments": list(arguments)})

    async def look(self, line: int, column: int) -> list[object]:
        where = {"textDocument": {"uri": self.uri}, "position": {"line": line, "character": column}}
        answer = await self.session.request("textDocument/inlineCompletion", {**where, "context": {"triggerKind": 1}})
        edit = await self.session.request("textDocument/copilotInlineEdit", where)
        return [answer, edit, await self.command("calomel.showContext", where), await self.command("calomel.status")]


async def scenario(folder: Path, environment: dict[str, str]) -> list[object]:
    session = await LspSession.start([sys.executable, "-m", "calomel.cli", "lsp"], environment)
    try:
        seen: list[object] = [
            await session.request(
                "initialize",
                {
                    "processId": os.getpid(),
                    "rootUri": folder.as_uri(),
                    "workspaceFolders": [{"uri": folder.as_uri(), "name": "w"}],
                    "capabilities": {},
                    "initializationOptions": {
                        "log": {"level": "debug"},
                        "suggest": {"aggressiveness": 0.0, "debounce_seconds": 0.0, "context_tokens": 2048},
                        "server": {"idle_minutes": 1.0},
                    },
                },
            )
        ]
        session.notify("initialized", {})
        editor = Editor(session, folder / "main.py")
        last = len(editor.lines) - 2
        for _ in range(200):
            status = await editor.command("calomel.status")
            if status["state"] == "ready":
                break
            await asyncio.sleep(0.2)
        assert status["state"] == "ready", status
        seen += await editor.look(last, len(editor.lines[last]))
        # A secret is typed, and deleted again.
        editor.replace(9, 0, 0, "key = '")
        for index, character in enumerate(TYPED):
            editor.replace(9, 7 + index, 7 + index, character)
            if index % 9 == 8:
                seen += await editor.look(9, 8 + index)
        editor.replace(9, 0, len(editor.lines[9]), "")
        editor.replace(2, 0, 0, "# ")
        seen += await editor.look(2, 2)
        seen += await editor.look(last, len(editor.lines[last]))
        editor_env = Editor(session, folder / ".env")
        seen += await editor_env.look(0, 5)
        return seen
    finally:
        await session.end()


def test_no_secret_of_a_workspace_comes_out_anywhere(tmp_path: Path, environment: dict[str, str]) -> None:
    seen = asyncio.run(scenario(workspace(tmp_path), environment))
    said = json.dumps(seen)
    # Something was said at all: the context of the file, with the names that are no secrets.
    assert "def fetch" in said
    written = "".join(
        file.read_text(errors="replace")
        for file in (tmp_path / "own").rglob("*")
        if file.is_file() and not file.is_socket()
    )
    assert written
    for secret in SECRETS:
        for length in (len(secret), 20):
            assert secret[:length] not in said
            assert secret[-length:] not in said
            assert secret[:length] not in written
            assert secret[-length:] not in written
