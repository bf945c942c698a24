"""What is learned from outcomes: `calomel calibrate`, `stats` and `bench selectivity`."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Runner, outcome
from tests.selectivity.made import TRUTH, drawn
from tests.selectivity.made import sample as made_sample

from calomel.infer.in_process import describe
from calomel.selectivity.calibrator import CALIBRATOR_FILE, Calibrator, KindCalibrator
from calomel.selectivity.sample import Sample
from calomel.suggest.judging import calibrator_for, user_calibrator_path
from calomel.suggest.outcome_log import OutcomeLog, outcome_log_path
from calomel.suggest.signals import OutcomeSignals

SHIPPED = Calibrator(
    {"fill": TRUTH, "edit": KindCalibrator({"ratio": 1.0}, -1.0, thresholds={"balanced": 0.2, "eager": 0.1})}
)


@pytest.fixture(autouse=True)
def _own(home: Path) -> None:
    """Where the user's own files lie."""


def write(path: Path, *samples: Sample) -> Path:
    path.write_text("".join(each.to_line() for each in samples), encoding="utf-8")
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 2048, "kinds": ["fill", "edit"]}))
    SHIPPED.write(folder / CALIBRATOR_FILE)
    return folder


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    return write(tmp_path / "samples.jsonl", *drawn(150))


def past(path: Path, suggestions: Sequence[Sample], model: str = "my-model") -> None:
    """The outcomes of a person, a day for each group."""
    days = sorted({each.group for each in suggestions})
    for day, group in enumerate(days):
        made = OutcomeLog(path, session=f"{day:04x}", wall=partial(_days_ago, day + 1))
        for number, each in enumerate(suggestions):
            if each.group == group:
                signals = OutcomeSignals(**each.signals)
                named = {"language_id": each.language, "model": model, "maker": each.maker}
                whole = outcome(f"{number:04x}", **named, signals=signals)
                made.record(whole)
                made.record(replace(whole, outcome="accepted" if each.accepted else "rejected"))
        made.close()


def _days_ago(days: float) -> float:
    return time.time() - days * 86_400.0


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_samples_of_replays_make_a_calibrator_where_one_says(
    run: Runner, model: Path, samples: Path, tmp_path: Path, home: Path
) -> None:
    out = tmp_path / "made.json"
    done = run("calibrate", "--samples", samples, "--model", model, "--out", out)
    assert done.status == 0, done.err
    made = Calibrator.read(out)
    assert made.model == ""
    assert made.kinds["fill"].report["samples"] == 150
    assert made.kinds["edit"] == SHIPPED.kinds["edit"]
    named = made.thresholds("fill")
    assert named["quiet"] >= named["balanced"] >= named["eager"] > 0
    assert files(home / ".state") == []
    assert "fill: 150 suggestions from 10 days" in done.out
    assert "edit: not fitted." in done.out
    assert re.search(r"before +0\.\d{4} +0\.\d{4} +0\.\d{4}", done.out)
    assert f"fill: quiet {named['quiet']:.3f}, balanced {named['balanced']:.3f}" in done.out
    assert re.sub(r"\s", "", str(out)) in re.sub(r"\s", "", done.out)


def test_ones_own_log_makes_ones_own_calibrator_which_the_editor_then_uses(
    run: Runner, model: Path, home: Path
) -> None:
    path = outcome_log_path()
    assert path.is_relative_to(home / ".state")
    path.parent.mkdir(parents=True)
    past(path, drawn(120))
    past(path, drawn(40, seed=2), model="another-model")
    done = run("calibrate", "--model", model)
    assert done.status == 0, done.err
    assert "fill: 120 suggestions from 10 days" in done.out
    info = describe(model)
    own = Calibrator.read(user_calibrator_path(info.weights))
    assert own.model == info.weights
    assert calibrator_for(info).kinds["fill"] == own.kinds["fill"]
    assert own.kinds["fill"].report["samples"] == 120


