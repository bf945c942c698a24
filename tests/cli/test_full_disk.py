from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.selectivity.made import drawn

Runner = Callable[..., Run]
FullDisk = Callable[[], AbstractContextManager[None]]
KEPT = json.dumps({"kept": "x" * 100})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("config", "state", "data", "cache"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    return tmp_path


@pytest.fixture
def words(home: Path) -> dict[str, list[object]]:
    """Command lines that write what somebody keeps; `kept` stands for the file."""
    model = home / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"max_position_embeddings": 2048, "kinds": ["fill", "edit"]}))
    samples = home / "samples.jsonl"
    samples.write_text("".join(each.to_line() for each in drawn(150)), encoding="utf-8")
    log = home / "outcomes.jsonl"
    log.touch()
    return {
        "calibrate": ["calibrate", "--samples", samples, "--model", model, "--out"],
        "stats": ["stats", "--log", log, "--json"],
    }


@pytest.mark.parametrize("which", ["calibrate", "stats"])
def test_what_was_there_outlives_a_disk_that_is_full(
    run: Runner, full_disk: FullDisk, words: dict[str, list[object]], tmp_path: Path, which: str
) -> None:
    kept = tmp_path / "kept"
    kept.write_text(KEPT)
    before = set(tmp_path.iterdir())
    with full_disk():
        done = run(*words[which], kept)

    assert (done.status, done.err) == (1, f"calomel: {kept}: File too large\n")
    assert kept.read_text() == KEPT
    assert set(tmp_path.iterdir()) == before


def test_settings_of_an_editor_outlive_it_too(run: Runner, full_disk: FullDisk, home: Path) -> None:
    settings = home / "config" / "zed" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(KEPT)
    with full_disk():
        done = run("editor", "setup", "zed", "--yes")

    assert done.status == 1
    assert done.err == f"calomel: {settings}.calomel-1.bak: File too large\n"
    assert settings.read_text() == KEPT
    assert list(settings.parent.iterdir()) == [settings]


def test_a_link_stays_one_and_rights_stay_what_they_were(
    run: Runner, words: dict[str, list[object]], home: Path
) -> None:
    kept, link = home / "kept", home / "link"
    kept.write_text(KEPT)
    kept.chmod(0o640)
    link.symlink_to(kept)

    assert run(*words["stats"], link).status == 0
    assert link.readlink() == kept
    assert json.loads(kept.read_text())["bad_lines"] == 0
    assert kept.stat().st_mode & 0o777 == 0o640


def test_standard_output_can_be_named_as_a_file(run: Runner, words: dict[str, list[object]]) -> None:
    assert run(*words["stats"], "/dev/null").status == 0
    assert Path("/dev/null").is_char_device()
