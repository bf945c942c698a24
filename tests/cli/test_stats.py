from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calomel.cli.main import main
from calomel.suggest.offers import Outcome
from calomel.suggest.outcome_log import OutcomeLog
from calomel.suggest.signals import OutcomeSignals

DAY = 86_400.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "outcomes.jsonl"


def say(path: Path, number: int, *outcomes: str, days_ago: float = 0.0, **changes: Any) -> None:
    whole = Outcome(
        id=f"{number:04x}",
        outcome="shown",
        reason="",
        kind="fill",
        uri="file:///a.py",
        language_id="python",
        trigger="edit",
        model="nano",
        probability=0.4,
        visible_seconds=1.0,
        length=10,
        accepted_length=0,
        text="x" * 10,
        signals=OutcomeSignals(characters_inserted=10),
        maker="canvas",
    )
    log = OutcomeLog(path, session="5e55", wall=lambda: time.time() - days_ago * DAY)
    for outcome in outcomes:
        taken = {"accepted_length": 10} if outcome == "accepted" else {}
        log.record(replace(whole, outcome=outcome, **(taken | changes)))  # type: ignore[arg-type]
    log.close()


@pytest.fixture
def used(path: Path) -> Path:
    """A log of some use: three languages, two makers, two days."""
    for number in range(4):
        say(path, number, "shown", "accepted")
    say(path, 10, "shown", "rejected", language_id="go")
    say(path, 11, "shown", "ignored", reason="typed_out", language_id="go", kind="edit", maker="rename")
    for number in range(20, 26):
        say(path, number, "withheld", probability=0.2, reason="low_confidence", days_ago=3.0)
    say(path, 20, "typed", probability=0.2, reason="low_confidence", days_ago=3.0)
    say(path, 30, "withheld", probability=0.9, reason="unbalanced", language_id="rust")
    return path


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["stats", *map(str, words)])
    return int(ended.value.code or 0)


def document(path: Path, *words: object) -> dict[str, Any]:
    out = path.with_suffix(".figures.json")
    assert run("--log", path, "--json", out, *words) == 0
    found = json.loads(out.read_text())
    assert isinstance(found, dict)
    return found


def test_it_prints_what_became_of_suggestions(used: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--log", used) == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert rows["shown"] == ["6"]
    assert re.search(r"^ +accepted +4 +67 \[", out, re.MULTILINE)
    assert rows["python"][:2] == ["4", "4"]
    assert rows["low_confidence"][0] == "6"
    assert rows["0.3"][:2] == ["6", "50"]
    # What the names come to, the shipped model says.
    assert [row[0] for row in rows.values() if row and row[0] in {"quiet", "balanced", "eager"}][::-1] == [
        "quiet",
        "balanced",
        "eager",
    ]
    for word in ("By language", "By maker", "By kind", "By day", "Why suggestions were held back", "rename", "rust"):
        assert word in out


def test_json_has_every_figure_with_its_bounds(used: Path) -> None:
    found = document(used)
    total = found["total"]
    assert (total["shown"], total["accepted"], total["rejected"], total["typed"]) == (6, 4, 1, 1)
    assert (total["withheld"], total["withheld_typed"], total["saved"]) == (7, 1, 40)
    assert total["acceptance_rate_low"] < total["acceptance_rate"] == 4 / 6 < total["acceptance_rate_high"]
    assert found["withheld"]["low_confidence"]["times"] == 6
    assert sorted(found["languages"]) == ["go", "python", "rust"]
    assert sorted(found["makers"]) == ["canvas", "rename"]
    assert sorted(found["kinds"]) == ["edit", "fill"]
    assert len(found["days"]) == 2
    eager = next(each for each in found["thresholds"] if each["name"] == "eager")
    assert (eager["shown"], eager["wanted"], eager["missed"]) == (12, 6, 0)
    quiet = next(each for each in found["thresholds"] if each["name"] == "quiet")
    assert (quiet["shown"], quiet["precision"], quiet["loss"]) == (0, None, 1.0)


def test_only_the_last_days_are_looked_at(used: Path) -> None:
    assert document(used, "--since", 2)["total"]["withheld"] == 1
    assert document(used, "--since", 4)["total"]["withheld"] == 7


def test_rotated_files_are_read(used: Path) -> None:
    used.rename(used.with_name(f"{used.name}.1"))
    say(used, 40, "shown")
    assert document(used)["total"]["shown"] == 7


def test_damaged_lines_are_counted_and_left_out(used: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with used.open("ab") as log:
        log.write(b'{"time": 1, "id"\n\xff\xfe\n')
    assert document(used)["bad_lines"] == 2
    assert "2 lines are damaged and left out." in capsys.readouterr().err


Making = Callable[[Path], object]


@pytest.mark.parametrize(
    ("make", "words", "expected"),
    [
        (Path.touch, (), "Nothing is logged in"),
        (lambda path: say(path, 1, "shown", days_ago=9.0), ("--since", 2), "Nothing was logged in the last 2 days."),
        (lambda path: path.write_text("[]\n"), (), "holds no line that can be read"),
    ],
)
def test_a_log_without_anything_is_said_in_a_sentence(
    path: Path, capsys: pytest.CaptureFixture[str], make: Making, words: tuple[object, ...], expected: str
) -> None:
    make(path)
    assert run("--log", path, *words) == 0
    assert expected in " ".join(capsys.readouterr().out.split())


def test_without_a_log_of_ones_own_it_says_where_one_comes_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert run() == 0
    assert "calomel lsp" in capsys.readouterr().out


@pytest.mark.parametrize("words", [("--log", "missing.jsonl"), ("--log", "."), ("--json", "missing/out.json")])
def test_what_cannot_be_used_is_named(
    words: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*words) == 2
    assert words[1] in capsys.readouterr().err


def test_names_in_a_log_cannot_reach_the_terminal(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {"time": 1e9, "id": "a", "outcome": "shown", "language": "\x1b[31m[red]x", "maker": "[/]", "kind": "\n"}
    path.write_text(json.dumps(line) + "\n")
    assert run("--log", path) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[red]x" in out


@pytest.mark.parametrize(
    "changes",
    [
        {"time": 1e300},
        {"time": float("inf")},
        {"time": float("nan")},
        {"time": -1},
        {"probability": float("inf")},
        {"length": 10**300},
        {"signals": {"log_prob": float("nan")}, "accepted_length": 1},
    ],
    ids=repr,
)
def test_a_number_that_nothing_was_ever_at_is_a_damaged_line(used: Path, changes: dict[str, Any]) -> None:
    line = {"time": 1e9, "id": "a", "outcome": "shown", **changes}
    with used.open("a") as log:
        log.write(json.dumps(line) + "\n")
    found = document(used)
    assert (found["bad_lines"], found["total"]["shown"]) == (1, 6)