def test_fitted_again_it_starts_from_the_model_so_that_nothing_counts_twice(
    run: Runner, model: Path, samples: Path
) -> None:
    path = user_calibrator_path(describe(model).weights)
    made = []
    for _ in range(2):
        assert run("calibrate", "--samples", samples, "--model", model).status == 0
        made.append(path.read_text())
    assert made[0] == made[1]


def test_a_dry_run_says_all_and_writes_nothing(run: Runner, model: Path, samples: Path, home: Path) -> None:
    before = (model / CALIBRATOR_FILE).read_bytes()
    done = run("calibrate", "--samples", samples, "--model", model, "--dry-run")
    assert done.status == 0, done.err
    assert "fill: 150 suggestions" in done.out
    assert "written" not in done.out
    assert files(home / ".state") == []
    assert (model / CALIBRATOR_FILE).read_bytes() == before


def test_from_nothing_the_shipped_weights_are_forgotten(
    run: Runner, model: Path, samples: Path, tmp_path: Path
) -> None:
    out = tmp_path / "fresh.json"
    done = run("calibrate", "--samples", samples, "--model", model, "--fresh", "--out", out)
    assert done.status == 0, done.err
    made = Calibrator.read(out)
    assert made.kinds["fill"] != SHIPPED.kinds["fill"]
    # What there are no samples of stays as it was.
    assert made.kinds["edit"] == SHIPPED.kinds["edit"]
    # Whoever knows nothing says even odds.
    assert re.search(r"before +\S+ +0\.5000 +0\.6931", done.out)


def test_too_few_are_refused_with_what_is_needed(run: Runner, model: Path, tmp_path: Path, home: Path) -> None:
    few = write(tmp_path / "few.jsonl", *drawn(3, seed=2), *(made_sample(9 + n, "rejected") for n in range(5)))
    done = run("calibrate", "--samples", few, "--model", model)
    assert done.status == 1
    assert "the filter stays as it is" in done.err
    assert re.search(r"A fit needs \d+ more accepted suggestions", " ".join(done.err.split()))
    assert re.search(r"A fit needs \d+ more accepted suggestions, \d+ more", " ".join(done.out.split()))
    assert files(home / ".state") == []


@pytest.fixture
def outcome_log(tmp_path: Path) -> Path:
    return tmp_path / "outcomes.jsonl"


def say(outcome_log: Path, number: int, *outcomes: str, days_ago: float = 0.0, **changes: Any) -> None:
    log = OutcomeLog(outcome_log, session="5e55", wall=partial(_days_ago, days_ago))
    given = {"length": 10, "maker": "canvas", "signals": OutcomeSignals(characters_inserted=10), **changes}
    for each in outcomes:
        log.record(outcome(f"{number:04x}", each, accepted_length=10 * (each == "accepted"), **given))
    log.close()


@pytest.fixture
def used(outcome_log: Path) -> Path:
    """A log of some use: three languages, two makers, two days."""
    for number in range(4):
        say(outcome_log, number, "shown", "accepted")
    say(outcome_log, 10, "shown", "rejected", language_id="go")
    say(outcome_log, 11, "shown", "ignored", reason="typed_out", language_id="go", kind="edit", maker="rename")
    for number in range(20, 26):
        say(outcome_log, number, "withheld", probability=0.2, reason="low_confidence", days_ago=3.0)
    say(outcome_log, 20, "typed", probability=0.2, reason="low_confidence", days_ago=3.0)
    say(outcome_log, 30, "withheld", probability=0.9, reason="unbalanced", language_id="rust")
    return outcome_log


Document = Callable[..., dict[str, Any]]


@pytest.fixture
def document(run: Runner, used: Path) -> Document:
    """The figures of that use."""

    def figures(*words: object) -> dict[str, Any]:
        out = used.with_suffix(".figures.json")
        done = run("stats", "--log", used, "--json", out, *words)
        assert done.status == 0
        return {"said": done.err, **json.loads(out.read_text())}

    return figures


