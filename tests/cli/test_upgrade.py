"""A home that the version before wrote still opens: nothing is lost, and what does nothing any more is named."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.conftest import Runner, configured, outcome

from calomel.cli import checks
from calomel.cli.checks import Pace
from calomel.infer.in_process import describe
from calomel.infer.runtime_file import default_path
from calomel.selectivity.calibrator import Calibrator, KindCalibrator, Subject
from calomel.selectivity.record import Records, Source
from calomel.suggest.judging import calibrator_for, records_path, user_calibrator_path
from calomel.suggest.outcome_log import OutcomeLog, outcome_log_path
from calomel.suggest.signals import OutcomeSignals

# Rules, and makers of the model's own proposals, that are gone.
GONE = ("by_name", "fields", "whole_lines", "imports", "extraction", "shape", "seeded", "verified")


@pytest.fixture(autouse=True)
def _older(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings, records, a fit, outcomes and the file of a server that runs."""
    monkeypatch.setenv("CALOMEL_PORT", "0")
    monkeypatch.setattr(checks, "measured", lambda _: Pace(0.3, 0.05, 2048))
    configured(home, "calomel/calomel.toml", '[backend]\nquantize = "int4"\n\n[suggest]\naggressiveness = "eager"\n')
    row = {"shown": 9.0, "accepted": 3.0, "shifts": {"bias": 0.25}, "worth": {"bias": 2.0}, "usual": {"bias": 1.0}}
    sources = {f"edit:rule:{maker}": {**row, "title": maker} for maker in GONE}
    records_path().parent.mkdir(parents=True, exist_ok=True)
    records_path().write_text(json.dumps({"format": 1, "sources": sources}))
    weights = {f"maker:{maker}": 0.5 for maker in GONE} | {f"{maker}*ratio": 0.1 for maker in GONE}
    report = {"makers": {maker: {"accepted": 1, "samples": 2} for maker in GONE}}
    fitted = KindCalibrator({"ratio": 1.0, **weights}, 0.5, frozenset({*GONE, "canvas"}), report=report)
    Calibrator({"edit": fitted}, describe(None).weights).write(user_calibrator_path(describe(None).weights))
    log = OutcomeLog(outcome_log_path(), wall=time.time)
    for number, maker in enumerate(GONE):
        shown = outcome(f"{number:04x}", kind="edit", maker=maker, signals=OutcomeSignals(tokens=3))
        log.record(shown)
        log.record(replace(shown, outcome="accepted"))
    log.close()
    text = outcome_log_path().read_text(encoding="utf-8")
    outcome_log_path().write_text(text.replace('"tokens":3', '"tokens":3,"length_scores":[[8,-0.5],[16,-0.75]]'))
    server = {
        "url": "http://127.0.0.1:9", "token": "t", "pid": os.getpid(), "started": 1, "model": None, "weights": "",
        "device": "cpu", "version": "0.0.9", "protocol": 1, "canvas_lengths": [8, 16, 32],
    }  # fmt: skip
    default_path().write_text(json.dumps(server))
    default_path().chmod(0o600)


def test_a_setting_that_does_nothing_any_more_is_named_with_what_is_left(run: Runner, home: Path) -> None:
    told = run("doctor").out
    assert "calomel.toml: backend.quantize: must be int8" in told
    assert "runtime file" in told
    assert run("config", "show").status == 0

    configured(home, "calomel/calomel.toml", '[serve]\nquantize = "int4"\n')
    refused = run("config", "show")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "serve.quantize: must be int8" in refused.err


def test_outcomes_of_makers_that_are_gone_are_counted(run: Runner, tmp_path: Path) -> None:
    assert run("stats", "--json", tmp_path / "stats.json").status == 0

    found = json.loads((tmp_path / "stats.json").read_text())
    assert sorted(found["makers"]) == sorted(GONE)


def test_records_of_makers_that_are_gone_stay_when_others_learn() -> None:
    records = Records(records_path())
    before = {title: record for title, _, record in records.rows()}
    records.learn(Source("rename", "rule", "rename"), Subject("edit", "rename"), (), 0.5, accepted=True)
    records.save()

    after = {title: record for title, _, record in Records(records_path()).rows()}
    assert {title: after[title] for title in GONE} == before
    assert after["rename"].accepted == 1


def test_a_fit_with_makers_that_are_gone_is_the_one_that_is_used() -> None:
    found = calibrator_for(describe(None))

    assert found.hopeless("edit") == {*GONE, "canvas"}
    assert found.kinds["edit"].weights["ratio"] == 1.0
