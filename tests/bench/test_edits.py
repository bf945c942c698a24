"""The bench of next edits over a small suite of scenarios, like the public one; its score and its baselines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.suggest.editor import ScriptedModel

from calomel.bench.edits import ask_all, ask_plain
from calomel.bench.room import repeat_last
from calomel.bench.suite import Case, Reply, SuiteError, figures, read_suite, score_above, score_case, suite_score
from calomel.infer.completer import Candidate, CompleteRequest, Kind
from calomel.prompts.parts import Edit, Hunk, edited


def scripted(kinds: tuple[Kind, ...] = ("fill", "edit"), sure: float = -0.01) -> ScriptedModel:
    """Knows the right edit of one scenario, and would leave every other text as it is."""

    def reply(request: CompleteRequest) -> tuple[Candidate, ...]:
        region = request.parts.region
        text = "" if region is None else region.text.replace("return total", "return amount")
        return (Candidate(text, log_probs=(sure,) * 4, finish_reason="stop"),)

    return ScriptedModel(reply, kinds)


async def test_the_right_edit_of_a_sure_model_is_shown_and_scored(cases: tuple[Case, ...]) -> None:
    model = scripted()
    rows = await ask_all(cases, model)
    assert [(row.name, row.shown, row.right) for row in rows] == [
        ("01-rename", True, True),
        ("02-quiet@L1", False, True),
        ("02-quiet@L2", False, True),
        ("03-blank", False, False),
    ]
    # The history reaches the model as an edit.
    (hunk,) = model.requests[0].parts.edits
    said = (hunk.path, hunk.before.strip(), hunk.after.strip())
    assert said == ("rename.py", "total = sum(prices)", "amount = sum(prices)")
    flat: Any = figures(rows, seed=1)
    for name in ("score", "delta_chrf", "show_rate", "quiet_rate", "exact_match"):
        assert flat[f"{name}_low"] <= flat[name] <= flat[f"{name}_high"], name
    unsure = await ask_all(cases[:1], scripted(sure=-5.0))
    assert [(row.shown, row.reason) for row in unsure] == [(False, "low_confidence")]


async def test_a_model_that_does_not_know_edits_is_silent_for_that_reason(cases: tuple[Case, ...]) -> None:
    rows = await ask_all(cases, scripted(("fill",)))
    assert {row.reason for row in rows} == {"not_trained_for_edits"}
    flat = figures(rows, seed=0)
    assert (flat["score"], flat["show_rate"], flat["quiet_rate"], flat["exact_match"]) == (0.0, 0.0, 1.0, 0.0)
    assert flat["quiet_rate_low"] == pytest.approx(0.342, abs=1e-3)
    json.dumps(flat, allow_nan=False)


async def test_baselines_answer_the_same_cases(cases: tuple[Case, ...]) -> None:
    plain = ask_plain(cases, scripted())
    assert {name: [(row.shown, row.right) for row in rows] for name, rows in plain.items()} == {
        "repeat": [(True, True), (False, True), (False, True), (False, False)],
        "drafts": [(True, True), (False, True), (False, True), (False, False)],
    }
    rows = await ask_all(cases, scripted(sure=-9.0))
    above: Any = score_above(rows, plain["repeat"], "repeat", seed=0)
    assert above["score_over_repeat_low"] <= above["score_over_repeat"] <= above["score_over_repeat_high"]
    assert above["score_over_repeat"] < 0
    assert set(score_above(rows, rows, "itself", seed=0).values()) == {0.0}


def test_an_empty_line_at_the_end_of_the_expected_text_counts_as_published_and_not_when_trimmed(
    by_name: dict[str, Case],
) -> None:
    case = by_name["03-blank"]
    row = score_case(case, Reply('name = "anna"\n'))
    assert row.right
    # Published: "name = \"anna\"" against the same with a line feed. 1-grams P 13/13, R 13/14; 2: 12/12, 12/13; ...
    f_scores = [5 * (n / (n + 1)) / (4 + n / (n + 1)) for n in range(13, 7, -1)]
    assert row.delta_chrf == pytest.approx(100 * sum(f_scores) / 6)
    assert row.delta_chrf_trimmed == pytest.approx(100.0)


def test_published_scores_follow_from_their_own_parts() -> None:
    # The published row of the reference product: deltaChrF 64.394, show 1, quiet 21/26 gives 0.57544.
    assert suite_score(64.39430581667246, 1.0, 21 / 26) == pytest.approx(0.57543847751069)


def made(before: str, after: str, line: int = 0) -> Hunk:
    return Hunk("a.py", line, before, after)


@pytest.fixture
def cases(tmp_path: Path) -> tuple[Case, ...]:
    with pytest.raises(SuiteError, match=r"has no \*\.txtar file"):
        read_suite(tmp_path)
    for number, (name, text) in enumerate(SUITE.items(), 1):
        (tmp_path / f"0{number}-{name}.txtar").write_text(text + "-- steps --\nrequest-completion manual\n")
    (tmp_path / "peer-baseline-3.json").write_text('{"other": {"score": 0.5}}')
    found, problems = read_suite(tmp_path)
    assert problems == ()
    return found


@pytest.fixture
def by_name(cases: tuple[Case, ...]) -> dict[str, Case]:
    return {case.name: case for case in cases}


def test_an_answer_is_scored_by_the_expected_text(by_name: dict[str, Case]) -> None:
    rename, quiet = by_name["01-rename"], by_name["02-quiet@L1"]
    row = score_case(rename, Reply(rename.expected, latency_ms=3.0))
    assert (row.shown, row.right, row.latency_ms) == (True, True, 3.0)
    assert row.delta_chrf == pytest.approx(100.0)
    row = score_case(rename, Reply(None, "low_confidence"))
    assert (row.shown, row.right, row.delta_chrf, row.reason) == (False, False, 0.0, "low_confidence")
    # An answer that changes nothing is silence.
    said = [score_case(quiet, Reply(quiet.text + more)).right for more in ("", "\n", "x")]
    assert said == [True, True, False]


def test_the_last_edit_is_repeated_at_the_next_place_where_it_was_not_done() -> None:
    text, last = "total_sum = total\namount = 1\nprint(total)\n", [made("total = 1\n", "amount = 1\n", 1)]
    edit = repeat_last(text, last, cursor=24)
    assert edit is not None
    assert edited(text, [edit]) == "total_sum = total\namount = 1\nprint(amount)\n"
    # Behind the last place it begins anew.
    text = "print(total)\namount = 1\n"
    assert repeat_last(text, last, cursor=len(text)) == Edit(6, 11, "amount")
    wrapped = [made("x = name\n", "x = (name)\n")]
    assert repeat_last("x = (name)\ny = name\n", wrapped, cursor=9) == Edit(15, 19, "(name)")
    assert repeat_last("x = (name)\ny = (name)\n", wrapped, cursor=9) is None
    assert repeat_last("f(a, b)\nf(a)\n", [made("f(a)\n", "f(a, b)\n")], cursor=7) is None
    assert repeat_last("a = 1\n", [], 0) is repeat_last("b = 1\n", [made("a = 1\n", "b = 1\n")], 0) is None


HEAD = "id: {0}\nlanguage: python\nfile: {0}.py\nrow: {1}\ncol: {2}\n"
BILL = "def bill(prices):\n    amount = sum(prices)\n    return total\n"
PAST = "-- history --\n<|file|> rename.py\n<|old|>\n    total = sum(prices)\n<|new|>\n    amount = sum(prices)\n"
SUITE = {
    "rename": f"{HEAD.format('rename', 2, 4)}-- buffer.txt --\n{BILL}{PAST}"
    f"-- expected --\n{BILL.replace('return total', 'return amount')}",
    "quiet": f"{HEAD.format('quiet', 1, 5)}cursor-positions: 2:12\n-- buffer.txt --\ndef f(x):\n    return x\n",
    # The file ends in an empty line, which belongs to nobody's edit.
    "blank": f'{HEAD.format("blank", 1, 12)}-- buffer.txt --\nname = "ann"\n-- expected --\nname = "anna"\n\n',
}
