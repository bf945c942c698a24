from __future__ import annotations

import random
import time
from typing import Any

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.shared import HEAD, REST

RETURN = HEAD[:-1] + "return a + b"
SUM = "turn a + b"


def returning(neovim: Neovim, rest: str = SUM) -> None:
    """`re` was typed, and the rest is offered."""
    neovim.offered(rest, HEAD, "jAre")


def test_it_appears_while_typing(neovim: Neovim) -> None:
    returning(neovim)
    (mark,) = neovim.marks()
    assert (mark["row"], mark["col"], mark["virt_text_pos"]) == (1, 6, "inline")
    assert neovim.screen(1) == "    return a + b"
    assert neovim.text() == HEAD[:-1] + "re"


@pytest.mark.parametrize(
    ("text", "keys", "ghost", "screen"),
    [
        ("\nx = 1\n", "idef ", "add(a, b):\n    return", ["def add(a, b):", "    return", "x = 1"]),
        ("x = []\n", "f]ia<BS>", "1,\n  2", ["x = [1,", "  2]"]),
    ],
    ids=["several_lines", "text_behind_the_cursor"],
)
def test_it_stands_on_the_screen_as_it_would_in_the_buffer(
    neovim: Neovim, text: str, keys: str, ghost: str, screen: list[str]
) -> None:
    neovim.offered(ghost, text, keys, fill=ghost)
    assert [neovim.screen(row) for row in range(len(screen))] == screen


def test_a_tab_in_it_is_as_wide_as_in_the_buffer(neovim: Neovim) -> None:
    neovim.script(fill="type T struct {\n\ty int\n}")
    neovim.open("\n", name="a.go", filetype="go")
    neovim.command("setlocal tabstop=4")
    neovim.type("i <BS>")
    neovim.until_ghost("type T struct {\n    y int\n}")
    neovim.type("<M-l>")
    neovim.until_text("type T struct {\n\ty int\n}")


def test_typing_along_shortens_it_without_asking(neovim: Neovim) -> None:
    returning(neovim)
    asked = len(neovim.asked())
    neovim.script(fill="something else")
    for typed, left in (("t", "urn a + b"), ("urn", " a + b"), (" a", " + b")):
        neovim.type(typed)
        assert neovim.ghost() == left
        neovim.settle()
        assert neovim.ghost() == left
    assert len(neovim.asked()) == asked


@pytest.mark.parametrize("keys", ["x", "<Esc>", "<Up>", "<C-\\><C-o><C-w>w"])
def test_what_ends_it_takes_it_away_at_once(neovim: Neovim, keys: str) -> None:
    neovim.command("split")
    returning(neovim)
    neovim.script()
    neovim.type(keys)
    assert neovim.ghost() == ""
    neovim.settle()
    assert neovim.marks() == []


def test_an_answer_that_comes_too_late_is_not_shown(neovim: Neovim) -> None:
    neovim.script(fill=SUM, seconds=0.15)
    neovim.open(HEAD)
    before = len(neovim.asked())
    neovim.type("jAre")
    neovim.until(lambda: len(neovim.asked()) > before, "a question")
    neovim.script()
    neovim.type("x")
    neovim.settle()
    assert neovim.marks() == []


def test_all_of_it_is_taken(neovim: Neovim) -> None:
    returning(neovim, REST)
    with neovim.learns("accepted"):
        neovim.type("<Tab>")
        assert neovim.text() == HEAD[:-1] + "re" + REST
        assert neovim.cursor() == (5, len("    return a - b"))
        assert neovim.mode() == "i"
        neovim.settle()
        assert neovim.marks() == []
        neovim.holds(HEAD[:-1] + "re" + REST)


def test_it_is_taken_word_by_word(neovim: Neovim) -> None:
    returning(neovim)
    before = neovim.count("partly_accepted")
    for text, left in (("    return", " a + b"), ("    return a", " + b"), ("    return a +", " b")):
        neovim.type("<C-Right>")
        assert neovim.text().split("\n")[1] == text
        assert neovim.ghost() == left
        neovim.settle()
        assert neovim.ghost() == left
    neovim.until(lambda: neovim.count("partly_accepted") > before, "the server knows of it")
    with neovim.learns("accepted"):
        neovim.type("<C-Right>")
        assert neovim.mode() == "i"
        neovim.holds(RETURN)


def test_it_is_taken_line_by_line(neovim: Neovim) -> None:
    returning(neovim, REST)
    neovim.type("<C-l>")
    assert neovim.text() == RETURN
    neovim.settle()
    assert neovim.ghost() == "\n\n\ndef sub(a, b):\n    return a - b"
    neovim.type("<C-l>")
    assert neovim.text() == RETURN + "\n\n\ndef sub(a, b):"
    neovim.settle()
    neovim.type("<C-l>")
    neovim.holds(HEAD[:-1] + "re" + REST)


