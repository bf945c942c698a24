"""When nothing is offered, and how that is said: in one sentence, once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.shared import FAR, HEAD, RENAME


def blocked(neovim: Neovim) -> str:
    return str(neovim.lua("return require('calomel.buffer').describe(0).blocked"))


def test_nothing_while_a_macro_is_recorded_or_executed(neovim: Neovim) -> None:
    neovim.edited("old = 1\nprint(old)\n")
    neovim.type("qa")
    neovim.until(lambda: neovim.marks() == [], "what was shown goes")
    neovim.type("q")
    neovim.script(fill={"x = ": "value_of(x)"})
    neovim.open("\n", "b.py")
    before = len(neovim.asked())
    neovim.type("qqix = ")
    assert blocked(neovim) == "macro"
    neovim.settle()
    assert (len(neovim.asked()), neovim.marks()) == (before, [])
    assert "a macro is being recorded" in neovim.status()
    neovim.type("<Tab>1<Esc>q")
    neovim.command("setlocal noexpandtab")
    assert neovim.text() == "x = \t1"
    neovim.type("o<Esc>@q")
    assert neovim.text() == "x = \t1\nx = \t1"


MENU = "completeopt=menuone,noselect"


def test_nothing_beside_a_popup_menu(neovim: Neovim) -> None:
    neovim.offered("riable", "value vast vat\n", "ova", MENU, fill={"va": "riable"})
    neovim.type("<C-n>")
    neovim.until(lambda: neovim.marks() == [], "it goes")
    assert blocked(neovim) == "popup_menu"
    neovim.type("<C-e>")
    neovim.until_ghost("riable")
    neovim.type("<Esc>")


def test_nothing_within_a_snippet(neovim: Neovim) -> None:
    neovim.script(fill="value")
    neovim.open("\n")
    neovim.type("i")
    neovim.lua("vim.snippet.expand('for ${1:x} in ${2:y}: $0')")
    neovim.type("i")
    neovim.settle()
    assert blocked(neovim) == "snippet"
    assert neovim.marks() == []
    neovim.lua("vim.snippet.stop()")


def test_a_file_that_is_ignored_and_a_language_that_is_off_are_named_once(bare: Neovim) -> None:
    bare.setup(server={"suggest": {"debounce_seconds": 0.0, "languages": {"python": False}}})
    bare.script(fill="secret")
    (bare.folder / "secrets").mkdir()
    for name, filetype, why in (
        (".env", "sh", "This file may contain a secret (.env)."),
        ("secrets/.env", "sh", "This file may contain a secret (.env)."),
        ("a.py", "python", "Suggestions are off for this language."),
        ("b.py", "python", "Suggestions are off for this language."),
    ):
        bare.open("A=1\n", name=name, filetype=filetype)
        bare.type("oB=")
        bare.until(lambda why=why: why in bare.status(), "the reason")  # type: ignore[misc]
        bare.type("<Esc>")
        assert bare.marks() == []
    assert bare.messages() == [
        "Calomel: This file may contain a secret (.env).",
        "Calomel: Suggestions are off for this language.",
    ]
    assert bare.asked() == []


def test_the_model_reads_what_stands_around_a_resting_cursor_before_it_is_asked(bare: Neovim) -> None:
    bare.script(fill="value", reads_ahead=True)
    bare.setup()
    bare.open("first = 1\nsecond = 2\nthird = 3\n")
    bare.until(lambda: bare.asked() == [{"kind": "ahead", "prefix": ""}], "the file that was opened is read")
    bare.type("jj")
    moved = {"kind": "ahead", "prefix": "first = 1\nsecond = 2\n"}
    bare.until(lambda: bare.asked()[1:] == [moved], "so is the line that the cursor rests in")


# What is seen where suggestions come on request: a sign in the margin, or nothing.
def signs(neovim: Neovim) -> list[tuple[int, str]]:
    return [(int(mark["row"]), str(mark["sign_text"]).strip()) for mark in neovim.marks() if mark.get("sign_text")]


def show(neovim: Neovim, how: str) -> Neovim:
    neovim.setup(server={"suggest": {"debounce_seconds": 0.0, "show": how}})
    return neovim


def typed(neovim: Neovim, **script: Any) -> None:
    """A word of a function's body is typed."""
    neovim.script(**script)
    neovim.open(HEAD)
    neovim.type("jA")
    neovim.type("re")


@pytest.mark.e2e
def test_a_sign_says_that_there_is_text_and_the_key_that_asks_shows_it(bare: Neovim) -> None:
    neovim = show(bare, "hint")
    typed(neovim, fill="turn a + b")
    neovim.until(lambda: signs(neovim) == [(1, "»")], "the sign")
    assert neovim.ghost() == ""
    neovim.type("<M-\\>")
    neovim.until(lambda: neovim.ghost() == "turn a + b", "the text that was asked for")
    assert signs(neovim) == []
    neovim.type("<Tab>")
    neovim.holds("def add(a, b):\n    return a + b")


@pytest.mark.e2e
def test_a_sign_stands_where_an_edit_is_until_the_text_changes(bare: Neovim) -> None:
    neovim = show(bare, "hint")
    neovim.script(edit=RENAME)
    neovim.open(FAR)
    neovim.type("cwnew<Esc>")
    neovim.until(lambda: signs(neovim) == [(9, "»")], "the sign")
    assert neovim.struck() == []
    neovim.script()
    neovim.type("oab<Esc>")
    neovim.until(lambda: signs(neovim) == [], "it is gone")


@pytest.mark.e2e
def test_on_request_nothing_is_seen_before_the_key_that_asks(bare: Neovim) -> None:
    neovim = show(bare, "on_request")
    typed(neovim, fill="turn a + b")
    neovim.until(lambda: "only when you ask" in neovim.status(), "the reason for the silence")
    assert neovim.marks() == []
    neovim.type("<M-\\>")
    neovim.until(lambda: neovim.ghost() == "turn a + b", "the text that was asked for")
