from __future__ import annotations

import math

import pytest

from calomel.suggest.rewriter import DOUBT, Seed, Span, doubted, seeds

SURE, UNSURE, WRONG = -0.01, -1.0, -6.0
IDS = (10, 11, 12, 13, 14)


def places(spans: tuple[Span, ...]) -> list[tuple[int, int]]:
    return [(span.start, span.stop) for span in spans]


def test_a_text_that_the_model_believes_in_is_not_masked_anywhere() -> None:
    assert doubted([SURE] * 6, range(5)) == ()
    assert seeds(IDS, (), (0, 1), most=4, longest=48) == ()


def test_what_is_as_likely_as_not_is_believed() -> None:
    assert math.exp(DOUBT) == pytest.approx(0.5)
    assert doubted([DOUBT, DOUBT - 0.01, SURE], range(2)) == (Span(1, 2, DOUBT - 0.01),)


def test_the_most_doubted_comes_first() -> None:
    spans = doubted([UNSURE, SURE, WRONG, SURE, SURE, SURE], range(5))
    assert places(spans) == [(2, 3), (0, 1)]


def test_a_word_is_doubted_as_a_whole() -> None:
    words = [0, 4, 4, 4, 9]  # the second word has three tokens
    assert places(doubted([SURE, SURE, WRONG, SURE, SURE, SURE], words)) == [(1, 4)]


def test_neighbours_are_doubted_together() -> None:
    (span,) = doubted([SURE, UNSURE, WRONG, SURE, SURE, SURE], range(5))
    assert span == Span(1, 3, WRONG)


def test_the_end_of_the_text_can_be_doubted() -> None:
    spans = doubted([SURE] * 5 + [WRONG], range(5))
    assert places(spans) == [(5, 6)]
    assert seeds(IDS, spans, (0, 2), most=4, longest=48) == (Seed(7, dict(enumerate(IDS))),)


def test_a_seed_keeps_what_is_believed_and_moves_it_along() -> None:
    found = seeds(IDS, (Span(1, 2, WRONG),), (0, 2, -1), most=4, longest=48)
    assert found == (
        Seed(5, {0: 10, 2: 12, 3: 13, 4: 14}),
        Seed(7, {0: 10, 4: 12, 5: 13, 6: 14}),
        Seed(4, {0: 10, 1: 12, 2: 13, 3: 14}),
    )


def test_every_length_is_tried_on_all_doubts_and_on_the_first_alone() -> None:
    spans = (Span(3, 4, WRONG), Span(0, 1, UNSURE))
    found = seeds(IDS, spans, (1,), most=4, longest=48)
    assert found == (Seed(7, {2: 11, 3: 12, 6: 14}), Seed(6, {0: 10, 1: 11, 2: 12, 5: 14}))


def test_there_are_no_more_seeds_than_asked_for_and_none_twice() -> None:
    span = (Span(1, 2, WRONG),)
    assert len(seeds(IDS, span, (0, 0, 1, 2, 3), most=3, longest=48)) == 3
    assert len(seeds(IDS, span, (0, 0), most=3, longest=48)) == 1


def test_a_seed_and_its_end_fit_on_the_canvas() -> None:
    found = seeds(IDS, (Span(1, 2, WRONG),), (0, 1, 2), most=4, longest=7)
    assert [seed.length for seed in found] == [5, 6]


def test_a_text_is_never_shortened_to_nothing() -> None:
    assert seeds((10,), (Span(0, 1, WRONG),), (-1,), most=4, longest=48) == ()
