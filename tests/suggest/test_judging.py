from __future__ import annotations

import math

import pytest
from tests.suggest.asked import asked, counting, flat, proposed

from calomel.selectivity.calibrator import Calibrator, KindCalibrator
from calomel.selectivity.proposal import Recent
from calomel.suggest.completer import Candidate, CompleteAnswer, ModelInfo
from calomel.suggest.edit import Planned, TextEdit, plan
from calomel.suggest.judging import Decision, Proposed, SuggestionFilter, shows
from calomel.suggest.question import Trigger
from calomel.suggest.signals import CandidateAgreement, OutcomeSignals, RecentActivity, agreement_of
from calomel.suggest.silence import SilenceReason

SURE, UNSURE = 3.0, -3.0
# Leaves a bracket open in mid-line.
UNBALANCED = "f(a]"


def judging(log_odds: float = SURE) -> SuggestionFilter:
    made = SuggestionFilter()
    made.calibrator = flat(log_odds)
    return made


def test_what_is_sure_enough_and_passes_every_filter_is_found() -> None:
    question = asked("x = |\n")
    found = judging().decide("fill", question, proposed(question, "compute(1)"))
    assert isinstance(found, Decision)
    assert found.reason is None
    assert found.probability == found.signals.likely == pytest.approx(1 / (1 + math.exp(-SURE)))
    assert (found.signals.distance, found.filters) == (0, ())
    assert found.signals.around is not None
    assert found.signals.around.before == "operator"
    assert found.seconds > 0


def test_what_is_not_sure_enough_is_held_back_with_its_probability() -> None:
    question = asked("x = |\n")
    held = judging(UNSURE).decide("fill", question, proposed(question, "compute(1)"))
    assert isinstance(held, Decision)
    assert held.reason is SilenceReason.LOW_CONFIDENCE
    assert held.probability == pytest.approx(1 / (1 + math.exp(-UNSURE)))
    assert held.edits[0].text == "compute(1)"


@pytest.mark.parametrize("log_odds", [SURE, UNSURE])
def test_the_reason_of_a_filter_goes_before_the_threshold(log_odds: float) -> None:
    question = asked("x = |\n")
    held = judging(log_odds).decide("fill", question, proposed(question, UNBALANCED))
    assert isinstance(held, Decision)
    assert held.reason is SilenceReason.UNBALANCED
    assert held.filters == ("unbalanced",)


def test_only_what_would_be_shown_is_parsed() -> None:
    errors, parsed = counting((0, 3))
    question = asked("x = | + 1\n", errors=errors)
    held = judging(UNSURE).decide("fill", question, proposed(question, "compute(1)"))
    assert isinstance(held, Decision)
    assert held.reason is SilenceReason.LOW_CONFIDENCE
    held = judging(SURE).decide("fill", question, proposed(question, UNBALANCED))
    assert isinstance(held, Decision)
    assert held.reason is SilenceReason.UNBALANCED
    assert parsed == []
    held = judging(SURE).decide("fill", question, proposed(question, "compute(1)"))
    assert isinstance(held, Decision)
    assert held.reason is SilenceReason.UNPARSABLE
    assert parsed == ["compute(1)"]


def test_what_makes_no_syntax_error_is_shown_and_so_is_what_nobody_can_parse() -> None:
    for answer in ((1, 1), (1, 0), None):
        errors, parsed = counting(answer)
        question = asked("x = | + 1\n", errors=errors)
        assert shows(judging().decide("fill", question, proposed(question, "compute(1)")))
        assert len(parsed) == 1


def test_several_edits_are_parsed_as_one() -> None:
    errors, parsed = counting((0, 0))
    question = asked("a = old\nb = 1\nc = old|, 2\n", errors=errors)
    edits = plan(question.text, [TextEdit(4, 7, "new"), TextEdit(18, 21, "new")])
    # A fill, for only those are parsed: an edit is one step of several.
    answer = judging().decide("fill", question, Proposed(Candidate("…", (-0.1,)), edits))
    assert isinstance(answer, Decision)
    assert answer.reason is None
    assert answer.signals.distance == 0
    assert parsed == ["new\nb = 1\nc = new"]


def test_whoever_watches_sees_everything_with_all_its_filters() -> None:
    seen: list[Decision] = []
    errors, parsed = counting((0, 3))
    question = asked("x = | + 1\n", errors=errors)
    watched = judging(UNSURE)
    watched.watch, watched.audit = seen.append, True
    watched.decide("fill", question, proposed(question, UNBALANCED))
    watched.decide("fill", question, proposed(question, "compute(1)"))
    watched.decide("fill", question, proposed(question, "   "))
    assert [each.reason for each in seen] == ["unbalanced", "unparsable", "whitespace_only"]
    assert [each.filters for each in seen][:2] == [
        ("unbalanced", "unparsable"),
        ("unparsable",),
    ]
    assert UNBALANCED in parsed


def test_nobody_follows_what_could_never_have_been_accepted() -> None:
    question = asked("x = |\n")
    assert judging().decide("fill", question, proposed(question, "  ")) is SilenceReason.WHITESPACE_ONLY
    assert judging().decide("fill", question, proposed(question, "")) is SilenceReason.NO_CHANGE
    # What it replaces does not stand there: the model saw a mask.
    elsewhere = Proposed(Candidate("x"), (Planned(0, 1, "y", "*"),))
    assert judging().decide("edit", question, elsewhere) is SilenceReason.SECRET


