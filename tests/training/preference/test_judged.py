from __future__ import annotations

from dataclasses import replace

import pytest

from calomel.prompts.parts import EditRegion, PromptParts
from calomel.training.preference.judged import Enough, Judged, Lessons, preferences_of
from calomel.training.preference.preference import AlignmentError

HOLE = PromptParts(prefix="total = ", suffix="\n")
REGION = PromptParts(prefix="a\n", region=EditRegion("b = 1\n", 0))
TAKEN = Judged(HOLE, "fill", "sum(values)", "accepted", group="g", max_context=512)
LESSONS = Lessons(silence=0.5, wanted=0.25, unsilence=0.125, partly=0.5)


def taught(*judged: Judged, lessons: Lessons = LESSONS) -> list[tuple[str, bool, float]]:
    return [(each.answer, each.desirable, each.weight) for each in preferences_of(judged, lessons)]


def test_what_was_taken_is_desirable_and_silence_in_its_place_is_not() -> None:
    assert taught(TAKEN) == [("sum(values)", True, 1.0), ("", False, 0.125)]


def test_where_a_suggestion_was_rejected_silence_and_what_the_person_wrote_are_desirable() -> None:
    rejected = Judged(REGION, "edit", "b = 2\n", "rejected", wanted="b = 3\n")
    assert taught(rejected) == [("b = 2\n", False, 1.0), ("b = 1\n", True, 0.5), ("b = 3\n", True, 0.25)]


@pytest.mark.parametrize("wanted", [None, "", "zero"])
def test_writing_nothing_or_the_same_is_no_further_lesson(wanted: str | None) -> None:
    rejected = replace(TAKEN, answer="zero", fate="rejected", wanted=wanted)
    assert [answer for answer, _, _ in taught(rejected)] == ["zero", ""]


def test_silence_is_wrong_where_one_of_several_suggestions_was_right() -> None:
    rejected = replace(TAKEN, answer="None", fate="rejected", wanted="sum(values)")
    assert taught(rejected, TAKEN) == [("None", False, 1.0), ("sum(values)", True, 1.0), ("", False, 0.125)]


def test_a_part_that_was_taken_counts_less() -> None:
    assert taught(replace(TAKEN, fate="partly")) == [("sum(values)", True, 0.5), ("", False, 0.0625)]


def test_who_only_did_nothing_counts_less() -> None:
    ignored = replace(TAKEN, fate="rejected", certainty=0.5)
    assert taught(ignored) == [("sum(values)", False, 0.5), ("", True, 0.25)]


def test_lessons_without_a_weight_are_left_out() -> None:
    assert taught(TAKEN, lessons=Lessons(unsilence=0.0)) == [("sum(values)", True, 1.0)]


def test_a_suggestion_to_do_nothing_teaches_nothing() -> None:
    assert taught(Judged(REGION, "edit", "b = 1\n", "rejected")) == []


def test_the_question_goes_along() -> None:
    found = list(preferences_of([TAKEN], LESSONS))
    assert {(each.parts, each.kind, each.group, each.max_context) for each in found} == {(HOLE, "fill", "g", 512)}


def test_too_few_suggestions_are_refused_with_numbers() -> None:
    few = [TAKEN] * 30 + [replace(TAKEN, fate="rejected")] * 9
    with pytest.raises(AlignmentError, match="39 judged suggestions with text, 30 of them taken and 9 rejected; "):
        Enough(judged=30, each=10).check(few)
    Enough(judged=39, each=9).check(few)