def test_what_is_typed_behind_it_is_undone_alone(neovim: Neovim) -> None:
    neovim.offered()
    neovim.type("<Tab>")
    neovim.type(" + 1<Esc>u")
    assert neovim.text() == "x = value_of(x)"


@pytest.mark.parametrize("key", ["<Tab>", "<C-Right>", "<C-l>"])
def test_one_undo_takes_back_what_was_accepted_and_no_more(neovim: Neovim, key: str) -> None:
    returning(neovim, REST)
    neovim.type(key)
    neovim.settle()
    neovim.type("<Esc>u")
    assert neovim.text() == HEAD[:-1] + "re"
    neovim.type("<C-r>")
    assert neovim.text().startswith(HEAD[:-1] + "return")
    neovim.type("uu")
    neovim.holds(HEAD[:-1])


def test_text_that_is_accepted_is_not_indented_again(neovim: Neovim) -> None:
    body = "\n    y()\n    z()"
    neovim.offered(body, "\n", "iif x:", "autoindent cindent expandtab shiftwidth=4", fill={"if x:": body})
    neovim.type("<Tab>")
    assert neovim.text() == "if x:" + body


def test_lua_functions_do_the_same_as_the_keys(neovim: Neovim) -> None:
    returning(neovim)
    assert neovim.lua("return require('calomel').visible()") is True
    assert neovim.lua("return require('calomel').accept_word()") is True
    assert neovim.text().split("\n")[1] == "    return"
    assert neovim.lua("return require('calomel').accept()") is True
    assert neovim.text() == RETURN
    assert neovim.lua("return require('calomel').accept()") is False


def test_it_replaces_what_it_says_it_replaces(neovim: Neovim) -> None:
    neovim.script(fill={"print(": '"hello")'})
    neovim.open("\n")
    neovim.type("iprint()<Left>")
    neovim.until(neovim.ghost, "ghost text")
    neovim.type("<Tab>")
    neovim.holds('print("hello")')


def test_the_dot_repeats_what_was_typed_and_accepted(neovim: Neovim) -> None:
    neovim.offered("sult", "\n\n", "ix = re", fill={"x = re": "sult"})
    neovim.type("<Tab><Esc>")
    neovim.script()
    neovim.type("j.")
    assert neovim.text() == "x = result\nx = result"


def test_what_was_dismissed_does_not_come_back_unless_it_is_asked_for(neovim: Neovim) -> None:
    neovim.offered(SUM, HEAD, "jAre", fill={"    re": SUM, "    r": "eturn a + b"})
    with neovim.learns("rejected"):
        neovim.type("<C-]>")
        assert (neovim.marks(), neovim.mode(), neovim.text()) == ([], "i", HEAD[:-1] + "re")
    for keys in ("<BS>", "e", "<Left><Right>", "<Esc>A"):
        neovim.type(keys)
        neovim.settle()
        assert neovim.marks() == []
    assert neovim.count("rejected_before") > 0
    neovim.type("<M-\\>")
    neovim.until_ghost(SUM)
    neovim.type("<Tab>")
    neovim.until_text(RETURN)


def test_a_file_with_line_ends_of_windows(neovim: Neovim) -> None:
    neovim.script(fill={"def add(a, b):\n    re": "turn a + b\n\nadd(1, 2)"})
    path = neovim.open(b"def add(a, b):\r\n    \r\n")
    neovim.type("jAre")
    neovim.until_ghost("turn a + b\n\nadd(1, 2)")
    neovim.type("<C-l>")
    assert neovim.text() == RETURN
    neovim.settle()
    neovim.type("<Tab>")
    neovim.holds(RETURN + "\n\nadd(1, 2)", "\r\n")
    neovim.type("<Esc>")
    neovim.command("silent write")
    assert path.read_bytes() == neovim.server_text().encode()


def test_a_word_of_a_text_without_blanks_ends_within_it(neovim: Neovim) -> None:
    rest = "これは長い文章です。次の文もあります。"
    neovim.offered(rest, "\n", "A# ", fill={"# ": rest})
    for text in (
        "# これは",
        "# これは長",
        "# これは長い",
        "# これは長い文章",
        "# これは長い文章です",
        "# これは長い文章です。",
    ):
        neovim.type("<C-Right>")
        assert neovim.text().rstrip() == text
        neovim.settle()


def test_a_word_is_what_the_language_says_it_is(neovim: Neovim) -> None:
    rest = "card-title, p"
    neovim.offered(rest, "\n", "A.", fill={".": rest})
    neovim.command("setlocal iskeyword+=-")
    neovim.type("<C-Right>")
    assert neovim.text().rstrip() == ".card-title"


