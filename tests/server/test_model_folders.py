from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.server.model_folders import ModelNameError, folder_of, known, models_folder, named


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    folder = models_folder()
    folder.mkdir(parents=True)
    return folder


def model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def test_a_name_is_one_of_the_models_folder_and_else_a_folder_here(models: Path) -> None:
    Path("mine").mkdir()
    Path("both").mkdir()
    ours = model(models / "both")

    assert folder_of(None) is None
    assert folder_of("nano") is None
    assert folder_of("both") == ours
    assert folder_of("mine") == Path("mine")
    assert folder_of("./both") == Path("both")
    with pytest.raises(ModelNameError, match="there is no model other"):
        folder_of("other")


def test_a_link_out_of_the_models_folder_is_not_followed(models: Path, tmp_path: Path) -> None:
    model(tmp_path / "outside")
    (models / "sly").symlink_to(tmp_path / "outside")
    with pytest.raises(ModelNameError, match="link out"):
        folder_of("sly")


def test_a_repository_is_what_was_fetched_under_its_name(models: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelNameError, match="calomel models fetch me/small"):
        folder_of("me/small")
    snapshot = model(tmp_path / "hub" / "models--me--small" / "snapshots" / ("a" * 40))
    assert folder_of("me/small") == snapshot
    fetched = model(models / "me--small")
    assert folder_of("me/small") == fetched


def test_all_models_are_listed(models: Path, tmp_path: Path) -> None:
    model(models / "mine")
    (models / "no-model").mkdir()
    model(tmp_path / "hub" / "models--me--small" / "snapshots" / ("a" * 40))
    assert [(each.name, each.source) for each in known()] == [
        ("nano", "shipped"),
        ("mine", "models folder"),
        ("me/small", "hub cache"),
    ]


@given(st.text(st.sampled_from("./\\~abC:-_ \0é\n%"), max_size=20))
def test_no_name_leads_out_of_the_models_folder(name: str) -> None:
    found = named(name)
    assert found is None or found.parent == models_folder()
