from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import Runner

from calomel.weights.folders import models_folder, named

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = json.dumps({"max_position_embeddings": 4096, "kinds": ["fill"]})


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("OLLAMA_MODELS", raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    for name in ("HF_HUB_OFFLINE", "CALOMEL_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A hub that holds one repository; what was asked of it."""
    said = SimpleNamespace(
        files={
            "config.json": CONFIG,
            "model.safetensors": "weights",
            "tokenizer.json": "{}",
            "modeling_evil.py": "import os",
            "pytorch_model.bin": "pickle",
            "extra/model.safetensors": "x",
        },
        asked=[],
    )

    class Api:
        def model_info(self, repository: str, *, revision: str | None) -> SimpleNamespace:
            said.asked.append(("info", repository, revision))
            return SimpleNamespace(sha=COMMIT, siblings=[SimpleNamespace(rfilename=name) for name in said.files])

    def download(repository: str, *, revision: str, local_dir: Path, allow_patterns: Sequence[str]) -> None:
        said.asked.append(("download", repository, revision))
        # Whatever is asked for, more comes: the files that are kept are chosen here as well.
        for name, text in said.files.items():
            path = Path(local_dir) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        (Path(local_dir) / ".cache").mkdir()
        (Path(local_dir) / "LICENSE").symlink_to("/etc/passwd")

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return said


def test_the_shipped_model_is_listed_described_and_found(run: Runner) -> None:
    listed, told, place = run("models", "list"), run("models", "info", "nano"), run("models", "path", "nano")
    assert listed.out.split()[:2] == ["*", "nano"]
    assert "shipped" in listed.out
    assert str(models_folder()) in listed.out
    assert "positions  32768" in told.out
    assert place.out.strip().endswith("nano")


def held(folder: Path) -> Path:
    """A folder that holds a model."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def test_a_name_is_one_of_the_models_folder_and_else_a_folder_here(run: Runner) -> None:
    both, mine, ours = (held(folder) for folder in (Path("both"), Path("mine"), models_folder() / "both"))
    for name, folder in (("both", ours), ("mine", mine), ("./both", both)):
        assert run("models", "path", name).out == f"{folder}\n"
    assert run("models", "path").out == f"{models_folder()}\n"


def test_a_link_out_of_the_models_folder_is_not_followed(run: Runner, tmp_path: Path) -> None:
    models_folder().mkdir(parents=True)
    (models_folder() / "sly").symlink_to(held(tmp_path / "outside"))
    done = run("models", "path", "sly")
    assert (done.status, "leaves the models folder" in done.err) == (2, True)


def test_a_repository_is_what_was_fetched_under_its_name(run: Runner, tmp_path: Path) -> None:
    snapshot = held(tmp_path / "hub" / "models--me--small" / "snapshots" / ("a" * 40))
    assert run("models", "path", "me/small").out == f"{snapshot}\n"
    fetched = held(models_folder() / "me--small")
    assert run("models", "path", "me/small").out == f"{fetched}\n"


def test_all_models_are_listed(run: Runner, tmp_path: Path) -> None:
    held(models_folder() / "mine")
    (models_folder() / "no-model").mkdir()
    held(tmp_path / "hub" / "models--me--small" / "snapshots" / ("a" * 40))
    listed = run("models", "list").out.splitlines()
    assert [line[1:].split()[0] for line in listed[:3]] == ["nano", "mine", "me/small"]
    assert "no-model" not in str(listed)


@given(st.text(st.sampled_from("./\\~abC:-_ \0é\n%"), max_size=20))
def test_no_name_leads_out_of_the_models_folder(name: str) -> None:
    found = named(name)
    assert found is None or found.parent == models_folder()


def test_a_fetched_model_is_data_of_one_commit(run: Runner, hub: SimpleNamespace) -> None:
    done = run("models", "fetch", "me/small@main")
    folder = models_folder() / "me--small"

    assert done.status == 0
    assert COMMIT in done.out
    assert "calomel serve --model me--small" in done.out
    assert hub.asked == [("info", "me/small", "main"), ("download", "me/small", COMMIT)]
    assert {each.name for each in folder.iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "calomel-source.json",
    }
    assert f"from       me/small@{COMMIT}" in run("models", "info", "me/small").out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model.safetensors": None}, "no .safetensors weights"),
        ({"config.json": None}, "no config.json"),
        ({"../outside.safetensors": "x"}, "lead outside it"),
    ],
)
def test_a_repository_that_holds_no_model_leaves_nothing(
    run: Runner, hub: SimpleNamespace, change: dict[str, str | None], message: str
) -> None:
    for name, text in change.items():
        if text is None:
            del hub.files[name]
        else:
            hub.files[name] = text
    done = run("models", "fetch", "me/small")
    assert done.status == 1
    assert message in done.err
    assert not models_folder().exists() or not list(models_folder().iterdir())


@pytest.mark.parametrize("name", ["small", "a/b/c", "../x", "me/..", "/me/small", "me/sm all", "m--e/small"])
def test_a_repository_has_an_owner_and_a_name(run: Runner, hub: SimpleNamespace, name: str) -> None:
    assert run("models", "fetch", name).status == 2
    assert hub.asked == []


def test_nothing_is_fetched_offline_or_over_what_is_there(
    run: Runner, hub: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("models", "fetch", "me/small").status == 0
    assert "exists already" in run("models", "fetch", "me/small").err
    assert "nano is the shipped model's name" in run("models", "fetch", "me/other", "--name", "nano").err
    assert "name may contain only" in run("models", "fetch", "me/small", "--name", "../x").err
    for variable in ("CALOMEL_OFFLINE", "HF_HUB_OFFLINE"):
        with monkeypatch.context() as patch:
            patch.setenv(variable, "1")
            refused = run("models", "fetch", "me/other").err
        assert refused == f"error: {variable} forbids downloads\ntry: unset {variable}\n"
    assert len(hub.asked) == 2


def test_only_what_was_fetched_is_removed(run: Runner, hub: SimpleNamespace, tmp_path: Path) -> None:
    assert run("models", "fetch", "me/small").status == 0
    folder, own, other = models_folder() / "me--small", held(models_folder() / "own"), tmp_path / "elsewhere"
    size = sum(each.stat().st_size for each in folder.iterdir())
    folder.rename(other)
    (models_folder() / "out").symlink_to(other)
    (models_folder() / "in").symlink_to(own)
    for name in ("nano", "own", "out", "in", "me/small", "../elsewhere", str(other), "own/../own", ".", ""):
        assert run("models", "remove", name, "--yes").status == 2, name
    assert other.is_dir()
    assert own.is_dir()

    other.rename(folder)
    (folder / "link").symlink_to(tmp_path / "here")
    asked = run("models", "remove", "me/small")
    assert (asked.status, "add --yes" in asked.err, folder.is_dir()) == (2, True, True)
    (folder / "link").unlink()
    done = run("models", "remove", "me/small", "--yes")
    assert (done.status, done.out) == (0, f"Deleted {folder}: {size:,} bytes are free again.\n")
    assert sorted(each.name for each in models_folder().iterdir()) == ["in", "out", "own"]
    assert (tmp_path / "here").is_dir()


def test_a_model_that_editors_ask_is_not_removed(run: Runner, hub: SimpleNamespace, tmp_path: Path) -> None:
    assert run("models", "fetch", "me/small").status == 0
    settings, theirs = tmp_path / "config/calomel/calomel.toml", tmp_path / "config/Code/User/settings.json"
    settings.parent.mkdir(parents=True)
    theirs.parent.mkdir(parents=True)
    for name in ("me--small", "me/small", str(models_folder() / "me--small")):
        settings.write_text(f'[backend]\nmodel = "{name}"\n')
        refused = run("models", "remove", "me/small", "--yes")
        assert (refused.status, "is the model for all editors" in refused.err) == (2, True)
    settings.unlink()
    theirs.write_text('{"calomel.backend.model": "me--small"}')
    assert "me/small is the model of VS Code" in run("models", "remove", "me/small", "--yes").err
    assert (models_folder() / "me--small").is_dir()


class _OfNoKnownLibrary(Exception):  # noqa: N818 (as libraries name them)
    pass


@pytest.mark.parametrize("error", [ConnectionError, _OfNoKnownLibrary, ValueError, UnicodeError, RuntimeError])
def test_a_hub_that_cannot_be_reached_is_told(
    run: Runner, hub: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fails)
    done = run("models", "fetch", "me/small")
    assert done.status == 1
    assert "cannot reach" in done.err


def test_what_is_known_of_another_makers_model_is_told(run: Runner, sdar: Path) -> None:
    told = run("models", "info", str(sdar)).out

    assert "family     sdar" in told
    assert "answers    fill, edit" in told
    assert "published  JetLM/SDAR-8B-Chat, MIT" in told
    assert "compared   tests/families/test_block_causal.py" in told


def test_the_memory_that_a_model_takes_is_told_without_loading_it(run: Runner, sdar: Path) -> None:
    wide = run("models", "estimate", str(sdar), "--dtype", "float32", "--cache-tokens", "65536").out
    narrow = run("models", "estimate", str(sdar), "--dtype", "bfloat16", "--cache-tokens", "65536").out

    def figures(text: str) -> list[float]:
        return [float(line.split("MiB")[0].split()[-1]) for line in text.splitlines()]

    weights, contexts, step, program, together, _ = figures(wide)
    assert together == pytest.approx(weights + contexts + step + program, abs=0.2)
    assert figures(narrow)[1] == pytest.approx(contexts / 2, abs=0.1)
    assert "on cpu: fits" in wide
    small = run("models", "estimate", str(sdar), "--device", "cuda", "--memory-gib", "0.0001")
    assert (small.status, "and 0.1 MiB is allowed; nothing was loaded" in small.err) == (1, True)


def test_families_are_told_as_tables(run: Runner) -> None:
    assert "| SDAR | block-causal" in run("models", "families").out
    assert "| JetLM/SDAR-8B-Chat | SDAR | MIT | 16.0 GB | 8.0 GB |" in run("models", "families", "--guide").out


@pytest.mark.parametrize("command", [("estimate", "nano"), ("estimate", "nano", "--memory-gib", "4")])
@pytest.mark.parametrize("device", ["bogus", "mps"])
def test_a_device_that_is_not_there_is_said_in_a_sentence(run: Runner, command: tuple[str, ...], device: str) -> None:
    done = run("models", *command, "--device", device)
    assert (done.status, done.out) == (2, "")
    assert f"{device} is not a device of this machine" in done.err
