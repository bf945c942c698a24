"""Offers that nobody could want, whatever comes next: each kind of harm, and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.stories_made import rename, write_stories

from calomel.bench.harm import NAMES, SYNTAX, UNDO, Offered, harm_figures, harm_table, harms
from calomel.bench.held_edits import Contenders, ask_moment
from calomel.report.stories import Change, moments, read_stories
from calomel.suggest.completer import Candidate, CompleteAnswer, CompleteRequest, ModelInfo
from calomel.suggest.edit import TextEdit

PAY = "def pay(cart, percent):\n    value = cart.total()\n    value = value - percent\n    return value\n"


def offered(old: str, new: str, *done: tuple[str, str], before: str = PAY, path: str = "pay.py") -> Offered:
    """`new` for the first `old`, after each first `done` became what it is paired with; the cursor is at the front."""
    text, changes = before, []
    for gone, came in done:
        at = text.index(gone)
        changes.append(Change(at, at + len(gone), came))
        text = changes[-1].apply(text)
    at = text.index(old)
    return Offered(text, (TextEdit(at, at + len(old), new),), 0, path, before, changes)


@pytest.mark.parametrize(
    ("offer", "expected"),
    [
        (offered("cart.total()", "cart.total(, percent)"), (SYNTAX,)),
        (offered("- percent", "- minimum"), (NAMES,)),
        (offered("return value", "return self.rounded"), (NAMES,)),
        (offered("amount", "value", ("value", "amount")), (UNDO,)),
        (offered("values", "value", ("value", "values")), (UNDO,)),
        (offered("cart.sum()", "cart.total()", ("total", "sum"), ("percent", "share")), (UNDO,)),
    ],
)
def test_an_offer_that_nobody_could_want(offer: Offered, expected: tuple[str, ...]) -> None:
    assert harms(offer) == expected


@pytest.mark.parametrize(
    "offer",
    [
        offered("value - percent", "amount - percent", ("value", "amount")),
        offered("cart.total()", "cart.total(limit=percent)"),
        offered("return value", "rest = value\n    return rest"),
        offered("return value", "return round(value)"),
        offered("return value", "return value.quantize()"),
        offered("def pay(cart, percent)", "def pay(cart, percent, minimum=0)"),
        offered("return value", "for item in cart:\n        print(item)\n    return value"),
        offered("value", "nothing at all (", path="notes.txt"),
    ],
)
def test_an_offer_that_may_be_wrong_and_harms_nothing(offer: Offered) -> None:
    assert harms(offer) == ()


def test_names_count_away_from_the_cursor_alone() -> None:
    there = offered("- percent", "- minimum")
    here = Offered(there.text, there.edits, there.edits[0].start, there.path, there.before, there.changes)
    assert (harms(there), harms(here)) == ((NAMES,), ())


@pytest.mark.parametrize(
    ("path", "text", "old", "new", "expected"),
    [
        ("a.go", "package a\n\nfunc f(n int) int {\n\treturn n\n}\n", "return n", "return count", (NAMES,)),
        ("a.go", "package a\n\nfunc f(n int) int {\n\treturn n\n}\n", "return n", "return len(a[:n])", ()),
        ("a.ts", "function f(n: number) {\n  return n;\n}\n", "return n", "return count", (NAMES,)),
        ("a.ts", "function f(n: number) {\n  return n;\n}\n", "return n", "const twice = 2 * n;\n  return twice", ()),
        ("a.rs", "fn f(n: u8) -> u8 {\n    n\n}\n", "    n\n", "    count\n", (NAMES,)),
        ("a.rs", "fn f(n: u8) -> u8 {\n    n\n}\n", "    n\n", "    let twice = n * 2;\n    twice\n", ()),
        ("a.c", "int f(int n) {\n  return n;\n}\n", "return n", "int twice = 2 * n;\n  return twice", ()),
    ],
)
def test_names_in_other_languages(path: str, text: str, old: str, new: str, expected: tuple[str, ...]) -> None:
    assert harms(offered(old, new, before=text, path=path)) == expected


def test_the_figures_count_offers_and_what_is_wrong_with_them() -> None:
    told = [(), (SYNTAX,), (SYNTAX, UNDO), ()]
    assert harm_figures(told) == {
        "offers": 4, "harmful_offers": 2, "harmful_syntax": 2, "harmful_names": 0, "harmful_undo": 1,
    }  # fmt: skip
    assert harm_table(told).rows == (("Calomel", "4", "2 (50.0%)", "2 (50.0%)", "0 (0.0%)", "1 (25.0%)"),)
    assert harm_table([]).rows[0][2] == "0"


async def test_every_offer_of_a_chain_is_looked_at(tmp_path: Path) -> None:
    class Drafting:
        async def complete(self, request: CompleteRequest) -> CompleteAnswer:
            drafts = (Candidate(each.text, (-0.01,), maker=each.maker) for each in request.drafts)
            return CompleteAnswer(tuple(drafts))

        async def info(self) -> ModelInfo:
            return ModelInfo("scripted", "0", ("fill", "edit"), 2048, 2048, None, "0")

        async def aclose(self) -> None:
            pass

    (story,) = read_stories(write_stories(tmp_path / "s.zst", rename()))
    row = await ask_moment(moments(story)[0], Contenders(Drafting()))
    assert len(row.offers) >= 1
    assert set(row.offers) == {()}
