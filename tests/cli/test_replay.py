from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.replay.scripted import Scripted

from calomel.replay import runs
from calomel.replay.opportunity import ReplayOptions

TRACE = {
    "startContent": "",
    "endContent": "x = compute(1)",
    "txns": [
        {"time": "2024-01-01T00:00:00Z", "patches": [[0, 0, "x = "]]},
        {"time": "2024-01-01T00:00:05Z", "patches": [[4, 0, "compute(1)"]]},
    ],
}


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[ReplayOptions]:
    """A scripted model in place of the engine; the options that it was opened with."""
    opened: list[ReplayOptions] = []

    def open_model(options: ReplayOptions) -> Scripted:
        opened.append(options)
        return Scripted({"x = ": "compute(1)"})

    defaults = dict(runs.replay_logs.__kwdefaults__ or {})
    monkeypatch.setattr(runs.replay_logs, "__kwdefaults__", {**defaults, "open_model": open_model})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return opened


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(TRACE), encoding="utf-8")
    return path


def test_a_log_is_replayed_to_a_table_json_and_html(
    run: Callable[..., Run], trace: Path, tmp_path: Path, model: list[ReplayOptions]
) -> None:
    done = run(
        "replay", trace, "--latency", "50", "--seed", "3", "--json", tmp_path / "a.json", "--html", tmp_path / "a.html"
    )
    assert done.status == 0, done.err
    assert "characters saved per opportunity" in done.out
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert (found["opportunities"], found["shown"], found["accepted"], found["seed"]) == (2, 1, 1, 3)
    assert found["options"]["latency"] == 0.05
    assert found["results"][0]["checks"]["end_content_right"] is True
    assert "<!doctype html>" in (tmp_path / "a.html").read_text(encoding="utf-8").lower()
    assert model[0].fixed_latency == 0.05


def test_two_runs_are_compared(run: Callable[..., Run], trace: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert run("replay", trace, "--latency", "50", "--json", tmp_path / f"{name}.json").status == 0
    done = run("replay", "--compare", tmp_path / "a.json", tmp_path / "b.json")
    assert done.status == 0, done.err
    assert "2 opportunities in both" in " ".join(done.out.split())


def test_problems_of_a_log_are_told_with_their_entry(run: Callable[..., Run], tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(TRACE)[:-60], encoding="utf-8")
    done = run("replay", path, "--latency", "0")
    assert done.status == 0
    assert "entry 1" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "LOG"),
        (("nowhere.json",), "nowhere.json"),
        (("{trace}", "--latency", "soon"), "--latency"),
        (("{trace}", "--aggressiveness", "2"), "--aggressiveness"),
        (("{trace}", "--kinds", "fill,poem"), "poem"),
        (("{trace}", "--json", "/nowhere/a.json"), "/nowhere/a.json"),
        (("--compare", "{trace}", "{trace}"), "no result"),
        (("--git", "/nowhere"), "/nowhere"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    run: Callable[..., Run], trace: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = run("replay", *(argument.format(trace=trace) for argument in arguments))
    assert done.status == 2
    assert words in done.err
    assert "Traceback" not in done.err


def test_ray_that_is_missing_is_named(run: Callable[..., Run], trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    done = run("replay", trace, "--ray", "--latency", "0")
    assert done.status == 1
    assert "calomel[cluster]" in done.err
