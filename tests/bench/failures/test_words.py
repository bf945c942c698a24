from __future__ import annotations

import pytest

from calomel.bench.failures.words import foreign_words, names, net_brackets, pieces, place_of, word_before, word_behind


@pytest.mark.parametrize(
    ("prefix", "language", "place"),
    [
        ("x = 1\ny = ", "python", "code"),
        ("x = 1  # the ", "python", "comment"),
        ('x = "# ', "python", "string"),
        ('def f():\n    """Adds ', "python", "comment"),
        ('def f():\n    """Adds."""\n    return ', "python", "code"),
        ('url := "http://', "go", "string"),
        ("\t// Adds ", "go", "comment"),
        ("/**\n * Adds ", "typescript", "comment"),
        ("a = `it's ", "typescript", "string"),
        ('let text = "say \\"', "rust", "string"),
    ],
)  # fmt: skip
def test_the_line_says_where_the_cursor_stands(prefix: str, language: str, place: str) -> None:
    assert place_of(prefix, language) == place


def test_words_and_signs_are_pieces() -> None:
    assert pieces("total += a1[2]") == ["total", "+", "=", "a1", "[", "2", "]"]


def test_names_are_no_keywords_and_have_three_letters() -> None:
    assert names("return total + x for item", "python") == {"total", "item"}


def test_each_language_has_words_that_are_strange_to_it() -> None:
    assert "func" in foreign_words("python")
    assert "def" not in foreign_words("python")
    assert foreign_words("cobol") == frozenset()


def test_halves_of_words_around_a_hole() -> None:
    assert (word_before("return tot"), word_behind("al + 1")) == ("tot", "al")
    assert (word_before("f("), word_behind(")")) == ("", "")


def test_brackets_are_counted_by_kind() -> None:
    assert net_brackets("f(a, [b]") == (1, 0, 0, 0, 0, 0)
    assert net_brackets('"') != net_brackets('""')
