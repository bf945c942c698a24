"""What `calomel doctor` says of another maker's checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.families.writers import writers

from calomel.cli.checks import Finding, check_model
from calomel.server.settings import ServerSettings


@pytest.fixture
def sdar(tmp_path: Path) -> Path:
    writers()["sdar"](tmp_path / "tiny")
    return tmp_path / "tiny"


def findings(folder: Path) -> dict[str, Finding]:
    return {found.subject: found for found in check_model(ServerSettings(model=folder, no_auth=True))}


def test_a_whole_checkpoint_is_well(sdar: Path) -> None:
    found = findings(sdar)

    assert (found["model"].level, found["memory"].level) == ("ok", "ok")
    assert "fill, edit; 2048 positions" in found["model"].found


def test_a_shard_that_is_cut_short_is_found_without_loading_it(sdar: Path) -> None:
    shard = sdar / "model-00001-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])

    assert "is cut short" in findings(sdar)["model"].found


def test_a_model_of_no_known_family_is_found(sdar: Path) -> None:
    (sdar / "config.json").write_text(json.dumps({"model_type": "mamba"}))

    assert "is of no family that Calomel loads" in findings(sdar)["model"].found


def test_tokenizer_files_that_are_missing_are_found(sdar: Path) -> None:
    (sdar / "vocab.json").unlink()

    assert "vocab.json" in findings(sdar)["model"].found
