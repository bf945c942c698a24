"""`calomel try` and `calomel replay`: a recording played, shown, and counted."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from tests.bench.conftest import BILL, line, rename, write_stories
from tests.cli.conftest import FakeFiller, Runner
from tests.replay.scripted import INFO, Scripted, log_of, typed

from calomel.cli.output import excerpt
from calomel.cli.tour import Scene, Tour, bundled_log
from calomel.infer.completer import Candidate, CompleteAnswer, CompleteRequest
from calomel.prompts.parts import Edit
from calomel.replay import runs
from calomel.replay.events import Changed, Opened, ReplayLog
from calomel.replay.log_time import run as run_log
from calomel.replay.opportunity import ReplayOptions
from calomel.selectivity.sample import read_samples
from calomel.suggest.silence import SilenceReason

ROOT = Path(__file__).parents[2]


@pytest.fixture
def watchable(filler: FakeFiller, monkeypatch: pytest.MonkeyPatch) -> FakeFiller:
    """The scripted filler, which answers questions of editors, too."""

    async def complete(request: CompleteRequest) -> CompleteAnswer:
        if request.kind == "edit":
            return CompleteAnswer(())
        return CompleteAnswer((Candidate(filler.answers[0], (-0.1,)),))

    monkeypatch.setattr(filler, "complete", complete, raising=False)
    return filler


def test_bundled_recording_is_whole_small_and_of_several_languages() -> None:
    log = bundled_log()
    assert (log.problems, log.checks.content_ids_wrong, log.checks.content_ids_right) == ([], 0, 3)
    languages = [event.language_id for event in log.events if isinstance(event, Opened)]
    assert languages == ["python", "typescript", "go"]
    assert sum(isinstance(event, Changed) for event in log.events) > 100
    assert log.events[-1].time < 180


def test_bundled_recording_is_what_its_story_makes(tmp_path: Path) -> None:
    script = ROOT / "docs" / "scripts" / "make-demo-recording"
    subprocess.run([sys.executable, script, tmp_path / "made.json"], check=True, capture_output=True)
    bundled = ROOT / "server" / "calomel" / "cli" / "recordings" / "inventory.recording.json"
    assert bundled.read_text(encoding="utf-8") == (tmp_path / "made.json").read_text(encoding="utf-8")


def toured(log: ReplayLog, model: Scripted, seconds: float = 60.0) -> tuple[Tour, list[Scene]]:
    scenes: list[Scene] = []

    async def watch() -> Tour:
        tour = Tour(log, model, INFO, scenes.append, seconds=seconds)
        await tour.watch()
        return tour

    return run_log(watch()), scenes


def test_a_right_suggestion_is_shown_once_with_what_became_of_it() -> None:
    log = log_of(*typed("x = ", 0, 1.0), *typed("compute(1)", 4, 6.0), *typed("\ny", 14, 12.0))
    tour, scenes = toured(log, Scripted({"x = ": "compute(1)"}))
    assert dict(tour.outcomes) == {"accepted": 1}
    (scene,) = (scene for scene in scenes if scene.withheld is None)
    assert list(scene.lines())[1:] == ["    x = ⟦compute(1)⟧", "    right: the author wrote this next"]


def test_a_wrong_suggestion_is_called_wrong() -> None:
    log = log_of(*typed("x = ", 0, 1.0), *typed("other", 4, 6.0), *typed("\ny = 1\nz = 2", 9, 12.0))
    tour, _ = toured(log, Scripted({"x = ": "compute(1)"}))
    assert dict(tour.outcomes) == {"rejected": 1}


def test_it_ends_when_the_time_is_over() -> None:
    tour, scenes = toured(log_of(*typed("x = ", 0, 1.0), *typed("compute(1)", 4, 6.0)), Scripted({}), seconds=-1.0)
    assert (dict(tour.outcomes), scenes) == ({}, [])


@pytest.mark.parametrize(
    ("edits", "lines"),
    [
        ((Edit(3, 3, " half"),), ["    one⟦ half⟧ two"]),
        ((Edit(8, 13, "four"),), ["    ⟨three⟩⟦four⟧"]),
        ((Edit(4, 7, "2"), Edit(8, 13, "3")), ["    one ⟨two⟩⟦2⟧", "    ⟨three⟩⟦3⟧"]),
        ((Edit(3, 3, "\nand\nmore"),), ["    one⟦", "    and", "    more⟧ two"]),
    ],
)
def test_the_lines_of_a_suggestion_have_marks(edits: tuple[Edit, ...], lines: list[str]) -> None:
    assert list(Scene("a.py", "one two\nthree\n", edits, "accepted").lines())[1:-1] == lines


def test_what_is_not_shown_has_its_reason() -> None:
    scene = Scene("a.py", "a\n", (Edit(1, 1, "b"),), "rejected", SilenceReason.LOW_CONFIDENCE)
    assert list(scene.lines())[-1].startswith("    hidden: ")


def test_what_a_model_writes_cannot_control_the_terminal() -> None:
    assert "\x1b" not in "".join(Scene("a.py", "x\n", (Edit(1, 1, "\x1b[2J\x07"),), "accepted").lines())


def shown(prefix: str, middle: str, suffix: str) -> str:
    return excerpt(Console(file=io.StringIO()), prefix, middle, suffix, before=1, after=1).plain


def test_tabs_are_wide_as_in_the_file_whatever_the_line_number_is() -> None:
    assert shown("if x {\n\t", "y", "\n}") == "1 │ if x {\n2 │     ⟦y⟧\n3 │ }"


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    assert shown("x\r\n", "\x1b[2Jy\x9b", "\r\n") == "1 │ x\n2 │ ⟦␛[2Jy�⟧"


TRACE = {
    "startContent": "",
    "endContent": "x = compute(1)",
    "txns": [
        {"time": "2024-01-01T00:00:00Z", "patches": [[0, 0, "x = "]]},
        {"time": "2024-01-01T00:00:05Z", "patches": [[4, 0, "compute(1)"]]},
    ],
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(TRACE), encoding="utf-8")
    return path


def test_a_log_is_replayed_to_a_table_json_and_html(
    run: Runner, trace: Path, tmp_path: Path, model: list[ReplayOptions]
) -> None:
    done = run(
        "replay",
        trace,
        "--latency",
        "50",
        "--seed",
        "3",
        "--details",
        "--json",
        tmp_path / "a.json",
        "--html",
        tmp_path / "a.html",
    )
    assert done.status == 0, done.err
    assert "characters saved per opportunity" in done.out
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert (found["opportunities"], found["shown"], found["accepted"], found["seed"]) == (2, 1, 1, 3)
    assert found["options"]["latency"] == 0.05
    assert found["results"][0]["checks"]["end_content_right"] is True
    assert "<!doctype html>" in (tmp_path / "a.html").read_text(encoding="utf-8").lower()
    assert model[0].fixed_latency == 0.05


def test_two_runs_are_compared(run: Runner, trace: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert run("replay", trace, "--latency", "50", "--json", tmp_path / f"{name}.json", "--details").status == 0
    done = run("replay", "--compare", tmp_path / "a.json", tmp_path / "b.json")
    assert done.status == 0, done.err
    assert "2 opportunities in both" in " ".join(done.out.split())


def test_a_person_reads_one_sentence_and_the_rest_on_request(run: Runner, trace: Path) -> None:
    said = run("replay", trace, "--latency", "50", "--no-resume").out
    assert said.startswith("At 2 pauses you would have seen ")
    assert " accepted 1" in said
    assert said.endswith("--details prints every figure.\n")
    figures = run("replay", trace, "--latency", "50", "--no-resume", "--details").out
    assert "Sources of suggestions" in figures


def test_a_replay_that_is_out_of_time_says_how_far_it_came(run: Runner, trace: Path) -> None:
    said = run("replay", trace, "--latency", "50", "--no-resume", "--minutes", "0").out
    assert re.search(r"That was [1-9]\d% of it: --minutes allows more time\.", said)


def test_problems_of_a_log_are_told_with_their_entry(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(TRACE)[:-60], encoding="utf-8")
    done = run("replay", path, "--latency", "0")
    assert done.status == 0
    assert "entry 1" in done.err


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


def test_samples_are_written_and_nothing_is_shown(
    run: Runner, trace: Path, tmp_path: Path, model: list[ReplayOptions]
) -> None:
    out, figures = tmp_path / "samples.jsonl", tmp_path / "figures.json"
    done = run("replay", trace, "--latency", "50", "--samples", out, "--json", figures)
    assert done.status == 0, done.err
    (found,) = read_samples([out])
    assert (found.outcome, found.kind, found.language, found.shown) == ("accepted", "fill", "plaintext", False)
    assert json.loads(figures.read_text())["shown"] == 0
    assert model[0].samples


def test_so_many_logs_are_drawn_and_the_same_with_the_same_seed(run: Runner, tmp_path: Path) -> None:
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
