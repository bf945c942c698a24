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
from tests.cli.conftest import Run
from tests.selectivity.made import TRUTH, drawn, sample

from calomel.selectivity.calibrator import CALIBRATOR_FILE, Calibrator, KindCalibrator
from calomel.selectivity.sample import Sample
from calomel.suggest.judging import calibrator_for, user_calibrator_path
from calomel.suggest.launch import describe
from calomel.suggest.offers import Outcome
from calomel.suggest.outcome_log import OutcomeLog, outcome_log_path
from calomel.suggest.signals import OutcomeSignals

Runner = Callable[..., Run]
SHIPPED = Calibrator(
    {"fill": TRUTH, "edit": KindCalibrator({"ratio": 1.0}, -1.0)}, {"quiet": 0.5, "balanced": 0.2, "eager": 0.1}
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's own files lie."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 2048, "kinds": ["fill", "edit"]}))
    SHIPPED.write(folder / CALIBRATOR_FILE)
    return folder


def written(path: Path, samples: Sequence[Sample]) -> Path:
    path.write_text("".join(each.to_line() for each in samples), encoding="utf-8")
    return path


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    return written(tmp_path / "samples.jsonl", drawn(150))


def log(path: Path, suggestions: Sequence[Sample], model: str = "my-model") -> None:
    """The outcomes of a person, a day for each group."""
    days = sorted({each.group for each in suggestions})
    for day, group in enumerate(days):
        made = OutcomeLog(path, session=f"{day:04x}", wall=partial(_days_ago, day + 1))
        for number, each in enumerate(suggestions):
            if each.group == group:
                whole = _outcome(number, each, model)
                made.record(whole)
                made.record(replace(whole, outcome="accepted" if each.accepted else "rejected"))
        made.close()


def _days_ago(days: int) -> float:
    return time.time() - days * 86_400.0


def _outcome(number: int, each: Sample, model: str) -> Outcome:
    signals: dict[str, Any] = {**each.signals}
    return Outcome(
        id=f"{number:04x}",
        outcome="shown",
        reason="",
        kind="fill",
        uri="file:///a.py",
        language_id=each.language,
        trigger="edit",
        model=model,
        probability=0.4,
        visible_seconds=1.0,
        length=10,
        accepted_length=0,
        text="x" * 10,
        signals=OutcomeSignals(**signals),
        maker=each.maker,
    )


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_samples_of_replays_make_a_calibrator_where_one_says(
    run: Runner, model: Path, samples: Path, tmp_path: Path, state: Path
) -> None:
    out = tmp_path / "made.json"
    done = run("calibrate", "--samples", samples, "--model", model, "--out", out)
    assert done.status == 0, done.err
    made = Calibrator.read(out)
    assert made.model == ""
    assert made.kinds["fill"].report["samples"] == 150
    assert made.kinds["edit"] == SHIPPED.kinds["edit"]
    assert made.thresholds["quiet"] >= made.thresholds["balanced"] >= made.thresholds["eager"] > 0
    assert files(state) == []
    assert "fill: 150 suggestions of 10 days or packages" in done.out
    assert "edit: not fitted." in done.out
    assert re.search(r"before +0\.\d{4} +0\.\d{4} +0\.\d{4}", done.out)
    assert f"balanced: {made.thresholds['balanced']:.3f}" in done.out
    assert re.sub(r"\s", "", str(out)) in re.sub(r"\s", "", done.out)


def test_a_folder_gets_the_file_that_a_checkpoint_has(run: Runner, model: Path, samples: Path) -> None:
    assert run("calibrate", "--samples", samples, "--model", model, "--out", model).status == 0
    assert Calibrator.of_folder(model).kinds["fill"].report["samples"] == 150


def test_ones_own_log_makes_ones_own_calibrator_which_the_editor_then_uses(
    run: Runner, model: Path, state: Path
) -> None:
    path = outcome_log_path()
    assert path.is_relative_to(state)
    path.parent.mkdir(parents=True)
    log(path, drawn(120))
    log(path, drawn(40, seed=2), model="another-model")
    done = run("calibrate", "--model", model)
    assert done.status == 0, done.err
    assert "fill: 120 suggestions of 10 days" in done.out
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


def test_another_log_is_read_where_one_names_it(run: Runner, model: Path, tmp_path: Path) -> None:
    log(tmp_path / "other.jsonl", drawn(60, seed=3))
    done = run("calibrate", "--log", tmp_path / "other.jsonl", "--model", model, "--dry-run")
    assert done.status == 0, done.err
    assert "fill: 60 suggestions" in done.out


def test_a_dry_run_says_all_and_writes_nothing(run: Runner, model: Path, samples: Path, state: Path) -> None:
    before = (model / CALIBRATOR_FILE).read_bytes()
    done = run("calibrate", "--samples", samples, "--model", model, "--dry-run")
    assert done.status == 0, done.err
    assert "fill: 150 suggestions" in done.out
    assert "written" not in done.out
    assert files(state) == []
    assert (model / CALIBRATOR_FILE).read_bytes() == before


def test_from_nothing_the_shipped_weights_are_forgotten(
    run: Runner, model: Path, samples: Path, tmp_path: Path
) -> None:
    out = tmp_path / "fresh.json"
    done = run("calibrate", "--samples", samples, "--model", model, "--fresh", "--out", out)
    assert done.status == 0, done.err
    assert Calibrator.read(out).kinds.keys() == {"fill"}
    # Whoever knows nothing says even odds.
    assert re.search(r"before +\S+ +0\.5000 +0\.6931", done.out)


def test_the_smallest_threshold_with_a_promise_is_printed(run: Runner, model: Path, samples: Path) -> None:
    done = run("calibrate", "--samples", samples, "--model", model, "--wanted", "0.6", "--dry-run")
    assert done.status == 0, done.err
    said = " ".join(done.out.split())
    found = re.search(r"From (0\.\d\d) on, at least 60% get accepted, 90 % sure: (\d+) of (\d+)\.", said)
    assert found is not None
    assert int(found[2]) / int(found[3]) > 0.6
    assert f"suggest.aggressiveness = {found[1]}" in said


def test_a_promise_that_cannot_be_given_says_what_is_missing(run: Runner, model: Path, tmp_path: Path) -> None:
    few = written(tmp_path / "few.jsonl", drawn(60, seed=22))
    done = run("calibrate", "--samples", few, "--model", model, "--wanted", "0.99", "--dry-run")
    assert done.status == 0, done.err
    said = " ".join(done.out.split())
    assert "No threshold is proven to get 99% accepted:" in said
    assert re.search(r"none was given more than \d+%|of \d+ that were given 99% or more", said)


def test_too_few_of_each_kind_correct_the_shipped_calibrator_as_a_whole(
    run: Runner, model: Path, tmp_path: Path
) -> None:
    rule = KindCalibrator(TRUTH.weights, TRUTH.bias - 2)
    few = written(tmp_path / "few.jsonl", [*drawn(45, rule, seed=21), *drawn(10, rule, seed=4, kind="edit")])
    done = run("calibrate", "--samples", few, "--model", model)
    assert done.status == 0, done.err
    assert "scale and offset corrected together" in done.out
    assert done.out.count("not fitted") == 2
    own = Calibrator.read(user_calibrator_path(describe(model).weights))
    scales = {kind: fitted.report["scale"] for kind, fitted in own.kinds.items()}
    assert scales["fill"] == scales["edit"] == pytest.approx(own.kinds["edit"].weights["ratio"])


def test_too_few_are_refused_with_what_is_needed(run: Runner, model: Path, tmp_path: Path, state: Path) -> None:
    few = written(tmp_path / "few.jsonl", [*drawn(3, seed=2), *(sample(9 + n, "rejected") for n in range(5))])
    done = run("calibrate", "--samples", few, "--model", model)
    assert done.status == 1
    assert "stays in use" in done.err
    assert re.search(r"needed are \d+ more accepted ones", " ".join(done.err.split()))
    assert re.search(r"needed are \d+ more accepted ones, \d+ more", " ".join(done.out.split()))
    assert files(state) == []


def test_an_empty_log_is_refused_too(run: Runner, model: Path) -> None:
    done = run("calibrate", "--model", model)
    assert done.status == 1
    assert "0 suggestions" in " ".join(done.out.split())
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--samples", "{samples}", "--log", "{samples}"), "not both"),
        (("--log", "missing.jsonl"), "missing.jsonl does not exist"),
        (("--samples", "missing.jsonl"), "missing.jsonl"),
        (("--samples", "{torn}"), "torn.jsonl, line 2"),
        (("--samples", "{binary}"), "is no sample"),
        (("--samples", "{samples}", "--wanted", "2"), "--wanted"),
        (("--samples", "{samples}", "--model", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(
    run: Runner, model: Path, samples: Path, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    torn, binary = tmp_path / "torn.jsonl", tmp_path / "binary.jsonl"
    torn.write_text(sample().to_line() + "{\n")
    binary.write_bytes(b"\xff\xfe\n")
    places = {"samples": samples, "torn": torn, "binary": binary}
    done = run("calibrate", "--model", model, *(argument.format(**places) for argument in arguments))
    assert done.status == 2
    assert words in " ".join(done.err.split())
    assert "Traceback" not in done.err


def test_a_damaged_calibrator_of_the_model_is_named(run: Runner, model: Path, samples: Path) -> None:
    (model / CALIBRATOR_FILE).write_text("{}")
    done = run("calibrate", "--model", model, "--samples", samples)
    assert done.status == 2
    assert CALIBRATOR_FILE in done.err
    # From nothing it need not be read.
    assert run("calibrate", "--model", model, "--samples", samples, "--fresh", "--dry-run").status == 0


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e999", "-1", "1e15"])
def test_a_line_of_no_time_changes_nothing(run: Runner, model: Path, tmp_path: Path, number: str) -> None:
    path = tmp_path / "log.jsonl"
    log(path, drawn(120))
    first = path.read_text().splitlines()[0]
    before = run("calibrate", "--log", path, "--model", model, "--dry-run")
    with path.open("a") as lines:
        lines.write(re.sub(r'"time":[^,]*', f'"time":{number}', first) + "\n")
    after = run("calibrate", "--log", path, "--model", model, "--dry-run")
    assert (before.status, after.status, after.err) == (0, 0, "")
    assert after.out == before.out


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e999"])
def test_samples_of_no_time_are_refused_by_their_line(run: Runner, model: Path, samples: Path, number: str) -> None:
    lines = samples.read_text().splitlines()
    lines[2] = re.sub(r'"time":[^,}]*', f'"time":{number}', lines[2])
    samples.write_text("\n".join(lines))
    done = run("calibrate", "--samples", samples, "--model", model, "--dry-run")
    assert (done.status, done.out) == (2, "")
    assert f"{samples}, line 3" in done.err
