from __future__ import annotations

import pytest

from calomel.replay.metrics.kept import kept_rate


def test_text_that_stayed_is_kept_whole() -> None:
    assert kept_rate("a = ", "a = compute()", "a = compute()") == 1.0


def test_text_that_gave_way_to_other_text_is_not_kept() -> None:
    assert kept_rate("", "bbbbbb", "cccccc") == 0.0


def test_half_of_the_new_characters_kept_is_a_half() -> None:
    # New words: "foo" and "bar", six characters; the person left "foo".
    assert kept_rate("x", "x\nfoo\nbar", "x\nfoo") == pytest.approx(4 / 8)


def test_a_suggestion_that_changes_nothing_is_kept_when_nothing_changed_and_not_when_something_did() -> None:
    assert kept_rate("a", "a", "a") == 1.0
    assert kept_rate("a", "a", "a b") == 0.0


def test_what_all_three_texts_share_is_context() -> None:
    assert kept_rate("def f():\n    pass", "def f():\n    return", "def f():\n    return") == 1.0
