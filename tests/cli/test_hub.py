"""`calomel models fetch OWNER/NAME:QUANT`: one GGUF file, from a hub on this machine."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.conftest import Runner
from tests.cli.hub import COMMIT, Hub, hub_with

from calomel.weights.folders import models_folder

# With a header that counts nothing.
DATA = b"GGUF\3\0\0\0" + bytes(16) + bytes(range(256)) * 96_000


@pytest.fixture
def hub(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "CALOMEL_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    files = {"small-Q8_0.gguf": DATA, "small-Q4_0.gguf": b"GGUF", "sub/../../x-Q2_K.gguf": b"GGUF"}
    with hub_with(files) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield server


@pytest.mark.parametrize("words", [("me/small:q8_0",), ("me/small", "--gguf", "small-Q8_0.gguf")])
def test_one_file_is_fetched_and_chosen(run: Runner, home: Path, hub: Hub, words: tuple[str, ...]) -> None:
    done = run("models", "fetch", *words)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("small-Q8_0.gguf: 0.02 GB, licence mit\n")
    folder = models_folder() / "me--small"
    assert {each.name for each in folder.iterdir()} == {"small-Q8_0.gguf", "calomel-source.json"}
    assert [each.name for each in models_folder().iterdir()] == ["me--small"]
    assert (folder / "small-Q8_0.gguf").read_bytes() == DATA
    assert json.loads((folder / "calomel-source.json").read_text())["revision"] == COMMIT
    assert hub.tokens == {None}
    pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
    assert run("models", "use", "me/small").status == 0
    assert '[backend]\nmodel = "me/small"\n' in (home / ".config/calomel/calomel.toml").read_text()
    assert "llama.cpp" in next(line for line in run("models", "list").out.splitlines() if line.startswith("*"))


def test_a_download_that_breaks_off_continues_at_once_or_with_the_next_command(run: Runner, hub: Hub) -> None:
    hub.breaks = 1
    assert run("models", "fetch", "me/small:Q8_0").status == 0
    half = f"bytes={len(DATA) // 2 // 2**20 * 2**20}-"
    assert (hub.ranges, (models_folder() / "me--small" / "small-Q8_0.gguf").read_bytes()) == ([None, half], DATA)
    hub.breaks = 1
    hub.gone = True
    done = run("models", "fetch", "me/small:Q8_0", "--name", "again")
    assert (done.status, "fetch it again: it continues" in done.err) == (1, True)
    hub.gone = False
    assert run("models", "fetch", "me/small:Q8_0", "--name", "again").status == 0
    assert hub.ranges[-1] == half
    assert (models_folder() / "again" / "small-Q8_0.gguf").read_bytes() == DATA


def test_another_file_than_announced_is_not_kept(run: Runner, hub: Hub) -> None:
    hub.files["small-Q8_0.gguf"] = DATA[:-1] + b"x"
    done = run("models", "fetch", "me/small:Q8_0")
    assert (done.status, "is not what the hub announced" in done.err) == (1, True)
    assert not [each for each in models_folder().iterdir() if each.suffix != ".lock"]


def test_a_file_that_does_not_fit_is_not_begun(run: Runner, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=len(DATA) - 1))
    done = run("models", "fetch", "me/small:Q8_0")
    assert (done.status, "GB are free in" in done.err, hub.ranges) == (1, True, [])


@pytest.mark.parametrize(
    ("wanted", "told"), [("Q5_K", "has no files Q5_K"), ("Q2_K", "lead outside"), ("0", "has 2 files 0")]
)
def test_a_file_that_is_not_there_is_told(run: Runner, hub: Hub, wanted: str, told: str) -> None:
    done = run("models", "fetch", f"me/small:{wanted}")
    assert (done.status, told in done.err, hub.ranges) == (1, True, [])


def test_a_fetched_file_is_chosen_at_once_with_its_device(run: Runner, home: Path, hub: Hub) -> None:
    pytest.importorskip("xllamacpp", reason="pip install xllamacpp")
    assert run("models", "fetch", "me/small:q8_0", "--device", "mps").status == 2
    done = run("models", "fetch", "me/small:q8_0", "--use", "--device", "mps")
    assert (done.status, done.err) == (0, "")
    assert (home / ".config/calomel/calomel.toml").read_text() == '[backend]\nmodel = "me--small"\ndevice = "mps"\n'
    assert "me--small is the model for all editors" in done.out


def test_a_file_that_is_only_called_by_its_quantisation_gets_the_models_name(run: Runner, hub: Hub) -> None:
    # How a model is asked goes by its name.
    hub.files["q4_k_m.gguf"] = DATA
    hub.told["q4_k_m.gguf"] = hashlib.sha256(DATA).hexdigest()
    assert run("models", "fetch", "me/small:Q4_K_M").status == 0
    assert [each.name for each in (models_folder() / "me--small").glob("*.gguf")] == ["small-q4_k_m.gguf"]
