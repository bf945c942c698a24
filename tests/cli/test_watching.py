"""`calomel demo` and `calomel replay`: a recording played, shown, and counted."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console
from tests.bench.stories_made import BILL, line, rename, write_stories
from tests.cli.conftest import FakeFiller, Runner
from tests.replay.scripted import INFO, Scripted, log_of, typed

from calomel.cli.output import excerpt
from calomel.cli.tour import OverError, Scene, Tally, Tour, open_log, picture, resting, told
from calomel.infer.completer import Candidate, CompleteAnswer, CompleteRequest
from calomel.replay import runs
from calomel.replay.events import Changed, Edit, Opened, ReplayLog
from calomel.replay.log_time import run as run_log
from calomel.replay.opportunity import ReplayOptions
from calomel.selectivity.sample import read_samples

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
    log = open_log(None)
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


def test_demo_without_a_terminal_writes_lines_and_a_sum(run: Runner, watchable: FakeFiller, trace: Path) -> None:
    found = run("demo", trace, "--seconds", 30, "--aggressiveness", 0)
    assert found.status == 0, found.err
    assert "Shown " in found.out
    assert "on this machine" in found.out
    assert watchable.closed


def test_ctrl_c_ends_it_without_a_word_of_complaint(
    run: Runner, watchable: FakeFiller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Tour, "_show_answers", interrupted)
    found = run("demo")
    assert (found.status, found.err) == (0, "")
    assert "Shown 0" in found.out
    assert watchable.closed


@pytest.mark.slow
def test_shipped_model_gets_some_of_the_bundled_recording_right() -> None:
    command = [sys.executable, "-m", "calomel.cli", "demo", "--seconds", "120"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    assert "accepted: this is what the person wrote next" in printed


@dataclass
class Spectator:
    """Sees what is shown, and lets no time pass."""

    scenes: list[Scene] = field(default_factory=list)
    rests: list[float] = field(default_factory=list)
    patience: float = 1e9

    def show(self, scene: Scene, tally: Tally) -> None:
        self.scenes.append(scene)

    def rest(self, seconds: float) -> None:
        self.rests.append(seconds)
        if sum(self.rests) > self.patience:
            raise OverError


def toured(log: ReplayLog, model: Scripted, spectator: Spectator) -> Tally:
    tally = Tally()

    async def watch() -> None:
        options = ReplayOptions(latency=0.05)
        tour = Tour(log, model, INFO, options, tally, show=spectator.show, rest=spectator.rest)
        await tour.watch()

    run_log(watch())
    return tally


def test_an_accepted_suggestion_is_shown_then_counted_and_then_there_at_once() -> None:
    log = log_of(*typed("x = ", 0, 1.0), *typed("compute(1)", 4, 6.0), *typed("\ny", 14, 12.0))
    spectator = Spectator()
    tally = toured(log, Scripted({"x = ": "compute(1)"}), spectator)
    assert str(tally) == "shown 1: accepted 1, partly 0, rejected 0"
    (told,) = (scene for scene in spectator.scenes if scene.outcome)
    assert (told.outcome, told.text, told.edits[0].text) == ("accepted", "x = ", "compute(1)")
    shown = [bool(scene.edits) for scene in spectator.scenes]
    suggested = shown.index(True)
    assert spectator.scenes[suggested].outcome == ""
    # Nobody has to look on while what was accepted is typed.
    behind = [rest for rest, scene in zip(spectator.rests, spectator.scenes, strict=False) if scene.text > "x = c"]
    assert sum(rest == 0.0 for rest in behind) >= len("ompute(1")


def test_a_wrong_suggestion_is_rejected_and_the_person_goes_on() -> None:
    log = log_of(*typed("x = ", 0, 1.0), *typed("other", 4, 6.0), *typed("\ny = 1\nz = 2", 9, 12.0))
    spectator = Spectator()
    tally = toured(log, Scripted({"x = ": "compute(1)"}), spectator)
    assert str(tally) == "shown 1: accepted 0, partly 0, rejected 1"
    assert spectator.scenes[-1].text == "x = other\ny = 1\nz = 2"


def test_it_ends_when_the_time_is_over() -> None:
    spectator = Spectator(patience=1.0)
    toured(log_of(*typed("x" * 50, 0, 1.0, gap=0.5)), Scripted({}), spectator)
    assert len(spectator.scenes) < 10


def test_rests_are_as_long_as_the_speed_says_and_never_beyond_the_end() -> None:
    slept: list[float] = []
    now = 0.0
    rest = resting(2.0, until=10.0, clock=lambda: now, sleep=slept.append)
    rest(1.0)
    now = 9.9
    rest(1.0)
    assert slept == [0.5, pytest.approx(0.1)]
    now = 10.0
    with pytest.raises(OverError):
        rest(0.0)


TEXT = "one two\nthree\n"


def marked(scene: Scene) -> str:
    """The caret as |, what is new in ⟦⟧, what is old in ⟨⟩."""
    shapes = {"": "{}", "new": "⟦{}⟧", "old": "⟨{}⟩", "caret": "|{}"}
    return "".join(shapes[piece.mark].format(piece.text) for piece in scene.pieces())


@pytest.mark.parametrize(
    ("caret", "edits", "expected"),
    [
        (3, (), "one| two\nthree\n"),
        (7, (), "one two|\nthree\n"),
        (14, (), "one two\nthree\n|"),
        (3, (Edit(3, 3, " half"),), "one|⟦ half⟧ two\nthree\n"),
        (0, (Edit(8, 13, "four"),), "|one two\n⟨three⟩⟦four⟧\n"),
        (10, (Edit(8, 13, ""),), "one two\n|⟨three⟩\n"),
        (13, (Edit(4, 7, "2"), Edit(8, 13, "3")), "one ⟨two⟩⟦2⟧\n⟨three⟩⟦3⟧|\n"),
    ],
)
def test_caret_is_seen_once_and_the_suggestion_is_marked(caret: int, edits: tuple[Edit, ...], expected: str) -> None:
    assert marked(Scene("a.py", TEXT, caret, edits)) == expected


def test_a_suggestion_elsewhere_is_in_sight_too() -> None:
    scene = Scene("a.py", TEXT, 0, (Edit(8, 13, "four"),))
    assert (scene.focus(), scene.place()) == ((0, 1), "a.py:2")


LONG_TEXT = "".join(f"line {number}\n" for number in range(60))


def drawn(scene: Scene, width: int, height: int) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, record=True)
    console.print(picture(scene, Tally(Counter(accepted=2, rejected=1), Counter(empty=4)), width, height))
    return console.export_text()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 30), (200, 60)])
def test_picture_fits_the_terminal_and_has_caret_and_suggestion(width: int, height: int) -> None:
    at = LONG_TEXT.index("line 40") + len("line 40")
    found = drawn(
        Scene("a.py", LONG_TEXT, at, (Edit(at, at, " and more"),), said="suggested", maker="canvas"), width, height
    )
    lines = found.rstrip("\n").split("\n")
    assert len(lines) < height
    assert all(len(line.rstrip()) <= width for line in lines)
    assert "line 40  and more" in found  # with the caret between them
    assert "shown 3" in found


def test_what_a_model_writes_cannot_control_the_terminal() -> None:
    scene = Scene("a.py", "x\n", 1, (Edit(1, 1, "\x1b[2J\x07"),))
    assert "\x1b" not in "".join([*told(scene), drawn(scene, 120, 40)])


def test_plain_lines_have_the_suggestion_and_the_outcome() -> None:
    scene = Scene("a.py", "a\n", 1, (Edit(1, 1, "b"),), 0.5, "canvas", "accepted: so", "accepted")
    assert told(scene) == ["a.py:1  50% likely · by canvas", "    a⟦b⟧", "    accepted: so"]


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


def test_two_runs_are_compared(run: Runner, trace: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert run("replay", trace, "--latency", "50", "--json", tmp_path / f"{name}.json").status == 0
    done = run("replay", "--compare", tmp_path / "a.json", tmp_path / "b.json")
    assert done.status == 0, done.err
    assert "2 opportunities in both" in " ".join(done.out.split())


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
