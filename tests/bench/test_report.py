"""What benches share: pages of results, journals, other load on the machine, intervals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from calomel.report.result import Interval, Provenance, Report, Table, percentile, ratio_of_sums, weights_hash, wilson
from calomel.report.running import Journal

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


def test_the_page_shows_command_commit_machine_and_tables() -> None:
    assert "**Another load was on the machine" in report(loaded=True).to_markdown()
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


def test_weights_are_told_apart_by_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"one")
    (tmp_path / "config.json").write_text("{}")
    first = weights_hash(tmp_path)
    (tmp_path / "MODEL_CARD.md").write_text("words")
    assert weights_hash(tmp_path) == first
    (tmp_path / "model.safetensors").write_bytes(b"two")
    assert weights_hash(tmp_path) != first


@dataclass(frozen=True)
class Record:
    text: str


def test_a_second_run_finds_the_whole_records_of_the_first(tmp_path: Path) -> None:
    first = Journal("infill", {"weights": "a"}, folder=tmp_path)
    first.put("whole", Record("x"))
    with first.path.open("a") as file:
        file.write('{"key": "cut", "rec')
    second = Journal("infill", {"weights": "a"}, folder=tmp_path)
    assert (second.get("whole", Record), second.resumed) == (Record("x"), 1)
    second.put("next", Record("y"))
    third = Journal("infill", {"weights": "a"}, folder=tmp_path)
    assert [third.get(key, Record) for key in ("whole", "cut", "next")] == [Record("x"), None, Record("y")]
    assert Journal("infill", {"weights": "b"}, folder=tmp_path).get("whole", Record) is None
    assert Journal("infill", {"weights": "a"}, resume=False, folder=tmp_path).get("whole", Record) is None


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        # Newcombe 1998, table I, method 3: 81 of 263.
        (wilson(81, 263), (0.3080, 0.2553, 0.3662)),
        (wilson(0, 10), (0.0, 0.0, 0.2775)),
        (wilson(10, 10), (1.0, 0.7225, 1.0)),
        # Of the sums, not the mean of ratios.
        (ratio_of_sums([1.0, 9.0], [1.0, 1.0]), (5.0, 1.0, 9.0)),
    ],
)
def test_intervals_are_those_of_the_books(interval: Interval | None, expected: tuple[float, float, float]) -> None:
    assert interval is not None
    assert (interval.value, interval.low, interval.high) == pytest.approx(expected, abs=5e-5)
    assert percentile([1.0, 2.0, 3.0, 4.0], 50) == 2.5
    assert ratio_of_sums([1.0], [0.0]) is None
