from __future__ import annotations

import pytest

from calomel.bench.failures.hole_case import HoleCase
from calomel.bench.failures.hole_kinds import OTHER, RULES, hole_kind, hole_kinds

PREFIX = "def pay(price, discount):\n    amount = "
SUFFIX = "\n    return amount\n"


def case(truth: str, answer: str, *, prefix: str = PREFIX, suffix: str = SUFFIX, cut: bool = False) -> HoleCase:
    return HoleCase("python", prefix, suffix, truth, answer, prefix + suffix, cut)


@pytest.mark.parametrize(
    ("kind", "truth", "answer"),
    [
        ("silent", "price - 1", " "),
        ("whitespace", "price - 1", "price-1"),
        ("repeats_suffix", "price", "price\n    return amount"),
        ("ended_early", "price - discount", "price"),
        ("ended_late", "price", "price - discount"),
        ("stutters", "price - discount", "price price"),
        ("stutters", "price", "((((((("),
        ("wrong_length", "round(price, 2)", "round(price)"),
        ("wrong_language", "price if price else 0", "func - price"),
        ("context_ignored", "price - discount", "price - rebate"),
        ("unbalanced", "max(price, 1)", "min(price, 1"),
        ("began_right", "price + 12", "price + 3"),
        ("other", "price * 2", "0.5"),
    ],
)
def test_a_wrong_answer_is_of_the_first_kind_that_fits(kind: str, truth: str, answer: str) -> None:
    assert hole_kind(case(truth, answer)) == kind


def test_right_but_for_the_indentation_of_a_line() -> None:
    wrong = case("    total += 1\n        count += 1", "    total += 1\n    count += 1", prefix="if x:\n", suffix="\n")
    assert hole_kind(wrong) == "indentation"


def test_what_the_bound_on_tokens_ended_did_not_find_its_end() -> None:
    assert hole_kind(case("price", "price - discount - 1 -", cut=True)) == "end_not_found"


def test_what_stands_in_the_text_could_have_been_copied() -> None:
    seen = "order.total_price()\n" + PREFIX + "order."
    wrong = HoleCase("python", seen, SUFFIX, "total_price()", "name", seen + SUFFIX)
    assert hole_kind(wrong) == "copy_missed"


def test_the_word_under_the_cursor_counts_for_a_copy() -> None:
    seen = "discount_rate = 3\n" + PREFIX + "disc"
    assert "copy_missed" in hole_kinds(HoleCase("python", seen, SUFFIX, "ount_rate", "o", seen + SUFFIX))


def test_another_word_came_of_the_one_under_the_cursor() -> None:
    assert hole_kind(case("xor", "ype", prefix="flag = t")) == "wrong_word"


def test_keywords_of_other_languages_are_fine_in_a_comment() -> None:
    wrong = case("the price", "func and def", prefix="# ")
    assert "wrong_language" not in hole_kinds(wrong)


def test_an_answer_may_be_of_several_kinds() -> None:
    assert hole_kinds(case("max(price, 1)", "max(")) == ("ended_early", "unbalanced")
    assert hole_kinds(case("price * 2", "0.5")) == (OTHER,)


def test_every_rule_says_what_it_means() -> None:
    assert all(told for _, told in RULES.values())
    assert OTHER not in RULES
