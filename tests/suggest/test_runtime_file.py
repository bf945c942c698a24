from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from calomel.suggest.process import started
from calomel.suggest.runtime_file import RuntimeFileError, ServerRecord, published, read

PID = os.getpid()
RECORD = ServerRecord("http://127.0.0.1:1", "s3cret", PID, started(PID), None, "abc", "cpu", "0.1.0", 1)


def test_the_file_tells_how_to_reach_the_server_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "run" / "server.json"
    with published(path, RECORD):
        assert read(path) == RECORD
        assert RECORD.alive()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == []


def test_it_replaces_what_an_earlier_server_left_and_is_private_again(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    path.write_text("{}")
    path.chmod(0o644)
    with published(path, RECORD):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert read(path) == RECORD


def test_a_link_in_its_place_is_replaced_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / "server.json"
    path.symlink_to(victim)
    with published(path, RECORD):
        assert not path.is_symlink()
    assert victim.read_text() == "precious"


def test_the_file_of_a_later_server_stays(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    later = replace(RECORD, url="http://127.0.0.1:2")
    with published(path, RECORD):
        path.write_text(json.dumps(vars_of(later)))
    assert read(path) == later


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(RuntimeFileError, match="cannot write the runtime file"),
        published(tmp_path / "file" / "x", RECORD),
    ):
        pass


def test_no_file_is_no_server(tmp_path: Path) -> None:
    assert read(tmp_path / "server.json") is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"url": 3}', "x" * 100_000])
def test_a_damaged_file_is_said_to_be_and_its_content_is_not_repeated(tmp_path: Path, content: str) -> None:
    path = tmp_path / "server.json"
    path.touch(mode=0o600)
    path.write_text(content)
    with pytest.raises(RuntimeFileError, match="damaged") as caught:
        read(path)
    assert "xxxx" not in str(caught.value)


def test_a_file_that_others_may_read_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    with published(path, RECORD):
        path.chmod(0o644)
        with pytest.raises(RuntimeFileError, match="open to other users"):
            read(path)


def test_a_link_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "real").touch(mode=0o600)
    (tmp_path / "server.json").symlink_to(tmp_path / "real")
    with pytest.raises(RuntimeFileError, match="cannot be read"):
        read(tmp_path / "server.json")


def test_a_process_id_that_was_given_out_again_is_another_process() -> None:
    assert not replace(RECORD, started=RECORD.started + 1).alive()
    assert not replace(RECORD, pid=2**22 + 1).alive()


def test_a_token_does_not_show_in_its_words() -> None:
    assert "s3cret" not in repr(RECORD)


def vars_of(record: ServerRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in ServerRecord.__slots__}
