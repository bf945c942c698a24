"""`--upstream`: every command that asks a model asks the one behind another server, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bench.test_recorded import SCENARIO, TEXT, WANTED
from tests.cli.conftest import Runner
from tests.server import _upstreams as played
from tests.server._upstreams import Play, served


@pytest.fixture
def play() -> Play:
    return Play(
        models=("llama3.2",), capabilities=("completion",), tokens=(" a", " +", " b", "\n"), log_probs=(-0.1,) * 4
    )


@pytest.fixture
def url(play: Play) -> Iterator[str]:
    with served(played.ollama(play)) as found:
        yield found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "add.py"
    file.write_text("def add(a, b):\n    return \n", encoding="utf-8")
    return file


def test_fill_shows_what_the_model_of_another_server_says(run: Runner, url: str, source: Path) -> None:
    found = run("fill", source, "--at", "2:12", "--upstream", url, "--json")

    assert json.loads(found.out)["text"] == "a + b"


def test_the_server_that_is_not_there_is_named_once(run: Runner, source: Path) -> None:
    found = run("fill", source, "--at", "2:12", "--upstream", "http://127.0.0.1:1")

    assert found.status == 1
    assert found.err.count("no server answers at http://127.0.0.1:1") == 1


def test_an_address_that_code_must_not_be_sent_to_is_refused(run: Runner, source: Path) -> None:
    found = run("fill", source, "--at", "2:12", "--upstream", "http://192.0.2.1:8080")

    assert found.status == 1
    assert "use https, or a tunnel" in found.err


def test_a_replay_asks_it(run: Runner, url: str, play: Play, tmp_path: Path) -> None:
    log = Path(__file__).parents[2] / "server/calomel/cli/recordings/inventory.recording.json"
    found = run("replay", log, "--upstream", url, "--limit-minutes", 0.3, "--no-resume", "--json", tmp_path / "r.json")

    assert found.status == 0, found.err
    assert json.loads((tmp_path / "r.json").read_text())["options"]["upstream"] == url
    assert any(path == "/api/generate" for path, _ in play.asked[1:])


def test_try_fills_its_holes_with_it(run: Runner, url: str) -> None:
    found = run("try", "--upstream", url)

    assert found.status == 0, found.err
    assert "are what the author wrote where" in found.out
    assert "Nothing left this machine" not in found.out


def test_the_bench_of_next_edits_asks_it(run: Runner, play: Play, tmp_path: Path) -> None:
    scenario = tmp_path / "rename.txtar"
    scenario.write_text(SCENARIO.format(text=TEXT, wanted=WANTED), encoding="utf-8")
    play.models = ("zeta-2",)
    with served(played.ollama(play)) as url:
        found = run("bench", "edits", scenario, "--upstream", url)

    assert found.status == 0, found.err
    assert any("fim-suffix" in str(body.get("prompt")) for path, body in play.asked if path == "/api/generate")


def test_the_bench_of_holes_asks_it(run: Runner, url: str, tmp_path: Path) -> None:
    told = tmp_path / "r.json"
    found = run("bench", "infill", "--upstream", url, "--holes-per-kind", 4, "--no-resume", "--json", told)

    assert found.status == 0, found.err
    figures = json.loads(told.read_text())
    assert figures["policy"] == "the server's"
    assert figures["rest_of_line.exact_match"] is not None
