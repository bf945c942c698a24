from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from calomel.server.errors import StartError
from calomel.server.runtime_file import published


def test_the_file_tells_how_to_reach_the_server_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "run" / "server.json"
    with published(path, url="http://127.0.0.1:1", token="t", model=tmp_path):
        assert json.loads(path.read_text()) == {
            "url": "http://127.0.0.1:1",
            "token": "t",
            "pid": os.getpid(),
            "model": str(tmp_path.resolve()),
        }
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == []


def test_it_replaces_what_an_earlier_server_left_and_is_private_again(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    path.write_text("{}")
    path.chmod(0o644)
    with published(path, url="u", token=None, model=None):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert json.loads(path.read_text())["token"] is None


def test_a_link_in_its_place_is_replaced_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / "server.json"
    path.symlink_to(victim)
    with published(path, url="u", token="t", model=None):
        assert not path.is_symlink()
    assert victim.read_text() == "precious"


def test_the_file_of_a_later_server_stays(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    with published(path, url="u", token="t", model=None):
        path.write_text(json.dumps({"pid": -1}))
    assert path.exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StartError, match="cannot write the runtime file"),
        published(tmp_path / "file" / "x", url="u", token=None, model=None),
    ):
        pass
