"""What systems do in different ways, and what is done where a system lacks something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from calomel.infer.runtime_file import ServerRecord, published, read
from calomel.server import tokens
from calomel.storage import system, write_whole

RECORD = ServerRecord("http://127.0.0.1:1", "secret", os.getpid(), 0, None, "w", "cpu", "1", 1)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without what POSIX alone has, as Windows is."""
    for name in (
        "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "fchmod", "getuid", "sched_getaffinity", "getloadavg", "nice",
        "pidfd_open",
    ):  # fmt: skip
        monkeypatch.delattr(os, name, raising=False)


def test_a_private_file_is_the_users_alone_and_no_link_is_followed_to_it(tmp_path: Path) -> None:
    os.close(system.open_private(tmp_path / "mine", os.O_WRONLY | os.O_CREAT))
    (tmp_path / "link").symlink_to(tmp_path / "mine")

    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o600
    with pytest.raises(OSError, match="link"):
        system.open_private(tmp_path / "link", os.O_RDONLY)
    os.close(system.open_private(tmp_path / "link", os.O_RDONLY, links=True))


@pytest.mark.usefixtures("bare")
def test_files_and_figures_are_there_on_a_system_without_modes_and_owners(tmp_path: Path) -> None:
    write_whole(tmp_path / "kept", "text", mode=0o600)
    with published(tmp_path / "server.json", RECORD):
        assert read(tmp_path / "server.json") == RECORD
    found, made = tokens.read_or_make(tmp_path / "token")

    assert (tmp_path / "kept").read_text() == "text"
    assert not (tmp_path / "server.json").exists()
    assert made
    assert len(found.by_name) == 1
    assert system.processors() >= 1
    assert system.load_average() is None
    system.behind_others(5)


HOLDS = """
import sys
from pathlib import Path
from calomel.storage.system import only_one
with only_one(Path(sys.argv[1])) as ours:
    print(ours, flush=True)
    sys.stdin.read()
"""


def test_a_lock_has_one_holder_and_goes_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with system.only_one(path) as ours:
            assert not ours
        holder.kill()
    with system.only_one(path, seconds=5.0) as ours:
        assert ours


def test_a_process_that_is_looked_for_is_not_ended_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    here = os.getpid()

    def kills(*_: object) -> None:
        raise AssertionError("os.kill ends a process there")

    monkeypatch.setattr(os, "kill", kills)
    assert system.process_of(here, system.start_of(here)) is not None
    assert system.process_of(gone.pid) is None
    assert system.process_of(here, system.start_of(here) + 60) is None
