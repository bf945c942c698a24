from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.suite import write_suite

from calomel.bench.suite import Case, Reply, SuiteError, read_suite, score_case, score_suite, suite_score


@pytest.fixture
def cases(tmp_path: Path) -> dict[str, Case]:
    found, problems = read_suite(write_suite(tmp_path))
    assert problems == ()
    return {case.name: case for case in found}


def test_a_scenario_without_an_expected_text_counts_once_for_each_position(cases: dict[str, Case]) -> None:
    assert list(cases) == ["01-rename", "02-quiet@L1", "02-quiet@L2", "03-blank-end"]


def test_the_expected_text_is_right_and_scores_100(cases: dict[str, Case]) -> None:
    row = score_case(cases["01-rename"], Reply(cases["01-rename"].expected, latency_ms=3.0))
    assert (row.shown, row.right, row.latency_ms) == (True, True, 3.0)
    assert row.delta_chrf == pytest.approx(100.0)


def test_silence_where_an_edit_is_expected_scores_0(cases: dict[str, Case]) -> None:
    row = score_case(cases["01-rename"], Reply(None, "low_confidence"))
    assert (row.shown, row.right, row.delta_chrf, row.reason) == (False, False, 0.0, "low_confidence")


def test_an_answer_that_changes_nothing_is_silence(cases: dict[str, Case]) -> None:
    quiet = cases["02-quiet@L1"]
    assert score_case(quiet, Reply(quiet.text)).right
    assert score_case(quiet, Reply(quiet.text + "\n")).right
    assert not score_case(quiet, Reply(quiet.text + "x")).right


def test_an_empty_line_at_the_end_of_the_expected_text_counts_as_published_and_not_when_trimmed(
    cases: dict[str, Case],
) -> None:
    case = cases["03-blank-end"]
    row = score_case(case, Reply('name = "anna"\n'))
    assert row.right
    # Published: "name = \"anna\"" against the same with a line feed. 1-grams P 13/13, R 13/14; 2: 12/12, 12/13; ...
    f_scores = [5 * (n / (n + 1)) / (4 + n / (n + 1)) for n in range(13, 7, -1)]
    assert row.delta_chrf == pytest.approx(100 * sum(f_scores) / 6)
    assert row.delta_chrf_trimmed == pytest.approx(100.0)


def test_the_score_is_quality_times_the_harmonic_mean_of_the_rates(cases: dict[str, Case]) -> None:
    rename = cases["01-rename"]
    rows = [
        score_case(rename, Reply(rename.expected)),
        score_case(rename, Reply(None)),
        score_case(cases["02-quiet@L1"], Reply(None)),
        score_case(cases["02-quiet@L2"], Reply("x")),
    ]
    whole = score_suite(rows)
    assert (whole["show_rate"], whole["quiet_rate"], whole["exact_match"]) == (0.5, 0.5, 0.5)
    assert whole["delta_chrf"] == pytest.approx(50.0)
    assert whole["score"] == pytest.approx(0.5 * 0.5)


def test_published_scores_follow_from_their_own_parts() -> None:
    # The published row of the reference product: deltaChrF 64.394, show 1, quiet 21/26 gives 0.57544.
    assert suite_score(64.39430581667246, 1.0, 21 / 26) == pytest.approx(0.57543847751069)


def test_always_silent_scores_0_and_one_kind_of_cases_alone_has_no_score(cases: dict[str, Case]) -> None:
    silent = [score_case(case, Reply(None)) for case in cases.values()]
    assert score_suite(silent)["score"] == 0.0
    assert score_suite(silent[:1])["score"] is None
    assert score_suite([])["delta_chrf"] is None


def test_a_folder_without_scenarios_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"has no \*\.txtar file"):
        read_suite(tmp_path)
