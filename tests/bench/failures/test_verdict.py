from __future__ import annotations

from dataclasses import replace

import pytest

from calomel.bench.failures.holes_asked import Likelihood
from calomel.bench.failures.run import spread
from calomel.bench.failures.summary import failure_keys, failure_tables, likelihood_table, quoted
from calomel.bench.failures.verdict import Verdict, ranked, saved_characters

SILENT = Verdict("a", "holes", "rest_of_line", "go", "code", "silent", saved=10, truth="x", answer="", tokens=2)
LATE = replace(SILENT, key="b", kind="ended_late", saved=4)
RIGHT = replace(SILENT, key="c", kind=None, saved=6)


def test_indentation_and_the_key_that_accepts_save_nothing() -> None:
    assert saved_characters("    return x\n    # y") == len("return x\n# y") - 1
    assert saved_characters("\n") == 0


def test_a_failure_is_worth_its_characters_times_the_share_of_its_kind() -> None:
    verdicts = [SILENT, replace(SILENT, key="a2", saved=1), LATE, RIGHT]
    found = ranked(verdicts)
    assert [(each.verdict.key, each.value) for each in found] == [("a", 5.0), ("b", 1.0), ("a2", 0.5)]


def test_sources_do_not_dilute_each_other() -> None:
    elsewhere = [replace(RIGHT, key=f"e{at}", source="edits") for at in range(8)]
    assert ranked([SILENT, RIGHT, *elsewhere])[0].value == pytest.approx(5.0)


def test_a_verdict_survives_the_journal() -> None:
    verdict = replace(LATE, also=("unbalanced",))
    assert Verdict.from_json(verdict.to_json()) == verdict


def test_keys_count_kinds_and_what_they_lost() -> None:
    flat = failure_keys([SILENT, LATE, RIGHT])
    assert flat["holes.right"] == pytest.approx(1 / 3)
    assert flat["holes.silent"] == pytest.approx(1 / 3)
    assert flat["holes.silent.value_share"] == pytest.approx(10 / 14)
    assert flat["edits.right_n"] == 0


def test_tables_have_every_kind_and_every_row() -> None:
    tables = {table.title: table for table in failure_tables([SILENT, LATE, RIGHT])}
    kinds = tables["Failures: 3 held-out holes"]
    assert [row[0] for row in kinds.rows] == ["silent", "ended_late", "right"]
    assert tables["Held-out holes by language"].columns == ("kind", "go")
    assert tables["By length of the truth"].rows[1][:2] == ("2", "3")
    assert not any("next edits" in title for title in tables)


def test_examples_are_of_every_kind_in_turn() -> None:
    many = [replace(SILENT, key=f"s{at}") for at in range(5)]
    found = spread(ranked([*many, LATE]), 3)
    assert [each.verdict.kind for each in found] == ["silent", "ended_late", "silent"]


def test_an_example_is_readable() -> None:
    verdict = replace(LATE, tail="if x:\n\t", truth="y", answer=None, also=("other",))
    text = quoted(ranked([verdict]), "Examples")
    assert "**ended_late**, also other (rest_of_line, go, code; value 4.00)" in text
    assert "before  if x:⏎→" in text
    assert "answer  (nothing)" in text


def test_the_truths_price_is_told_apart_by_the_cursors_place() -> None:
    inside = Likelihood(inside_word=True, tokens=(-2.0, -1.0, -3.0), end=-0.5)
    between = Likelihood(inside_word=False, tokens=(-1.0,), end=-0.25)
    table, flat = likelihood_table([inside, between])
    assert table.rows[0] == ("inside word", "1", "2.00", "1.00", "3.00", "0.50")
    assert table.rows[1] == ("between words", "1", "1.00", "-", "-", "0.25")
    assert flat["nats.inside_word.first"] == 2.0
