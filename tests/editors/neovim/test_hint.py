"""What is seen where suggestions come on request: a sign in the margin, or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.shared import FAR, HEAD, RENAME

pytestmark = [pytest.mark.e2e]


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


def test_on_request_nothing_is_seen_before_the_key_that_asks(bare: Neovim) -> None:
    neovim = show(bare, "on_request")
    typed(neovim, fill="turn a + b")
    neovim.until(lambda: "on_request" in neovim.status(), "the reason for the silence")
    assert neovim.marks() == []
    neovim.type("<M-\\>")
    neovim.until(lambda: neovim.ghost() == "turn a + b", "the text that was asked for")
