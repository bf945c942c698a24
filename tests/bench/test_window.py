"""The bench of window mode runs, and its figures are what they are called."""

from __future__ import annotations

from calomel.bench.window import WindowBenchOptions, run_window


def test_both_ways_are_timed_on_the_same_holes() -> None:
    report = run_window(WindowBenchOptions(windows=(48,), steps=(3,), holes=1, threads=1))

    (table,) = report.tables
    assert [row[:3] for row in table.rows] == [
        ("low_confidence", "48", "3"),
        ("entropy", "48", "3"),
    ]
    assert all(float(report.flat[f"{row[0]}_48_{row[2]}_exact_ms"] or 0) > 0 for row in table.rows)
    assert all(0 <= float(report.flat[f"{row[0]}_48_{row[2]}_equal"] or 0) <= 1 for row in table.rows)
