"""The lines around a place that may be rewritten."""

from __future__ import annotations

import pytest

from calomel.prompts.parts import RegionBounds, region_around

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\n"


def lines_of(text: str, focus: int, bounds: RegionBounds) -> str:
    start, end = region_around(text, focus, bounds)
    return text[start:end]


def test_a_region_has_whole_lines_above_and_below() -> None:
    assert lines_of(TEXT, TEXT.index("hree"), RegionBounds(1, 2)) == "two\nthree\nfour\nfive\n"


def test_a_region_ends_with_the_file() -> None:
    assert lines_of(TEXT, 0, RegionBounds(3, 1)) == "one\ntwo\n"
    assert lines_of(TEXT, len(TEXT) - 2, RegionBounds(1, 3)) == "five\nsix\n"
    assert lines_of("alone", 2, RegionBounds()) == "alone"
    assert lines_of("", 0, RegionBounds()) == ""


@pytest.mark.parametrize(("characters", "region"), [(6, "three\n"), (11, "three\nfour\n"), (15, "two\nthree\nfour\n")])
def test_the_nearest_lines_come_first_until_the_region_is_full(characters: int, region: str) -> None:
    assert lines_of(TEXT, TEXT.index("three"), RegionBounds(2, 2, characters)) == region


def test_a_line_that_is_too_long_is_a_region_of_its_own() -> None:
    assert lines_of("a\n" + "b" * 50 + "\nc\n", 10, RegionBounds(1, 1, 20)) == "b" * 50 + "\n"


def test_every_kind_of_line_end_ends_a_line() -> None:
    assert lines_of("a\r\nb\r\nc\r\nd", 3, RegionBounds(1, 1)) == "a\r\nb\r\nc\r\n"
    assert lines_of("a\rb\rc\rd", 2, RegionBounds(1, 1)) == "a\rb\rc\r"
