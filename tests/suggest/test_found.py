from __future__ import annotations

import itertools

from calomel.suggest.completer import Candidate
from calomel.suggest.judging import Answered, Decision, Proposed, better
from calomel.suggest.signals import OutcomeSignals
from calomel.suggest.silence import SilenceReason


def found(probability: float, maker: str = "canvas", reason: SilenceReason | None = None) -> Decision:
    return Decision(Proposed(Candidate("x", maker=maker), ()), "fill", OutcomeSignals(), probability, reason)


def test_what_can_be_shown_goes_before_what_is_held_back_and_that_before_nothing() -> None:
    ordered: list[Answered] = [
        found(0.2),
        found(0.9, reason=SilenceReason.LOW_CONFIDENCE),
        SilenceReason.EMPTY,
    ]
    for one, other in itertools.combinations(ordered, 2):
        assert better(one, other) is better(other, one) is one


def test_of_two_that_can_be_shown_the_likelier_one_counts() -> None:
    unlikely, likely = found(0.4), found(0.6)
    assert better(unlikely, likely) is better(likely, unlikely) is likely
    first, second = found(0.4, reason=SilenceReason.UNBALANCED), found(0.6, reason=SilenceReason.LOW_CONFIDENCE)
    assert better(first, second) is better(second, first) is second


def test_the_first_stays_where_the_other_is_no_better() -> None:
    one, other = found(0.5, "rename"), found(0.5)
    assert better(one, other) is one
    assert better(SilenceReason.EMPTY, SilenceReason.NO_CHANGE) is SilenceReason.EMPTY
    assert better(None, SilenceReason.NO_CHANGE) is SilenceReason.NO_CHANGE
    assert better(None, one) is one


def test_what_is_found_names_its_maker() -> None:
    assert found(0.5, "rename").maker == "rename"
