from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from calomel.report.result import (
    Provenance,
    Report,
    Table,
    describe_run,
    put_interval,
    source_hash,
    weights_hash,
)
from calomel.report.running import Progress
from calomel.report.stats import Interval

MACHINE = "Some CPU, 2 cores, 24 GiB, Linux x86_64, Python 3.11.7"
PROVENANCE = Provenance("calomel bench infill", "abc", True, "2026-01-02", MACHINE, "Some CPU", 2)


def report(*, loaded: bool = False) -> Report:
    table = Table("Rows", ("row", "n"), (("a|b", "3"),))
    return Report(
        "bench infill",
        {"loaded": loaded, "rest_of_line.exact_match": 0.5},
        (table,),
        ("A note.",),
        provenance=PROVENANCE,
    )


def test_json_is_flat_and_carries_the_provenance() -> None:
    assert json.loads(report().to_json()) == {
        "bench": "bench infill",
        "command": "calomel bench infill",
        "commit": "abc",
        "dirty": True,
        "date": "2026-01-02",
        "machine": "Some CPU, 2 cores, 24 GiB, Linux x86_64, Python 3.11.7",
        "cpu": "Some CPU",
        "cores": 2,
        "loaded": False,
        "rest_of_line.exact_match": 0.5,
    }


def test_the_page_shows_command_commit_machine_and_tables() -> None:
    assert report().to_markdown().splitlines() == [
        "# bench infill",
        "",
        "    calomel bench infill",
        "",
        "Commit `abc` with uncommitted changes, 2026-01-02, on Some CPU, 2 cores, 24 GiB, Linux x86_64, Python 3.11.7.",
        "",
        "### Rows",
        "",
        "| row | n |",
        "|---|---:|",
        "| a\\|b | 3 |",
        "",
        "* A note.",
    ]


def test_a_loaded_machine_is_said_in_bold() -> None:
    assert "**Another load was on the machine" in report(loaded=True).to_markdown()


def test_an_interval_becomes_four_keys() -> None:
    flat: dict[str, float | int | str | bool | None] = {}
    put_interval(flat, "a", Interval(0.5, 0.25, 0.75, 4))
    put_interval(flat, "b", None)
    assert flat == {
        "a": 0.5,
        "a_low": 0.25,
        "a_high": 0.75,
        "a_n": 4,
        "b": None,
        "b_low": None,
        "b_high": None,
        "b_n": 0,
    }


def test_the_machine_is_named_after_its_processor(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Fast One\nprocessor\t: 1\nmodel name\t: Fast One\n")
    made = describe_run(cpuinfo=cpuinfo)
    assert made.cpu == "Fast One"
    assert made.machine.startswith(f"Fast One, {made.cores} cores, ")


def test_a_run_is_dated_and_named_after_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/some/bin/calomel", "bench", "speed"])
    made = describe_run(datetime(2026, 1, 2, tzinfo=UTC))
    assert (made.command, made.date) == ("calomel bench speed", "2026-01-02")


def test_weights_are_told_apart_by_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"one")
    (tmp_path / "config.json").write_text("{}")
    first = weights_hash(tmp_path)
    (tmp_path / "MODEL_CARD.md").write_text("words")
    assert weights_hash(tmp_path) == first
    (tmp_path / "model.safetensors").write_bytes(b"two")
    assert weights_hash(tmp_path) != first


def test_sources_have_one_hash() -> None:
    assert source_hash() == source_hash()


def test_progress_is_said_every_five_seconds_and_at_the_end() -> None:
    times = iter([0.0, 0.0, 1.0, 6.0, 7.0, 8.0])
    stream = io.StringIO()
    progress = Progress(stream=stream, clock=lambda: next(times))
    progress.phase("answers", 4)
    for _ in range(4):
        progress.step()
    assert stream.getvalue().splitlines() == ["answers: 4 to do", "answers: 2/4, 0.3/s", "answers: 4/4, 0.5/s"]
