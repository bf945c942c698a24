"""What Tab changes of a rename or a parameter list is what a library changes, in files that nobody here wrote."""

from __future__ import annotations

import pytest
from tests.refactoring.library import LibraryError
from tests.refactoring.measure import listing, measured, measured_signatures, signature_table, table
from tests.refactoring.renames import LANGUAGES, Found
from tests.refactoring.tabs import Change, kind_at, word_changes

# Another seed than anybody looks at to change a rule.
_SEED = 20_261


async def _measured(language: str, count: int) -> list[Found]:
    try:
        return await measured(language, count, _SEED)
    except LibraryError as error:
        pytest.skip(str(error))


def _is_a_refactoring(found: list[Found]) -> None:
    told = f"{listing(found)}\n{table(found)}"
    assert not [place for each in found for place in each.outside if place.kind != "comment"], told
    assert not [each for each in found if each.broken or not each.ended], told
    assert sum(each.found for each in found) >= 0.9 * sum(each.wanted for each in found), told


@pytest.mark.parametrize("language", LANGUAGES)
async def test_tab_to_the_end_is_a_refactoring(language: str) -> None:
    _is_a_refactoring(await _measured(language, 25))


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
async def test_tab_to_the_end_is_a_refactoring_two_hundred_times(language: str) -> None:
    _is_a_refactoring(await _measured(language, 200))


async def _signatures(language: str, count: int) -> None:
    try:
        found = await measured_signatures(language, count, _SEED)
    except LibraryError as error:
        pytest.skip(str(error))
    told = signature_table(found)
    assert not [each for each in found if each.outside or each.broken or not each.ended], told
    assert sum(each.found for each in found) >= 0.9 * sum(each.wanted for each in found), told


@pytest.mark.slow
@pytest.mark.xfail(raises=AssertionError, reason="methods of other classes of the same name follow")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_tab_after_two_hundred_changed_parameter_lists_changes_calls_of_those_functions(language: str) -> None:
    await _signatures(language, 200)


def test_changed_words_are_found_by_line_and_else_in_the_whole_text() -> None:
    assert word_changes("a = b\nf(a, $a)\n", "c = b\nf(c, $a)\n") == {Change(0, 1, "c"), Change(8, 9, "c")}
    assert word_changes("f(ab)\n", "f(ab, c)\n") == {Change(4, 4, ", c")}
    assert word_changes("a\nb\n", "b\n") == {Change(0, 2, "")}


def test_a_place_is_code_a_string_or_a_comment() -> None:
    text = 'def f(a):\n    """Of a."""\n    return "a" + f"{a}"  # a\n'
    places = [at for at, letter in enumerate(text) if letter == "a" and not (text[at - 1] + text[at + 1]).isalpha()]
    assert [kind_at("a.py", text, at) for at in places] == ["code", "comment", "string", "code", "comment"]
    assert kind_at("a.ts", "x = `a ${b}`", 5) == "string"
    assert kind_at("a.ts", "x = `a ${b}`", 9) == "code"
