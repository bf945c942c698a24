from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from calomel.selectivity.calibrator import features
from calomel.selectivity.fit import usable
from calomel.selectivity.sample import Sample
from calomel.suggest.outcome_history import outcome_samples
from calomel.suggest.outcome_log import OutcomeRecord

DAY = 86_400.0
SIGNALS = {"mean_log_prob": -0.3, "tokens": 4, "characters_inserted": 12}


def lines(number: int, *outcomes: str, **changes: Any) -> list[OutcomeRecord]:
    """What a log has of one suggestion; its numbers stand in the first line."""
    values: dict[str, Any] = {
        "session": "5e55", "kind": "fill", "language": "python", "trigger": "edit", "model": "nano", "maker": "seeded",
        "probability": 0.4, "length": 12, "signals": SIGNALS,
    }  # fmt: skip
    values |= changes
    signals = values.pop("signals")
    return [
        OutcomeRecord(
            values.pop("time", 10.0 * DAY) + at,
            f"{number:x}",
            outcome,
            **{**values, "signals": {} if at else signals},
            accepted_length=12 if outcome == "accepted" else 0,
        )
        for at, outcome in enumerate(outcomes)
    ]


def only(records: Iterable[OutcomeRecord]) -> Sample:
    (found,) = outcome_samples(records)
    return found


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (("shown", "accepted"), "accepted"),
        (("shown", "partly_accepted"), "partly"),
        (("shown", "partly_accepted", "accepted"), "accepted"),
        (("shown", "rejected"), "rejected"),
        (("shown", "ignored"), "rejected"),
        (("shown", "ignored", "accepted"), "accepted"),
        (("shown", "superseded"), "superseded"),
        (("shown",), "superseded"),
        (("withheld",), "rejected"),
        (("withheld", "typed"), "accepted"),
        (("withheld", "shown", "accepted"), "accepted"),
        (("withheld", "shown", "rejected"), "rejected"),
    ],
)
def test_the_last_word_about_a_suggestion_is_its_outcome(outcomes: tuple[str, ...], expected: str) -> None:
    found = only(lines(1, *outcomes, reason="low_confidence" if outcomes[0] == "withheld" else ""))
    assert found.outcome == expected
    assert found.shown == ("shown" in outcomes)
    assert found.filters == ()


def test_what_somebody_typed_out_by_hand_would_have_been_taken() -> None:
    assert only(lines(1, "shown", "ignored", reason="typed_out")).outcome == "accepted"
    assert only(lines(1, "shown", "ignored", reason="moved_away")).outcome == "rejected"


def test_a_sample_has_what_the_log_says_of_its_suggestion() -> None:
    found = only(lines(10, "shown", "accepted"))
    assert (found.question, found.kind, found.maker, found.language) == ("5e55/a", "fill", "seeded", "python")
    assert (found.signals, found.time, found.saved_characters) == (SIGNALS, 10.0 * DAY, 12)
    assert (found.text, found.wanted, found.request) == (None, None, None)
    assert features(found)["maker:seeded"] == 1.0


def test_what_a_filter_dropped_is_marked_and_not_fitted_to() -> None:
    records = [
        *lines(1, "withheld", reason="unbalanced"),
        *lines(2, "withheld", "typed", reason="repeats_above"),
        *lines(3, "withheld", reason="low_confidence"),
    ]
    found = outcome_samples(records)
    assert [each.filters for each in found] == [("unbalanced",), ("repeats_above",), ()]
    assert usable(found, "fill") == [found[2]]
    # Once it was shown, no filter dropped it.
    assert only([*lines(1, "withheld", reason="unbalanced"), *lines(1, "shown")]).filters == ()


def test_what_somebody_asked_for_by_hand_says_nothing_about_the_rest() -> None:
    records = [*lines(1, "shown", "accepted", trigger="explicit"), *lines(2, "shown", "rejected", trigger="cursor")]
    assert [each.outcome for each in outcome_samples(records)] == ["rejected"]


def test_only_suggestions_of_the_model_count() -> None:
    records = [*lines(1, "shown", "accepted", model="older"), *lines(2, "shown", "rejected")]
    assert [each.outcome for each in outcome_samples(records, "nano")] == ["rejected"]
    assert len(outcome_samples(records)) == 2
    assert outcome_samples(records, "other") == []


def test_without_numbers_there_is_nothing_to_learn() -> None:
    assert outcome_samples(lines(1, "shown", "accepted", signals={})) == []
    assert outcome_samples([]) == []


def test_one_day_is_one_group_and_windows_do_not_mix() -> None:
    records = [
        *lines(1, "shown", time=10 * DAY + 3600),
        *lines(1, "shown", time=10 * DAY + 80_000, session="other"),
        *lines(1, "shown", time=11 * DAY, session="third"),
    ]
    found = outcome_samples(records)
    assert [each.group for each in found] == ["1970-01-11", "1970-01-11", "1970-01-12"]
    assert len({each.question for each in found}) == 3


def test_an_outcome_of_a_later_version_changes_nothing() -> None:
    assert only(lines(1, "shown", "admired")).outcome == "superseded"
    assert only(lines(1, "shown", "admired", "accepted")).outcome == "accepted"


def test_acceptances_of_clients_that_tell_of_nothing_else_are_not_learnt_from() -> None:
    shown, accepted = lines(1, "shown", "accepted")

    assert only([shown, replace(accepted, reason="by_prompt")]).outcome == "superseded"
    assert only([shown, replace(accepted, reason="by_text")]).outcome == "accepted"
