"""The program as an editor starts it: over pipes, with exit codes, and nothing else on standard output."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.lsp.editor import ADD, inline_params, open_params
from tests.lsp.program import REAL, Program

pytestmark = pytest.mark.e2e

PLACE = inline_params(1, 4)


def test_a_session_from_initialize_to_exit(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        program.initialize()
        program.notify("textDocument/didOpen", open_params(ADD))
        (item,) = program.ask("textDocument/inlineCompletion", PLACE)["items"]
        assert item["insertText"] == "return a + b"
        assert program.ask("shutdown") is None
        program.notify("exit")
        assert program.end() == 0
        assert program.process.stdout is not None
        assert program.process.stdout.read() == b""
        assert program.process.stderr is not None
        assert b"noise on stdout" in program.process.stderr.read()


@pytest.mark.parametrize("command", [REAL, [*REAL, "--stdio"]])
def test_the_command_line_speaks_over_standard_input(tmp_path: Path, command: list[str]) -> None:
    with Program(tmp_path, command) as program:
        program.raw(b"content-length: 2\r\n\r\n{]")
        assert program.read()["error"]["code"] == -32700
        program.initialize()
        program.notify("exit")
        assert program.end() == 1


@pytest.mark.parametrize("begun", [True, False])
def test_the_end_of_standard_input_ends_it(tmp_path: Path, begun: bool) -> None:  # noqa: FBT001
    with Program(tmp_path) as program:
        if begun:
            program.initialize()
        assert program.process.stdin is not None
        program.process.stdin.close()
        assert program.end() == 1


def test_it_ends_at_once_while_a_suggestion_is_computed(tmp_path: Path) -> None:
    with Program(tmp_path, script={"fill": "x", "seconds": 60}) as program:
        program.initialize()
        program.notify("textDocument/didOpen", open_params(ADD))
        program.send({"jsonrpc": "2.0", "id": "x", "method": "textDocument/inlineCompletion", "params": PLACE})
        program.ask("getVersion")
        program.ask("shutdown")
        program.notify("exit")
        assert program.end() == 0


def test_it_does_not_outlive_the_editor(tmp_path: Path) -> None:
    with Program(tmp_path) as program, subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as editor:
        params: dict[str, Any] = {"processId": editor.pid, "rootUri": None, "capabilities": {}}
        program.ask("initialize", params)
        program.ask("getVersion")
        editor.kill()
        assert program.end() == 1


def test_it_does_not_begin_for_an_editor_that_is_gone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    with Program(tmp_path) as program:
        program.ask("initialize", {"processId": gone.pid, "rootUri": None, "capabilities": {}})
        assert program.end() == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("begun", [True, False])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: signal.Signals, *, begun: bool) -> None:
    with Program(tmp_path, None if begun else REAL) as program:
        if begun:
            program.initialize()
            program.ask("getVersion")
        else:
            program.send({"jsonrpc": "2.0", "id": 1, "method": "getVersion"})
            assert "initialize" in program.read()["error"]["message"]
        program.process.send_signal(number)
        assert program.end() == 1


def test_a_client_that_stops_reading_ends_it(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        program.initialize()
        program.ask("getVersion")
        assert program.process.stdout is not None
        program.process.stdout.close()
        program.send({"jsonrpc": "2.0", "id": "x", "method": "getVersion"})
        program.send({"jsonrpc": "2.0", "id": "y", "method": "getVersion"})
        assert program.end() == 1


def test_ten_thousand_answers_that_nobody_reads_keep_it_neither_alive_nor_large(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        program.initialize()
        for number in range(10_000):
            program.send({"jsonrpc": "2.0", "id": number, "method": "no/such"})
        assert psutil.Process(program.process.pid).memory_info().rss < 512 * 1024 * 1024
        assert program.process.stdin is not None
        program.process.stdin.close()
        assert program.end() == 1


def test_nothing_heavy_is_imported_before_initialize_is_answered() -> None:
    script = """
import json, sys
from calomel.cli.main import main
import calomel.lsp.server as server
body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
chunks = [b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body]
def write(data):
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
    sys.stdout.flush()
    server.leave(0)
server.Server().run(server.Transport(lambda size: chunks.pop(), write))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = "torch numpy tokenizers tree_sitter msgspec pygls lsprotocol cattrs attrs httpx asyncio typer pydantic"
    assert not [name for name in (*heavy.split(), "watchdog") if f'"{name}"' in done.stdout]
