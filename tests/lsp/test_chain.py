"""The places of a rename, counted while the first is looked at; and where the cursor is behind an accepted edit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.lsp.editor import URI, Editor, span
from tests.suggest.editor import Reply
from tests.suggest.test_chain import GAP, drafted

from calomel.infer.completer import CompleteRequest

# Places so far apart are not accepted together.
TEXT = f"def f(items):\n    x = items\n{GAP}    y = items\n{GAP}    return items\n"
ROWS = [line for line, text in enumerate(TEXT.split("\n")) if "items" in text]


async def renamed(editor: Editor, reply: Callable[[CompleteRequest], Reply] = drafted, **options: Any) -> Any:
    """The user renames the parameter; the first edit that is offered."""
    editor.script.reply = reply
    await editor.begin(TEXT, **options)
    editor.change(2, {"range": span(0, 6, 11), "text": "lot"})
    return await offered(editor)


async def offered(editor: Editor, line: int = 0, character: int = 9, version: int = 2) -> Any:
    (edit,) = (await editor.next_edit(line, character, version))["edits"]
    return edit


async def test_a_notice_tells_of_the_count(editor: Editor) -> None:
    first = await renamed(editor)
    assert "chain" not in first
    assert await editor.notice("calomel/count") == {"uri": URI}
    again = await offered(editor)
    chain = again.pop("chain")
    assert again == first
    assert (chain["index"], chain["total"]) == (1, 3)
    assert [each["range"]["start"]["line"] for each in chain["rest"]] == ROWS[2:]
    assert {each["text"] for each in chain["rest"]} == {"lot"}


async def test_an_accepted_place_counts_on(editor: Editor) -> None:
    await renamed(editor)
    await editor.notice("calomel/count")
    edit = await offered(editor)
    asked, counts = len(editor.script.requests), []
    for version, row in enumerate(ROWS[1:], 3):
        assert edit["range"]["start"]["line"] == row
        editor.change(version, {"range": edit["range"], "text": edit["text"]})
        await editor.command("calomel.accept", *edit["command"]["arguments"])
        if row != ROWS[-1]:
            end = edit["range"]["start"]["character"] + len(edit["text"])
            edit = await offered(editor, row, end, version)
            counts.append((edit["chain"]["index"], edit["chain"]["total"], len(edit["chain"]["rest"])))
    assert counts == [(2, 3, 1), (3, 3, 0)]
    assert len(editor.script.requests) == asked
    assert await editor.text() == TEXT.replace("items", "lot")


async def test_one_doubted_place_leaves_no_count(editor: Editor) -> None:
    def doubting(request: CompleteRequest) -> Reply:
        return tuple(each for each in drafted(request) if "return lot" not in each.text)

    await renamed(editor, doubting)
    await editor.until_asked(len(ROWS) - 1)
    assert "chain" not in await offered(editor)
    assert editor.shown("calomel/count") == []


async def test_whoever_types_on_gets_no_count(editor: Editor) -> None:
    def then_busy(request: CompleteRequest) -> Reply:
        editor.script.hold = asyncio.Event()
        return drafted(request)

    await renamed(editor, then_busy)
    await editor.until_asked(2)
    editor.change(3, {"range": span(1, 4, 4), "text": "y = "})
    assert await editor.alive()
    assert editor.script.hold is not None
    editor.script.hold.set()
    assert await editor.alive()
    assert editor.shown("calomel/count") == []
    assert len(editor.script.requests) == 2


async def test_other_clients_get_no_notice(editor: Editor) -> None:
    await renamed(editor, extensions=False)
    await editor.until_asked(len(ROWS) - 1)
    assert "chain" not in await offered(editor)
    assert editor.shown("calomel/count") == []


@pytest.mark.parametrize(
    ("old", "new", "line", "rewritten", "ends"),
    [
        ("price", "unit_price", "show(price, 1)", "show(unit_price, 1)", "show(unit_price|, 1)"),
        ("items", "points", "show(items, 1)", "show(points, 1)", "show(points|, 1)"),
        ("old_rate", "rate", "show(old_rate, 1)", "show(rate, 1)", "show(rate|, 1)"),
        ("old", "new", "print(old)", "print(new)\nprint(new, 2)", "print(new)\nprint(new, 2)|"),
    ],
    ids=["longer", "other", "shorter", "lines"],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
async def test_an_edit_ends_behind_what_is_accepted(
    editor: Editor, old: str, new: str, line: str, rewritten: str, ends: str, end: str
) -> None:
    editor.script.edit = {line: rewritten}
    await editor.begin(f"{old} = 1\n{line}\ny = 3\n".replace("\n", end))
    editor.change(2, {"range": span(0, 0, len(old)), "text": new})
    edit = await offered(editor, 0, len(new))
    editor.change(3, {"range": edit["range"], "text": edit["text"]})
    after = (await editor.text()).split(end)
    start, lines = edit["range"]["start"], edit["text"].split(end)
    row, column = start["line"] + len(lines) - 1, len(lines[-1]) + (start["character"] if len(lines) == 1 else 0)
    after[row] = f"{after[row][:column]}|{after[row][column:]}"
    assert after == f"{new} = 1\n{ends}\ny = 3\n".split("\n")
