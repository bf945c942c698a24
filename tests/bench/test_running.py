from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from calomel.report.running import Journal, LoadWatch, busy_seconds


def watch(clock: Iterator[float], busy: Iterator[float | None], own: Iterator[float]) -> LoadWatch:
    return LoadWatch(clock=lambda: next(clock), busy=lambda: next(busy), own=lambda: next(own), loadavg=lambda: 1.5)


def test_own_work_is_no_load() -> None:
    quiet = watch(iter([0.0, 10.0]), iter([100.0, 115.0]), iter([5.0, 20.0]))
    assert quiet.others() == 0.0


def test_the_work_of_others_is_told_in_cores() -> None:
    busy = watch(iter([0.0, 10.0]), iter([100.0, 130.0]), iter([5.0, 20.0]))
    assert busy.others() == 1.5


def test_without_proc_the_load_average_stands_in() -> None:
    blind = watch(iter([0.0, 10.0]), iter([None, None]), iter([0.0, 10.0]))
    assert blind.others() == 0.5


@pytest.mark.parametrize(("busy", "loaded"), [(100.0, False), (101.0, False), (109.0, True)])
def test_a_run_is_marked_by_its_mean(busy: float, loaded: bool) -> None:  # noqa: FBT001 - a parameter
    seen = watch(iter([0.0, 10.0]), iter([100.0, busy]), iter([0.0, 0.0]))
    assert seen.keys() == {"loaded": loaded, "load_other_cores": pytest.approx((busy - 100.0) / 10)}


def test_busy_seconds_leave_out_idle_and_waiting(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 200 300 40000 50000 600 700 800 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    assert busy_seconds(stat) == pytest.approx(27.0)  # 2,700 ticks of a hundredth of a second
    assert busy_seconds(tmp_path / "absent") is None


@dataclass(frozen=True)
class Record:
    text: str


def test_a_second_run_finds_the_records_of_the_first(tmp_path: Path) -> None:
    first = Journal("infill", {"weights": "a"}, folder=tmp_path)
    first.put("hole", Record("x"))
    second = Journal("infill", {"weights": "a"}, folder=tmp_path)
    assert (second.get("hole", Record), second.resumed) == (Record("x"), 1)


def test_other_weights_have_another_journal(tmp_path: Path) -> None:
    first = Journal("infill", {"weights": "a"}, folder=tmp_path)
    first.put("hole", Record("x"))
    second = Journal("infill", {"weights": "b"}, folder=tmp_path)
    assert second.get("hole", Record) is None


def test_without_resume_a_run_starts_empty(tmp_path: Path) -> None:
    first = Journal("infill", {}, folder=tmp_path)
    first.put("hole", Record("x"))
    second = Journal("infill", {}, resume=False, folder=tmp_path)
    assert second.get("hole", Record) is None


def test_a_line_cut_off_by_an_interruption_is_dropped(tmp_path: Path) -> None:
    first = Journal("infill", {}, folder=tmp_path)
    first.put("whole", Record("x"))
    path = first.path
    with path.open("a") as file:
        file.write('{"key": "cut", "rec')
    second = Journal("infill", {}, folder=tmp_path)
    second.put("next", Record("y"))
    third = Journal("infill", {}, folder=tmp_path)
    found = [third.get(key, Record) for key in ("whole", "cut", "next")]
    assert found == [Record("x"), None, Record("y")]
