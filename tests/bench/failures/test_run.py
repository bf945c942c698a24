from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.bench.stories_made import line, rename, write_stories

from calomel.bench.failures.run import FailuresOptions, listed, run_failures


@pytest.mark.slow
def test_failures_are_listed_and_a_page_has_no_one_elses_text(checkpoint: Path, heldout: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    options = FailuresOptions(
        model=checkpoint,
        threads=1,
        holes_per_kind=4,
        edits=4,
        heldout=heldout,
        stories=write_stories(tmp_path / "s.zst", rename(), line()),
        cache=tmp_path,
        listing=tmp_path / "list.md",
        json=tmp_path / "f.json",
        results=results,
    )
    report = run_failures(options)
    assert report.flat["holes.right_n"] == 24
    assert report.flat["edits.right_n"] == 4
    assert report.flat["nats.between_words.n"]
    assert "The most valuable failures" in listed(report)
    assert options.listing is not None
    assert options.listing.read_text(encoding="utf-8").startswith("### The most valuable failures")
    assert len(json.loads((tmp_path / "f.json").read_text())["failures"]) > 4
    page = (results / "bench-failures.md").read_text(encoding="utf-8")
    assert "### Examples, of every kind in turn" in page
    assert "failures" not in json.loads((results / "bench-failures.json").read_text())
    # What was asked already is not asked again.
    again = run_failures(options)
    assert again.flat == report.flat


def test_holes_alone_can_be_asked(checkpoint: Path, heldout: Path, tmp_path: Path) -> None:
    options = FailuresOptions(
        model=checkpoint, threads=1, holes_per_kind=2, edits=0, heldout=heldout, cache=tmp_path, results=tmp_path
    )
    report = run_failures(options)
    assert (report.flat["holes.right_n"], report.flat["edits.right_n"]) == (12, 0)
    assert not any("next edits" in table.title for table in report.tables)
    assert "### Examples, of every kind in turn" in (tmp_path / "bench-failures.md").read_text(encoding="utf-8")
