"""Which model a command asks: that of its options, else the user's choice for all editors, else nano."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Runner, configured
from tests.server import _upstreams as played
from tests.server._upstreams import Play, served

from calomel.weights import nano_path

MODELS = ("qwen2.5-coder:1.5b-base", "mine:7b-base")
RECORDING = Path(__file__).parents[2] / "server/calomel/cli/recordings/inventory.recording.json"


@pytest.fixture(autouse=True)
def source(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(home)
    file = home / "add.py"
    file.write_text("def add(a, b):\n    return \n", encoding="utf-8")
    return file


@pytest.fixture
def play() -> Play:
    return Play(tokens=("a + ", "b"), models=MODELS, capabilities=("completion", "insert"))


@pytest.fixture
def url(play: Play) -> Iterator[str]:
    with served(played.ollama(play)) as found:
        yield found


def asked(play: Play) -> set[str]:
    """The models that were asked to write."""
    return {body["model"] for path, body in play.asked if path == "/api/generate"}


def chosen(home: Path, **settings: str) -> None:
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
    configured(home, "calomel/calomel.toml", f"[backend]\n{lines}")


@pytest.mark.parametrize(
    "words",
    [
        ("fill", "add.py", "--at", "2:12"),
        ("try", "--seconds", "1"),
        ("replay", RECORDING, "--limit-minutes", "0.1", "--no-resume"),
        ("bench", "infill", "--gaps-per-kind", "4", "--no-resume"),
    ],
    ids=lambda words: str(words[0]),
)
def test_without_an_option_the_choice_for_all_editors_is_asked(
    run: Runner, home: Path, url: str, play: Play, words: tuple[Any, ...]
) -> None:
    assert run("models", "use", "--upstream", url, "mine:7b-base").status == 0
    found = run(*words)
    assert found.status == 0, found.err
    assert asked(play) == {"mine:7b-base"}


def test_the_fit_is_for_the_choice(run: Runner, home: Path, url: str) -> None:
    chosen(home, upstream=url, upstream_model="mine:7b-base")
    found = run("calibrate", "--dry-run")
    assert "the filter stays as it is" in found.err
    refused = run("calibrate", "--recall", "x", "--dry-run")
    assert (refused.status, "try: --model nano" in refused.err) == (2, True)


def test_who_answered_is_told_where_the_settings_chose(run: Runner, home: Path, url: str, source: Path) -> None:
    chosen(home, upstream=url, upstream_model="mine:7b-base")
    assert f"mine:7b-base at {url}: confidence" in run("fill", source, "--at", "2:12").err
    assert (
        run("fill", source, "--at", "2:12", "--upstream", url, "--upstream-model", MODELS[0]).err[:10] == "confidence"
    )


def test_options_go_before_the_choice(run: Runner, home: Path, url: str, play: Play, source: Path, filler: Any) -> None:
    chosen(home, upstream=url, upstream_model="mine:7b-base")
    fill = ("fill", source, "--at", "2:12", "--json")
    assert json.loads(run(*fill, "--upstream-model", MODELS[0]).out)["text"] == "a + b"
    assert asked(play) == {MODELS[0]}
    play.asked.clear()
    assert run(*fill, "--upstream", url, "--upstream-model", "mine:7b-base").status == 0
    assert asked(play) == {"mine:7b-base"}
    play.asked.clear()
    # nano is a choice, too.
    assert run(*fill, "--model", "nano").status == 0
    assert (filler.opened, asked(play)) == ([(None, "cpu", None)], set())


def test_a_model_of_this_machine_is_opened_as_the_settings_say(
    run: Runner, home: Path, source: Path, filler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calomel.cli.device_checks.problem_of", lambda _: None)
    configured(home, "calomel/calomel.toml", f'[backend]\nmodel = "{nano_path()}"\ndevice = "cuda"\nthreads = 3\n')
    fill = ("fill", source, "--at", "2:12", "--json")
    assert run(*fill).status == 0
    assert run(*fill, "--device", "cpu").status == 0
    assert run(*fill, "--model", nano_path()).status == 0
    assert filler.opened == [(nano_path(), "cuda", 3), (nano_path(), "cpu", 3), (nano_path(), "cpu", None)]


@pytest.mark.parametrize(
    ("settings", "words", "said"),
    [
        ({}, ("--model", "nano", "--upstream", "http://127.0.0.1:9"), "--model and --upstream are both given"),
        ({}, ("--upstream-model", "a"), "--upstream-model needs the address of its server\ntry: add --upstream URL"),
        ({}, ("--model", "nobody"), "--model nobody: found no model nobody"),
        ({"model": "nobody"}, (), "backend.model: found no model nobody"),
        ({"url": "http://127.0.0.1:9"}, (), "which this command cannot ask\ntry: --model, or --upstream"),
    ],
)
def test_what_cannot_be_asked_is_told_with_its_option(
    run: Runner, home: Path, source: Path, settings: dict[str, str], words: tuple[str, ...], said: str
) -> None:
    if settings:
        chosen(home, **settings)
    found = run("fill", source, "--at", "2:12", *words)
    assert (found.status, found.out) == (2, "")
    assert said in found.err


def test_a_mistake_in_the_settings_is_told(run: Runner, home: Path, source: Path, filler: Any) -> None:
    configured(home, "calomel/calomel.toml", "[server\n")
    found = run("fill", source, "--at", "2:12")
    assert found.status == 0
    assert "calomel.toml" in found.err


def test_the_device_is_written_with_the_choice(run: Runner, home: Path) -> None:
    configured(home, "calomel/calomel.toml", '[backend]\ndevice = "cpu"  # mine\n')
    path = home / ".config/calomel/calomel.toml"
    assert run("models", "use", "nano", "--device", "cuda").status == 0
    assert path.read_text() == '[backend]\nmodel = "nano"\ndevice = "cuda"  # mine\n'
    assert run("models", "use", "nano").status == 0
    assert path.read_text() == '[backend]\nmodel = "nano"\ndevice = "cuda"  # mine\n'