def test_characters_beyond_the_basic_plane(neovim: Neovim) -> None:
    front, rest = "𐐷 = '😀é'; ", "𐐷, '😀😀 à')"
    neovim.offered(rest, front + "\n", "Aprint(", fill={"print(": rest})
    for word in ("𐐷", ", ", "'😀😀"):
        before = neovim.text()
        neovim.type("<C-Right>")
        assert len(neovim.text()) > len(before), word
        neovim.holds(neovim.text())
        neovim.settle()
    neovim.type("<Tab>")
    neovim.holds(f"{front}print({rest}")


def test_after_anything_at_all_the_server_has_the_buffers_text(neovim: Neovim) -> None:
    choices = ["iab <Esc>", "o😀x<Esc>", "<Tab>", "A(<Tab>)<Esc>", "dd", "u", "<C-r>", "xp", "yyP", "J", "gg", "G",
               ">>", "A<C-Right><C-l><Esc>", "i<C-]><Esc>", "ciwq<Esc>", "Vjd", "O\u00e9<CR><Esc>",
               "A <BS><BS><Tab><Esc>"]  # fmt: skip
    numbers = random.Random(20)
    neovim.script(fill="f(😀,\n  y)\n", edit={"ab": "b\na", "x": ""})
    neovim.open("a = 1\nb = '𐐷'\n\nc\n")
    for _ in range(60):
        neovim.type(numbers.choice(choices))
        if numbers.random() < 0.4:
            neovim.settle()
    neovim.settle()
    assert neovim.server_text() == neovim.text() + "\n"


FIRST, SECOND, THIRD = "value_of(x)", "value_of(y)", "None"


def offered(neovim: Neovim, **more: Any) -> None:
    neovim.offered(FIRST, "x, y = 1, 2\n", "ox = ", fill={"x = ": FIRST}, also=[SECOND, f"{FIRST} ", THIRD], **more)


def test_keys_turn_to_the_others_and_back_and_tab_takes_the_one_that_is_shown(neovim: Neovim) -> None:
    offered(neovim)
    seen = []
    for key in ("<M-]>", "<M-]>", "<M-]>", "<M-[>", "<M-[>"):
        neovim.type(key)
        seen.append((neovim.ghost(), neovim.hint()))
    assert seen == [(SECOND, "2/3"), (THIRD, "3/3"), (FIRST, "1/3"), (THIRD, "3/3"), (SECOND, "2/3")]
    with neovim.learns("accepted"):
        neovim.type("<Tab>")
        neovim.until_text(f"x, y = 1, 2\nx = {SECOND}")


def test_what_one_turned_to_stays_while_one_types_what_it_says(neovim: Neovim) -> None:
    offered(neovim)
    neovim.type("<M-]>")
    neovim.type("val")
    neovim.settle()
    assert (neovim.ghost(), neovim.hint()) == (SECOND.removeprefix("val"), "2/2")
    neovim.type("<C-]>")
    assert neovim.ghost() == ""


def test_without_others_the_key_does_what_it_did(neovim: Neovim) -> None:
    neovim.offered()
    neovim.lua("vim.keymap.set('i', '<M-]>', 'mapped')")
    neovim.type("<M-]>")
    assert neovim.text().endswith("x = mapped")
    neovim.lua("vim.keymap.del('i', '<M-]>')")


WHOLE = f"{SUM}\n\n\ndef sub(a, b):\n    return a - b"


def writing(neovim: Neovim) -> None:
    """The first line of a longer text is shown."""
    neovim.offered(SUM, HEAD, "jAre", fill={"    re": WHOLE}, pauses=True)


def test_the_first_line_is_shown_while_the_model_writes_the_rest(neovim: Neovim) -> None:
    writing(neovim)
    asked, seen = len(neovim.asked()), {neovim.ghost()}
    neovim.script(fill=WHOLE)
    while WHOLE not in seen:
        seen.add(neovim.ghost())
    assert seen == {SUM, WHOLE}
    assert len(neovim.asked()) == asked
    with neovim.learns("accepted"):
        neovim.type("<M-l>")
        neovim.until_text(f"{HEAD[:-1]}re{WHOLE}")


def test_the_rest_comes_behind_what_was_typed_along(neovim: Neovim) -> None:
    writing(neovim)
    neovim.type("turn")
    neovim.until_ghost(" a + b")
    neovim.settle()
    neovim.script()
    neovim.until_ghost(WHOLE.removeprefix("turn"))


@pytest.mark.parametrize("keys", ["x", "<Up>", "<C-]>"], ids=["against", "away", "rejected"])
def test_the_rest_of_what_is_gone_is_not_shown(neovim: Neovim, keys: str) -> None:
    writing(neovim)
    neovim.type(keys)
    neovim.until_ghost("")
    neovim.script()
    # As long as the rest takes where it is shown.
    time.sleep(0.2)
    neovim.settle()
    assert neovim.ghost() == ""
