"""Whatever a file holds, the server answers: each turn of its event loop is short, and what nobody waits for ends.

The fixture of this folder measures the turns.
"""

from __future__ import annotations

import asyncio
import threading
from itertools import cycle

import pytest
from tests.lsp.editor import SECONDS, Editor, span
from tests.shapes import SHAPES

from calomel.code.budget import check, in_thread
from calomel.code.languages import GRAMMARS

# Each shape in two languages, one of which knows nothing of it; all grammars have their turn.
SIZE = 60_000
LANGUAGES = [grammar.ids[0] for grammar in GRAMMARS]
PAIRS = [(name, language) for name, first in zip(SHAPES, cycle(LANGUAGES)) for language in {first, "c"}]


@pytest.mark.parametrize(("name", "language"), sorted(PAIRS))
async def test_a_key_and_a_question_in_any_text_keep_nobody_waiting(editor: Editor, name: str, language: str) -> None:
    uri, text = f"file:///workspace/a.{language}", SHAPES[name](SIZE)
    await editor.initialize(options={"calomel": {"suggest": {"debounce_seconds": 0}}})
    await asyncio.to_thread(editor.open, text, uri, language)
    lines = text.split("\n")
    row = len(lines) // 2
    column = len(lines[row]) // 2
    editor.change(2, {"range": span(row, column, column), "text": "ab("}, uri=uri)
    editor.script.edit = {"ab(": "abc("}
    assert "edits" in await editor.next_edit(row, column + 3, 2, uri)
    await editor.inline(row, column + 3, uri=uri)
    # A name is written over what stands there, as in many other places.
    editor.change(3, {"range": span(row, 0, min(12, column)), "text": "renamed"}, uri=uri)
    assert "edits" in await editor.next_edit(row, 7, 3, uri)
    assert (await editor.command("calomel.status"))["outcomes"] is not None


@pytest.mark.parametrize("upwards", [False, True])
async def test_a_change_at_a_thousand_cursors_keeps_nobody_waiting(editor: Editor, *, upwards: bool) -> None:
    await editor.initialize(options={"calomel": {"debug": True}})
    await asyncio.to_thread(editor.open, "foo(bar, baz)\n" * 30_000)
    rows = range(0, 30_000, 30)
    changes = [{"range": span(row, 4, 7), "text": "renamed"} for row in (reversed(rows) if upwards else rows)]
    await asyncio.to_thread(editor.change, 2, *changes)
    assert (await editor.text()).count("foo(renamed, baz)\n") == 1_000


async def test_work_in_a_thread_ends_when_nobody_waits_for_it_any_more() -> None:
    begun, over = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        loop.call_soon_threadsafe(begun.set)
        try:
            while True:
                check()
        finally:
            over.set()

    task = asyncio.create_task(in_thread(3600.0, work))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(over.wait, SECONDS)
