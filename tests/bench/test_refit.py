"""`calomel refit`, by its command line, with a tiny model's answers and with made ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from tests.bench.conftest import BILL, rename, write_stories
from tests.bench.test_selectivity import made as recall_samples
from tests.cli.conftest import Run, Runner
from tests.cli.conftest import run as run  # noqa: PLC0414 (a fixture)
from tests.selectivity.made import TRUTH, drawn

from calomel.bench import refit as bench_refit
from calomel.bench.held_summary import Row
from calomel.bench.recall_fit import RecallFit
from calomel.bench.recall_fit import fit as fit_of_gaps
from calomel.replay.events import ReplayLog
from calomel.replay.opportunity import LogResult, ReplayOptions
from calomel.report.heldout import HELDOUT, HeldoutFile
from calomel.selectivity.calibrator import CALIBRATOR_FILE, Calibrator, KindCalibrator
from calomel.selectivity.fit import fit, usable
from calomel.selectivity.sample import Sample, read_samples
from calomel.weights import nano_path


@pytest.fixture
def corpus(files: tuple[HeldoutFile, ...], tmp_path: Path) -> Path:
    (tmp_path / "corpus").mkdir()
    # Long enough for blocks of them to be written.
    longer = (replace(file, text=file.text * 3) for file in files[:2])
    write_stories(tmp_path / "corpus" / "train.jsonl.zst", *map(asdict, longer))
    return tmp_path / "corpus"


@pytest.fixture
def edits(tmp_path: Path) -> Path:
    """Renames in commits of many packages."""
    (tmp_path / "edits").mkdir()
    rows = [
        rename(BILL.replace("bill", f"bill{number}"), path=f"shop{number}/bill.py") | {"kind": "commit"}
        for number in range(6)
    ]
    write_stories(tmp_path / "edits" / "train-edits.jsonl.zst", *rows)
    return tmp_path / "edits"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refit(run: Runner, checkpoint: Path, corpus: Path, edits: Path, into: Path, minutes: float) -> Run:
    return run("refit", checkpoint, "--into", into, "--corpus", corpus, "--edits", edits, "--minutes", minutes)


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that answered well and often."""

    def replayed(logs: Sequence[ReplayLog], options: ReplayOptions, **_: object) -> list[LogResult]:
        assert options.model is not None
        assert not (options.model / CALIBRATOR_FILE).exists()
        assert (options.model / "recall.json").exists()
        (kind,) = options.kinds or ()
        return [LogResult(logs[0].name, "story", samples=drawn(300, kind=kind))]

    async def asked(*_: object, **__: object) -> list[Row]:
        return []

    gaps = recall_samples(400)
    monkeypatch.setattr(bench_refit, "fit_recall", lambda *_, **__: RecallFit(fit_of_gaps(gaps), tuple(gaps)))
    monkeypatch.setattr(bench_refit, "replay_logs", replayed)
    monkeypatch.setattr(bench_refit, "ask_moments", asked)


def better_fit(samples: Sequence[Sample], old: KindCalibrator) -> KindCalibrator:
    """From nothing, or from the old one without what was not asked and not finished."""
    fits = [fit(samples), fit(samples, replace(old, hopeless=frozenset(), floors={}))]
    return min(fits, key=lambda each: each.after.log_loss).calibrator


@pytest.mark.usefixtures("answered")
def test_everything_is_fitted_and_compared_and_the_checkpoint_stays_as_it_is(
    run: Runner, checkpoint: Path, corpus: Path, edits: Path, tmp_path: Path
) -> None:
    old = Calibrator({"fill": replace(TRUTH, thresholds={"quiet": 0.7, "balanced": 0.25, "eager": 0.1})})
    old.write(checkpoint / CALIBRATOR_FILE)
    before, new = contents(checkpoint), tmp_path / "new"
    done = refit(run, checkpoint, corpus, edits, new, 20)
    assert done.status == 0, done.err
    assert contents(checkpoint) == before
    assert {path.name for path in new.iterdir()} == {CALIBRATOR_FILE, "recall.json", "samples.jsonl"}
    made, shipped = Calibrator.of_folder(new), Calibrator.of_folder(nano_path())
    samples = list(read_samples([new / "samples.jsonl"]))
    for kind in ("fill", "edit"):
        assert made.kinds[kind] == better_fit(
            usable(samples, kind), (old if kind in old.kinds else shipped).kinds[kind]
        )
        report = made.kinds[kind].report
        assert re.search(rf"after +{report['auroc']:.4f} +{report['ece']:.4f}", done.out)
    for told in ("balanced, before +0.250", "own answers, after +400", "recalled texts, before +400"):
        assert re.search(told, done.out)
    # At most one in twenty is lost, as promised.
    kept = re.findall(r"balanced, after .* ([0-9.]+)%", done.out)
    assert len(kept) == 2
    assert min(map(float, kept)) >= 95.0


def test_it_ends_in_time_and_keeps_the_fits_it_could_not_replace(
    run: Runner, checkpoint: Path, corpus: Path, edits: Path, tmp_path: Path
) -> None:
    old = Calibrator({"fill": replace(Calibrator.of_folder(nano_path()).kinds["fill"], bias=1.5)})
    old.write(checkpoint / CALIBRATOR_FILE)
    done = refit(run, checkpoint, corpus, edits, tmp_path / "new", 0)
    assert done.status == 1
    assert "error: not fitted: recall, fill, edit\ntry: a higher --minutes" in done.err
    assert Calibrator.of_folder(tmp_path / "new") == old


def test_what_everything_is_measured_on_is_refused(
    run: Runner, checkpoint: Path, corpus: Path, edits: Path, tmp_path: Path
) -> None:
    held = HELDOUT.with_name("heldout-edits.jsonl.zst").read_bytes()
    (edits / "train-edits.jsonl.zst").write_bytes(held)
    done = refit(run, checkpoint, corpus, edits, tmp_path / "new", 1)
    assert done.status == 1
    assert "held-out stories; leave them out" in done.err
    assert not (tmp_path / "new").exists()


def test_what_is_not_there_is_named_with_the_command_that_makes_it(
    run: Runner, checkpoint: Path, corpus: Path, edits: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    done = refit(run, tmp_path, corpus, edits, new, 1)
    assert (done.status, f"{tmp_path} is not a checkpoint" in done.err) == (2, True)
    done = refit(run, checkpoint, corpus, corpus, new, 1)
    assert (done.status, "--edits: " in done.err, "calomel edits --repositories" in done.err) == (2, True, True)
    done = refit(run, checkpoint, edits, edits, new, 1)
    assert (done.status, "--corpus: " in done.err, "calomel corpus --repositories" in done.err) == (2, True, True)
    done = refit(run, checkpoint, corpus, edits, checkpoint, 1)
    assert (done.status, "--into is the checkpoint itself" in done.err) == (2, True)
    assert not new.exists()