def test_it_prints_what_became_of_suggestions(run: Runner, used: Path) -> None:
    said = " ".join(run("stats", "--log", used).out.split())
    assert said.startswith(
        "So far you saw 6 suggestions and accepted 4 (67%), which saved 40 characters. "
        "Calomel hid 7 more, of which you then typed 1 by hand."
    )
    out = run("stats", "--log", used, "--details").out.partition("\n\n")[2]
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert rows["shown"] == ["6"]
    assert re.search(r"^ +accepted +4 +67 \[", out, re.MULTILINE)
    assert rows["python"][:2] == ["4", "4"]
    assert rows["low_confidence"][0] == "6"
    assert re.search(r"^ +dismissed +1 +17 \[", out, re.MULTILINE)
    for word in ("By language", "By source", "By kind", "By day", "Why suggestions were hidden", "rename", "rust"):
        assert word in out
    assert not {"maker", "taken", "rejected", "withheld"} & set(re.findall(r"[a-z]+", out))


def test_json_has_every_figure_of_the_last_days_with_its_bounds(document: Document) -> None:
    found = document()
    total = found["total"]
    assert (total["shown"], total["accepted"], total["rejected"], total["typed"]) == (6, 4, 1, 1)
    assert (total["withheld"], total["withheld_typed"], total["saved"]) == (7, 1, 40)
    assert total["acceptance_rate_low"] < total["acceptance_rate"] == 4 / 6 < total["acceptance_rate_high"]
    assert found["withheld"]["low_confidence"]["times"] == 6
    assert sorted(found["languages"]) == ["go", "python", "rust"]
    assert sorted(found["makers"]) == ["canvas", "rename"]
    assert sorted(found["kinds"]) == ["edit", "fill"]
    assert len(found["days"]) == 2
    assert [document("--since", days)["total"]["withheld"] for days in (2, 4)] == [1, 7]


def test_damaged_lines_are_counted_and_left_out(used: Path, document: Document) -> None:
    with used.open("ab") as log:
        log.write(b'{"time": 1, "id"\n\xff\xfe\n')
    found = document()
    assert found["bad_lines"] == 2
    assert "2 damaged lines do not count." in found["said"]


@pytest.mark.parametrize(
    ("make", "words", "expected"),
    [
        (Path.touch, (), "No entries in"),
        (
            lambda path: say(path, 1, "shown", days_ago=9.0),
            ("--since", 2),
            "No entries in the last 2 days.",
        ),
        (lambda path: path.write_text("[]\n"), (), "has no readable line"),
    ],
)
def test_a_log_without_anything_is_said_in_a_sentence(
    run: Runner, outcome_log: Path, make: Callable[[Path], object], words: tuple[object, ...], expected: str
) -> None:
    make(outcome_log)
    done = run("stats", "--log", outcome_log, *words)
    assert done.status == 0
    assert expected in " ".join(done.out.split())


def test_without_a_log_of_ones_own_it_says_where_one_comes_from(run: Runner) -> None:
    done = run("stats")
    assert (done.status, "calomel lsp" in done.out) == (0, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"time": 1e300},
        {"time": -1},
        {"time": float("nan")},
        {"probability": float("inf")},
        {"length": 10**300},
        {"signals": {"log_prob": float("nan")}, "accepted_length": 1},
    ],
    ids=repr,
)
def test_a_number_that_nothing_was_ever_at_is_a_damaged_line(
    used: Path, document: Document, changes: dict[str, Any]
) -> None:
    line = {"time": 1e9, "id": "a", "outcome": "shown", **changes}
    with used.open("a") as log:
        log.write(json.dumps(line) + "\n")
    found = document()
    assert (found["bad_lines"], found["total"]["shown"]) == (1, 6)