def test_a_secret_is_not_kept_even_for_the_record() -> None:
    question = asked("key = |\n", mask=lambda text: text.replace("hunter2", "*******"))
    assert judging().decide("fill", question, proposed(question, '"hunter2"')) is SilenceReason.SECRET


def test_whoever_asks_by_hand_sees_what_is_unsure_too() -> None:
    question = asked("x = |\n", Trigger.EXPLICIT)
    found = judging(-9.0).decide("fill", question, proposed(question, "compute(1)"))
    assert isinstance(found, Decision)
    assert found.reason is None
    assert found.probability < 0.01
    # But nothing that a filter drops.
    assert not shows(judging().decide("fill", question, proposed(question, UNBALANCED)))


def test_a_calibrator_says_what_the_names_of_thresholds_come_to() -> None:
    question = asked("x = |\n")
    strict = judging(0.0)
    assert shows(strict.decide("fill", question, proposed(question, "compute(1)")))
    strict.calibrator = Calibrator(flat(0.0).kinds, {"balanced": 0.6})
    assert not shows(strict.decide("fill", question, proposed(question, "compute(1)")))
    strict.aggressiveness = "eager"
    assert shows(strict.decide("fill", question, proposed(question, "compute(1)")))
    strict.by_language = {"python": 0.9}
    assert not shows(strict.decide("fill", question, proposed(question, "compute(1)")))
    strict.aggressiveness, strict.by_language = 0.9, {"go": "quiet", "*": 0.2}
    assert shows(strict.decide("fill", question, proposed(question, "compute(1)")))


def test_what_is_known_of_the_candidate_reaches_the_calibrator() -> None:
    question = asked("x = |\n", since_edit=4.0, decisions=(2, 5), place="code")
    made = judging()
    made.calibrator = Calibrator({"fill": KindCalibrator({"rivals": 5.0, "place:code": 1.0, "agreeing": -9.0}, -4.0)})
    unsure = made.decide("fill", question, proposed(question, "compute(1)"))
    sure = made.decide("fill", question, proposed(question, "compute(1)", agreement=CandidateAgreement(rivals=6)))
    assert isinstance(unsure, Decision)
    assert unsure.reason is not None
    assert isinstance(sure, Decision)
    assert sure.reason is None
    signals = sure.signals
    assert (signals.accepted, signals.rejected, signals.since_edit, signals.place) == (2, 5, 4.0, "code")


def test_a_calibrator_is_looked_for_once_for_each_model(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def found(info: ModelInfo) -> Calibrator:
        read.append(info.weights)
        return flat(0.0)

    monkeypatch.setattr("calomel.suggest.judging.calibrator_for", found)
    made = SuggestionFilter()
    for weights in ("a", "a", "b"):
        made.know(ModelInfo("m", weights, ("fill",), 2048, 1024, None, "1"))
    assert read == ["a", "b"]
    made.forget()
    made.know(ModelInfo("m", "b", ("fill",), 2048, 1024, None, "1"))
    assert read == ["a", "b", "b"]
    assert made.calibrator == flat(0.0)


def test_signals_are_rounded_as_the_log_rounds_them() -> None:
    known = OutcomeSignals(tokens=2, mean_log_prob=-1 / 3, min_log_prob=math.inf, finish_reason="stop").known()
    assert known["mean_log_prob"] == -0.333333
    assert (known["tokens"], known["finish_reason"]) == (2, "stop")
    assert {"min_log_prob", "max_entropy", "length_scores"}.isdisjoint(known)


def test_what_was_done_lately_is_known_beside_what_is_proposed() -> None:
    recent = (Recent(0, 3, "", "abc"), Recent(0, 2, "xyz", "ab"), Recent(1, 1, "q", ""))
    question = asked("x = |\n", recent=recent)
    answer = judging().decide("fill", question, proposed(question, "compute(1)"))
    assert isinstance(answer, Decision)
    assert answer.reason is None
    assert answer.signals.activity == RecentActivity(3, 1, 5, 4, 0, 1)


def test_the_other_candidates_agree_or_are_rivals_and_the_likeliest_of_these_is_the_margin() -> None:
    texts = (("a", -1.0), ("a", -2.0), ("b", -1.5), ("c", None), ("", -0.1), ("as it is", -0.2))
    answer = CompleteAnswer(tuple(Candidate(text, log_prob=each) for text, each in texts))
    first, same, rival, unjudged, *_ = answer.candidates
    assert agreement_of(first, answer, "as it is") == CandidateAgreement(1, 2, 0.5)
    assert agreement_of(same, answer, "as it is") == CandidateAgreement(1, 2, -0.5)
    assert agreement_of(rival, answer, "as it is") == CandidateAgreement(0, 3, -0.5)
    assert agreement_of(unjudged, answer, "as it is") == CandidateAgreement(0, 3, None)
    assert agreement_of(first, CompleteAnswer((first,))) == CandidateAgreement()
