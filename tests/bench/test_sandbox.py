from __future__ import annotations

import contextlib
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from calomel.bench.sandbox import JAIL, Limits, run_program

SHORT = Limits(wall_seconds=3.0, cpu_seconds=1, processes=8)
LONG = Limits(wall_seconds=30.0)


def running_names() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            yield path.read_text().strip()


@pytest.mark.parametrize("program", ["assert 1 + 1 == 2", "import math, re, typing, collections, hashlib"])
def test_a_program_that_reaches_its_end_passes(program: str) -> None:
    verdict = run_program(program, LONG)
    assert (verdict.passed, verdict.reason) == (True, None)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("assert False", "AssertionError"),
        ("this is no program", "SyntaxError"),
        ("import sys; sys.exit(0)", "SystemExit"),
        ("import os; os._exit(0)", "limit"),
        ("x = bytearray(4 << 30)", "MemoryError"),
        ("import numpy", "ModuleNotFoundError"),
    ],
)
def test_a_program_that_does_not_fails_with_its_reason(program: str, reason: str) -> None:
    verdict = run_program(program, LONG)
    assert (verdict.passed, verdict.reason) == (False, reason)


@pytest.mark.parametrize(
    ("program", "reason"),
    [("while True: pass", "limit"), ("import time; time.sleep(60)", "timeout")],
    ids=["busy", "asleep"],
)
def test_an_endless_program_is_ended(program: str, reason: str) -> None:
    assert run_program(program, SHORT).reason == reason


def test_a_fork_bomb_leaves_nothing_behind() -> None:
    name = f"bomb{secrets.token_hex(4)}"
    bomb = f"""
import ctypes, os
ctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0)
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
    assert not run_program(bomb, SHORT).passed
    assert not [found for found in running_names() if found == name]


def test_forking_ends_at_the_limit() -> None:
    counter = """
import os
made = 0
try:
    while made < 100:
        if os.fork() == 0:
            import time
            time.sleep(5)
            os._exit(0)
        made += 1
except OSError:
    raise SystemExit
raise RuntimeError("a hundred processes")
"""
    assert run_program(counter, SHORT).reason == "SystemExit"


def test_the_network_cannot_be_reached() -> None:
    program = """
import socket
listener = socket.socket()
listener.settimeout(2)
listener.connect(("1.1.1.1", 53))
"""
    assert run_program(program, LONG).reason in {"OSError", "PermissionError"}


def test_the_programs_own_machine_cannot_be_reached() -> None:
    program = """
import socket
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
socket.create_connection(listener.getsockname())
"""
    assert not run_program(program, LONG).passed


def test_a_big_file_is_refused() -> None:
    assert run_program("open('big', 'wb').write(bytes(8 << 20))", LONG).reason == "OSError"


def test_files_outside_of_its_folder_are_out_of_reach(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    target = tmp_path / "written"
    verdict = run_program(f"open({str(target)!r}, 'w').write('x')", LONG)
    if verdict.confinement != "namespaces":
        pytest.skip("this system does not permit mount namespaces")
    assert (verdict.passed, target.exists()) == (False, False)


def test_many_files_together_are_bounded() -> None:
    verdict = run_program("for i in range(100): open(f'f{i}', 'wb').write(bytes(1 << 20))", LONG)
    if verdict.confinement != "namespaces":
        pytest.skip("this system does not permit mount namespaces")
    assert verdict.reason == "OSError"


def test_the_folder_is_empty_and_writable_and_the_environment_bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_SECRET", "x")
    program = """
import os
assert os.listdir(".") == []
open("note", "w").write("x")
assert open("note").read() == "x"
assert "CALOMEL_SECRET" not in os.environ and "HOME" not in os.environ
"""
    assert run_program(program, LONG).passed


def test_what_a_program_writes_to_every_descriptor_forges_no_verdict() -> None:
    program = """
import os
for descriptor in range(64):
    try:
        os.write(descriptor, b'{"token": "guess", "confinement": "namespaces", "error": null}')
    except OSError:
        pass
os._exit(0)
"""
    assert not run_program(program, LONG).passed


@pytest.mark.parametrize("use", ["socket.socket()", "socket.create_connection(('1.1.1.1', 53))"])
def test_without_namespaces_sockets_are_blocked(use: str) -> None:
    script = f"""
import runpy
runpy.run_path({str(JAIL)!r}, run_name="jail")["_block_sockets"]()
import socket
try:
    {use}
except PermissionError:
    print("blocked")
"""
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "blocked\n"
