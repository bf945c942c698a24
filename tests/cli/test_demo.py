from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import FakeFiller, Run

from calomel.cli.demo import open_log
from calomel.cli.tour import Tour
from calomel.replay.events import Changed, Opened
from calomel.suggest.completer import Candidate, CanvasText, CompleteAnswer, CompleteRequest, Fill, FillRequest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def watchable(filler: FakeFiller, monkeypatch: pytest.MonkeyPatch) -> FakeFiller:
    """The scripted filler, whose canvases can be looked at, too."""

    async def canvases(request: FillRequest) -> AsyncGenerator[CanvasText | Fill]:
        yield CanvasText(1, "░", ("░",), (False,))
        yield filler.fill(request)

    async def complete(request: CompleteRequest) -> CompleteAnswer:
        if request.kind == "edit":
            return CompleteAnswer(())
        return CompleteAnswer((Candidate(filler.answers[0], (-0.1,)),))

    for name, method in {"canvases": canvases, "complete": complete}.items():
        monkeypatch.setattr(filler, name, method, raising=False)
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


def test_a_log_that_is_none_is_refused(tmp_path: Path, run: Callable[..., Run]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("nothing", encoding="utf-8")
    found = run("demo", path)
    assert (found.status, "is no log that is known" in found.err) == (2, True)


def test_demo_without_a_terminal_writes_lines_and_a_sum(
    run: Callable[..., Run], watchable: FakeFiller, tmp_path: Path
) -> None:
    path = tmp_path / "log.json"
    patches: list[dict[str, Any]] = [
        {"time": f"2024-01-01T00:00:{second:02}Z", "patches": [[at, 0, text]]}
        for second, at, text in ((0, 0, "total = "), (8, 8, "a + b"), (20, 13, "\n"))
    ]
    path.write_text(
        json.dumps({"startContent": "", "endContent": "total = a + b\n", "txns": patches}), encoding="utf-8"
    )
    found = run("demo", path, "--seconds", 30, "--aggressiveness", 0)
    assert found.status == 0, found.err
    assert "Shown " in found.out
    assert "nothing left it" in found.out
    assert watchable.closed


def test_demo_asks_with_as_many_steps_as_it_is_told(run: Callable[..., Run], watchable: FakeFiller) -> None:
    run("demo", "--seconds", 2, "--steps", 5)
    assert {(request.max_steps, request.policy) for request in watchable.requests} <= {(5, "threshold:0.9")}


def test_ctrl_c_ends_it_without_a_word_of_complaint(
    run: Callable[..., Run], watchable: FakeFiller, monkeypatch: pytest.MonkeyPatch
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
    assert "step 2" in printed
