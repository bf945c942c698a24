from __future__ import annotations

import math
from typing import Any

import pytest

from calomel.suggest.outcome_history import Story, stories
from calomel.suggest.outcome_log import OutcomeRecord


def line(outcome: str, **changes: Any) -> OutcomeRecord:
    values: dict[str, Any] = {"time": 1.0, "id": "a", "session": "s", "language": "go", "probability": 0.2}
    return OutcomeRecord(outcome=outcome, **(values | changes))


def only(*lines: OutcomeRecord) -> Story:
    (story,) = stories(lines)
    return story


@pytest.mark.parametrize(
    ("lines", "shown", "fate"),
    [
        (["shown"], True, "open"),
        (["shown", "accepted"], True, "accepted"),
        (["shown", "ignored", "accepted"], True, "accepted"),
        (["shown", "partly_accepted", "ignored"], True, "partly_accepted"),
        (["shown", "partly_accepted", "rejected"], True, "rejected"),
        (["shown", "ignored", "superseded"], True, "ignored"),
        (["accepted"], True, "accepted"),
        (["withheld"], False, "withheld"),
        (["withheld", "typed"], False, "typed"),
        (["typed"], False, "typed"),
        (["withheld", "shown"], True, "open"),
        (["withheld", "shown", "accepted"], True, "accepted"),
    ],
)
def test_the_last_word_about_a_suggestion_counts(lines: list[str], *, shown: bool, fate: str) -> None:
    story = only(*(line(each) for each in lines))
    assert (story.shown, story.fate) == (shown, fate)


def test_what_was_shown_and_written_by_hand_was_wanted() -> None:
    typed = only(line("shown"), line("ignored", reason="typed_out"))
    assert (typed.fate, typed.wanted) == ("typed", True)
    assert not only(line("shown"), line("ignored", reason="typed_against")).wanted


def test_what_is_shown_after_all_has_no_reason_and_its_higher_probability() -> None:
    story = only(line("withheld", reason="low_confidence"), line("shown", probability=0.35))
    assert (story.reason, story.probability) == ("", 0.35)
    assert only(line("withheld", reason="unbalanced"), line("typed", reason="unbalanced")).reason == "unbalanced"


def test_only_new_characters_are_saved() -> None:
    taken = {"accepted_length": 40, "signals": {"characters_inserted": 7}}
    assert only(line("shown"), line("accepted", **taken)).saved == 7
    assert only(line("partly_accepted", accepted_length=3), line("partly_accepted", accepted_length=5)).saved == 5
    assert only(line("rejected", accepted_length=-1)).saved == 0


def test_two_windows_may_use_the_same_name() -> None:
    assert len(stories([line("shown"), line("shown", session="t")])) == 2


def test_what_a_later_version_says_is_left_out() -> None:
    assert stories([line("dreamt_of")]) == []


def test_a_number_that_is_none_gives_way() -> None:
    assert only(line("withheld", probability=math.nan), line("shown", probability=0.4)).probability == 0.4
    assert only(line("withheld", probability=0.4), line("shown", probability=math.nan)).probability == 0.4
