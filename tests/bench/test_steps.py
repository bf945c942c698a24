"""The bench of single steps runs, and its figures are what they are called."""

from __future__ import annotations

from calomel.bench.steps import StepsOptions, run_steps


def test_a_step_is_timed_by_whom_it_is_taken() -> None:
    report = run_steps(StepsOptions(contexts=(40,), rows=5, look=2, rounds=1))

    (table,) = report.tables
    assert [row[:2] for row in table.rows] == [("host", "40"), ("resident", "40")]
    assert report.flat["host_40_vs_host"] == 1.0
    assert all(float(report.flat[f"{name}_40_vs_floor"] or 0) > 0 for name in ("host", "resident"))
