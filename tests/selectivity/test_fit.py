"""Fits, and thresholds that keep their promises."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.selectivity.made import TRUTH, drawn, sample

from calomel.selectivity.calibrator import Calibrator, KindCalibrator, features
from calomel.selectivity.fit import (
    FEWEST_TOGETHER,
    TooFewError,
    corrected_together,
    fit,
    hopeless_makers,
    named_floors,
    named_thresholds,
    upper_bound,
    usable,
)
from calomel.selectivity.sample import Sample

# One penalty is enough where the choice is not the matter.
ONE = (1.0,)


def distance(one: KindCalibrator, other: KindCalibrator, samples: list[Sample]) -> float:
    """Mean difference of what two calibrators say."""
    return sum(abs(one.probability(each) - other.probability(each)) for each in samples) / len(samples)


def test_a_fit_finds_the_rule_that_outcomes_were_drawn_with() -> None:
    samples = drawn(800)
    made = fit(samples, penalties=(1.0, 10.0))
    assert distance(made.calibrator, TRUTH, drawn(300, seed=9)) < 0.07
    assert made.after.ece < 0.06 < made.before.ece
    assert made.after.auroc > 0.7 > made.before.auroc
    assert made.after.log_loss < made.before.log_loss == pytest.approx(math.log(2))
    assert made.calibrator.weights["maker:canvas"] > 0 > made.calibrator.weights["maker:template"]
    assert len(made.probabilities) == 800
    report = made.calibrator.report
    accepted = sum(each.accepted for each in samples)
    assert (report["samples"], report["groups"], report["accepted"]) == (800, 10, accepted)
    assert report["makers"]["template"]["samples"] + report["makers"]["canvas"]["samples"] == 800
    assert sum(each["count"] for each in report["reliability"]) == 800


def test_a_fit_is_where_the_slope_is_zero() -> None:
    samples = drawn(200)
    found = fit(samples, penalties=ONE).calibrator
    for name in ("mean_log_prob", "maker:template", "distance", "distance*mean_log_prob"):
        slope = sum((found.probability(each) - each.accepted) * features(each).get(name, 0.0) for each in samples)
        assert slope + found.weights.get(name, 0.0) == pytest.approx(0.0, abs=5e-3)


def test_no_sample_is_judged_by_a_fit_that_saw_its_group() -> None:
    # Within a group all have one fate, and a signal names the group: whoever has seen it knows all.
    samples = [
        sample(number, "accepted" if number % 12 < 6 else "rejected", signals={"place": f"p{number % 12}"})
        for number in range(240)
    ]
    whole = [replace(each, group=each.signals["place"]) for each in samples]
    torn = [replace(each, group=f"g{number // 24}") for number, each in enumerate(samples)]
    assert fit(torn, penalties=ONE).after.auroc == 1.0
    assert fit(whole, penalties=ONE).after.auroc < 0.6


def test_few_outcomes_stay_near_the_fit_they_start_from() -> None:
    others = drawn(200, seed=99)
    near, fresh = [], []
    for seed in (20, 22, 23, 24, 25):
        few = drawn(70, seed=seed)
        near.append(distance(fit(few, TRUTH, penalties=ONE).calibrator, TRUTH, others))
        fresh.append(distance(fit(few, penalties=ONE).calibrator, TRUTH, others))
    assert max(near) < 0.1
    assert sum(near) < 0.9 * sum(fresh)


def test_what_filters_drop_and_what_nobody_could_decide_about_is_not_fitted_to() -> None:
    outcomes = ("accepted", "partly", "rejected", "too_short", "superseded")
    samples = [sample(number, outcome) for number, outcome in enumerate(outcomes)]
    samples += [sample(9, filters=("secret",)), sample(10, kind="edit")]
    assert [each.outcome for each in usable(samples, "fill")] == ["accepted", "partly", "rejected"]
    assert usable(samples, "edit") == [samples[-1]]
    assert usable(samples, "poem") == []


def test_a_maker_is_hopeless_once_enough_of_its_proposals_came_to_nothing() -> None:
    def proposed(count: int, accepted: int = 0) -> list[Sample]:
        return [sample(number, "accepted" if number < accepted else "rejected") for number in range(count)]

    assert hopeless_makers(proposed(59)) == {"canvas"}
    assert hopeless_makers(proposed(55)) == hopeless_makers(proposed(59, 1)) == hopeless_makers([]) == frozenset()
    good = [sample(number, maker="rename") for number in range(30)]
    assert hopeless_makers([*proposed(400), *good]) == {"canvas"}
    partly = [sample(number, "partly") for number in range(400)]
    assert hopeless_makers(partly) == {"canvas"}


def test_a_person_who_takes_few_completions_still_gets_some() -> None:
    good = [sample(number, "accepted", maker="continuation") for number in range(30)]
    rare = [sample(number, "rejected") for number in range(100, 400)]
    for kind, hopeless in (("fill", frozenset()), ("edit", {"canvas"})):
        samples = [replace(each, kind=kind) for each in (*good, *rare)]
        assert fit(samples, penalties=ONE).calibrator.hopeless == hopeless


def test_what_another_maker_says_too_adds_nothing() -> None:
    own = [sample(number, "rejected") for number in range(900)]
    right = [sample(number, maker=maker) for number in range(900, 930) for maker in ("canvas", "rename")]
    assert hopeless_makers([*own, *right]) == {"canvas"}
    alone = [sample(number) for number in range(900, 980)]
    assert hopeless_makers([*own, *alone]) == frozenset()


SHIPPED = Calibrator(
    {"fill": TRUTH, "edit": KindCalibrator({"mean_log_prob": 1.0}, -1.0, frozenset({"canvas"}), {"quiet": 0.9})}, "abc"
)


def test_a_person_with_many_outcomes_gets_a_fit_and_thresholds_of_their_own() -> None:
    samples = drawn(150)
    fitted = fit(samples, TRUTH)
    own = fitted.calibrator
    assert own != TRUTH
    assert own.report["samples"] == 150
    assert distance(own, TRUTH, drawn(100, seed=8)) < 0.15
    # They keep their promises of probabilities by fits to other days, not of those that the fit itself gives.
    assert own.thresholds == named_thresholds(samples, fitted.probabilities)


def test_a_maker_that_nobody_asks_stays_hopeless() -> None:
    start = KindCalibrator({}, 0.0, frozenset({"imports", "template"}))
    # Of `template` there are samples again, and they are as good as others.
    assert fit(drawn(150), start, ONE).calibrator.hopeless == {"imports"}


def test_a_person_with_few_outcomes_corrects_scale_and_offset_of_all_kinds() -> None:
    # Of both kinds too few, together enough.
    rule = KindCalibrator(TRUTH.weights, TRUTH.bias - 2)
    samples = [*drawn(45, rule, seed=21), *drawn(10, rule, seed=4, kind="edit")]
    own = corrected_together(samples, SHIPPED)
    report = own.kinds["fill"].report
    assert (report["samples"], report["accepted"]) == (55, sum(each.accepted for each in samples))
    # The order of suggestions stays as it was: one scale for all weights.
    ratios = [own.kinds["fill"].weights[name] / weight for name, weight in TRUTH.weights.items()]
    assert ratios == pytest.approx([report["scale"]] * 3, abs=1e-4)
    assert own.kinds["edit"].weights["mean_log_prob"] == pytest.approx(report["scale"], abs=1e-4)
    assert own.kinds["edit"].hopeless == {"canvas"}
    for kind in ("fill", "edit"):
        shown = [each for each in samples if each.kind == kind and each.accepted]
        least = own.thresholds(kind)["eager"]
        assert all(own.probability(each) >= least for each in shown)
    others = drawn(100, rule, seed=6)
    assert distance(own.kinds["fill"], rule, others) < distance(TRUTH, rule, others)


def test_too_few_outcomes_for_that_are_refused_with_what_is_missing() -> None:
    few = [sample(number, "accepted" if number < FEWEST_TOGETHER - 2 else "rejected") for number in range(30)]
    with pytest.raises(TooFewError, match="2 more accepted suggestions"):
        corrected_together(few, SHIPPED)


def test_thresholds_lose_no_more_than_their_names_promise() -> None:
    samples = drawn(600)
    probabilities = [TRUTH.probability(each) for each in samples]
    found = named_thresholds(samples, probabilities)
    taken = [likely for each, likely in zip(samples, probabilities, strict=True) if each.accepted]
    for name, bound in (("balanced", 0.05), ("eager", 0.01)):
        lost = sum(likely < found[name] for likely in taken) / len(taken)
        assert lost <= bound
        # A little higher loses more: nothing is shown that need not be.
        assert sum(likely < found[name] + 0.002 for likely in taken) / len(taken) > lost - 1e-9
        assert sum(likely < found[name] + 0.1 for likely in taken) / len(taken) > bound
    shown = [each.accepted for each, likely in zip(samples, probabilities, strict=True) if likely >= found["quiet"]]
    assert len(shown) > 10
    assert sum(shown) / len(shown) > 0.5


def test_a_floor_gives_up_next_to_nothing_that_would_be_taken() -> None:
    samples = [
        replace(each, signals={**each.signals, "tokens": 1 + number % 9}) for number, each in enumerate(drawn(2000))
    ]
    probabilities = [TRUTH.probability(each) for each in samples]
    found = named_floors(samples, probabilities, {"balanced": 0.3, "quiet": 0.5, "nothing": 1.1})
    assert found.keys() == {"balanced", "quiet"}
    for name, least in (("balanced", 0.3), ("quiet", 0.5)):
        taken = [
            each.number("mean_log_prob") * each.count("tokens")
            for each, likely in zip(samples, probabilities, strict=True)
            if each.accepted and each.maker == "canvas" and likely >= least
        ]
        lost, more = (sum(total < bound for total in taken) / len(taken) for bound in (found[name], found[name] + 2))
        assert lost <= 0.01 < more


def test_a_fit_raises_no_floor() -> None:
    """What was given up is not in a log, so that fit after fit would give up more."""
    samples = [replace(each, signals={**each.signals, "tokens": 4}) for each in drawn(1000)]
    found = fit(samples, None, ONE).calibrator.floors["balanced"]
    for known in (found - 1.0, found + 1.0):
        begun = replace(TRUTH, floors={"balanced": known})
        assert fit(samples, begun, ONE).calibrator.floors["balanced"] <= min(known, found + 0.9)


@pytest.mark.parametrize(
    ("successes", "trials", "confidence", "bound"),
    [
        (1, 10, 0.9, 0.33685),
        (0, 10, 0.95, 1 - 0.05**0.1),
        (19, 20, 0.95, 0.99744),
        (5, 10, 0.9, 0.73268),
        (10, 10, 0.9, 1.0),
        (0, 0, 0.9, 1.0),
    ],
)
def test_an_upper_bound_is_the_one_of_the_tables(successes: int, trials: int, confidence: float, bound: float) -> None:
    assert upper_bound(successes, trials, confidence) == pytest.approx(bound, abs=2e-5)


def test_thresholds_without_enough_to_prove() -> None:
    assert named_thresholds([sample(number, "rejected") for number in range(30)], [0.4] * 30) == {}
    assert named_thresholds([], []) == {}
    samples = [sample(number, "accepted" if number < 3 else "rejected") for number in range(6)]
    assert named_thresholds(samples, [0.3] * 6) == {"quiet": 0.5, "balanced": 0.3, "eager": 0.3}
    # The accepted one of the first question would not have been shown, so no threshold loses it.
    rivals = [sample(1, "rejected", maker="rename"), sample(2), sample(1, "accepted")]
    assert named_thresholds(rivals, [0.8, 0.1, 0.7])["balanced"] == 0.1
