from __future__ import annotations

import json
from pathlib import Path

from calomel.bench.overlap import GROUPS, OverlapOptions, run_overlap


def test_every_way_is_asked_for_the_same_holes(checkpoint: Path, heldout: Path, tmp_path: Path) -> None:
    options = OverlapOptions(
        model=checkpoint, threads=1, holes=4, heldout=heldout, json=tmp_path / "figures.json", results=tmp_path
    )
    report = run_overlap(options)

    flat = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert flat["n"] == 4
    for first, *others in GROUPS:
        assert first.overlap == 0
        key = f"{first.policy}@{first.max_steps}.{first.canvas}"
        assert flat[f"{key}.0.forwards_ratio"] == 1.0
        for way in others:
            assert flat[f"{key}.{way.overlap}.exact_n"] == 4
            assert flat[f"{key}.{way.overlap}.forwards_ratio"] > 0.0
    (table,) = report.tables
    assert [line[0] for line in table.rows] == [way.name for group in GROUPS for way in group]
    assert (tmp_path / "bench-overlap.md").is_file()
