from __future__ import annotations

from pathlib import Path

from calomel.bench.journal import Journal


def test_a_second_run_finds_the_records_of_the_first(tmp_path: Path) -> None:
    with Journal(tmp_path, "infill", {"weights": "a"}) as first:
        first.put("hole", {"text": "x"})
    with Journal(tmp_path, "infill", {"weights": "a"}) as second:
        assert (second.get("hole"), second.resumed) == ({"text": "x"}, 1)


def test_other_weights_have_another_journal(tmp_path: Path) -> None:
    with Journal(tmp_path, "infill", {"weights": "a"}) as first:
        first.put("hole", {"text": "x"})
    with Journal(tmp_path, "infill", {"weights": "b"}) as second:
        assert second.get("hole") is None


def test_without_resume_a_run_starts_empty(tmp_path: Path) -> None:
    with Journal(tmp_path, "infill", {}) as first:
        first.put("hole", {"text": "x"})
    with Journal(tmp_path, "infill", {}, resume=False) as second:
        assert second.get("hole") is None


def test_a_line_cut_off_by_an_interruption_is_dropped(tmp_path: Path) -> None:
    with Journal(tmp_path, "infill", {}) as first:
        first.put("whole", {"text": "x"})
        path = first.path
    with path.open("a") as file:
        file.write('{"key": "cut", "rec')
    with Journal(tmp_path, "infill", {}) as second:
        second.put("next", {"text": "y"})
    with Journal(tmp_path, "infill", {}) as third:
        found = [third.get(key) for key in ("whole", "cut", "next")]
    assert found == [{"text": "x"}, None, {"text": "y"}]
