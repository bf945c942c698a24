from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.bench.stories_made import BILL, line, rename, write_stories
from tests.cli.conftest import Run
from tests.replay.scripted import Scripted

from calomel.replay import runs
from calomel.replay.opportunity import ReplayOptions
from calomel.selectivity.sample import read_samples

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
        return Scripted({"x = ": "compute(1)", "    print": "(total)"})

    defaults = dict(runs.replay_logs.__kwdefaults__ or {})
    monkeypatch.setattr(runs.replay_logs, "__kwdefaults__", {**defaults, "open_model": open_model})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return opened


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(TRACE), encoding="utf-8")
    return path


def test_samples_are_written_and_nothing_is_shown(
    run: Callable[..., Run], trace: Path, tmp_path: Path, model: list[ReplayOptions]
) -> None:
    out, figures = tmp_path / "samples.jsonl", tmp_path / "figures.json"
    done = run("replay", trace, "--latency", "50", "--samples", out, "--json", figures)
    assert done.status == 0, done.err
    (found,) = read_samples([out])
    assert (found.outcome, found.kind, found.language, found.shown) == ("accepted", "fill", "plaintext", False)
    assert (found.text, found.request) == (None, None)
    assert json.loads(figures.read_text())["shown"] == 0
    assert (model[0].samples, model[0].prompts) == (True, False)


def test_texts_and_prompts_are_written_only_on_request(
    run: Callable[..., Run], trace: Path, tmp_path: Path, model: list[ReplayOptions]
) -> None:
    out = tmp_path / "samples.jsonl"
    assert run("replay", trace, "--latency", "50", "--samples", out, "--prompts").status == 0
    (found,) = read_samples([out])
    assert (found.text, found.wanted) == ("compute(1)", "compute(1)")
    assert found.request is not None
    assert model[0].prompts


def test_so_many_logs_are_drawn_and_the_same_with_the_same_seed(run: Callable[..., Run], tmp_path: Path) -> None:
    rows = (rename(BILL, name, f"new_{name}", f"shop{name}/a.py") for name in ("prices", "bill", "sum"))
    stories = write_stories(tmp_path / "stories.jsonl.zst", *rows, line())

    def played(*options: object) -> list[str]:
        figures = tmp_path / "figures.json"
        done = run("replay", stories, "--latency", "0", "--no-resume", "--json", figures, *options)
        assert done.status == 0, done.err
        return [result["log"] for result in json.loads(figures.read_text())["results"]]

    everything = played("--only", 9)
    assert len(everything) == 4
    some = played("--only", 2, "--seed", 1)
    assert len(some) == 2
    assert some == played("--only", 2, "--seed", 1) == [log for log in everything if log in some]
    assert some != played("--only", 2, "--seed", 2)


def test_a_folder_that_is_not_there_is_said_before_anything_is_played(
    run: Callable[..., Run], trace: Path, tmp_path: Path, model: list[ReplayOptions]
) -> None:
    done = run("replay", trace, "--samples", tmp_path / "none" / "samples.jsonl")
    assert done.status == 2
    assert "none/samples.jsonl cannot be written" in done.err
    assert model == []


def test_no_log_at_all_is_too_few(run: Callable[..., Run], trace: Path) -> None:
    done = run("replay", trace, "--only", 0)
    assert done.status == 2
    assert "--only" in done.err
