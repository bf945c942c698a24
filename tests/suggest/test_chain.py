"""What Tab after Tab would visit: counted before the first one, and each with the cursor where it belongs."""

from __future__ import annotations

import pytest
from tests.suggest.editor import NOW, URI, editing, settle, suggestion

from calomel.code.names import names_of
from calomel.infer.completer import Candidate, CompleteRequest
from calomel.suggest.edit import to_its_end
from calomel.workspace.edits import TextEdit, apply

# Places further apart are not accepted together.
GAP = "    x += 1\n" * 30
TEXT = f"def f(|items):\n    x = items\n{GAP}    y = items\n{GAP}    return items\n"


def drafted(request: CompleteRequest) -> tuple[Candidate, ...]:
    """A model that agrees with every rule."""
    return tuple(
        Candidate(draft.text, (-0.1,), maker=draft.maker, log_prob=-1.0, keep_log_prob=-6.0) for draft in request.drafts
    )


async def test_the_places_of_a_rename_are_counted_and_the_model_is_asked_no_more() -> None:
    async with editing(TEXT, drafted, settings=NOW) as editor:
        at = editor.document.text.index("items")
        editor.change((at, at + len("items"), "points"))
        counts: list[tuple[int, int, int]] = []
        told: list[str] = []
        asked = 0
        editor.suggester.tells_counts(told.append)
        first = suggestion(await editor.next_edit())
        assert (first.index, first.total, told) == (1, 1, [])
        await settle()
        assert told == [URI]
        while "items" in editor.document.text:
            answer = suggestion(await editor.next_edit())
            assert answer.id == first.id or counts
            counts.append((answer.index, answer.total, len(answer.rest)))
            asked = asked or len(editor.model.requests)
            for edit in answer.edits:
                editor.change(edit)
            editor.suggester.accepted(answer.id)
            assert answer.cursor_after is not None
            editor.cursor = answer.cursor_after
            assert editor.text[: editor.cursor].endswith("points")
        assert counts == [(1, 3, 2), (2, 3, 1), (3, 3, 0)]
        assert len(editor.model.requests) == asked


async def test_where_the_model_doubts_a_place_there_is_no_number() -> None:
    def doubting(request: CompleteRequest) -> tuple[Candidate, ...]:
        return tuple(each for each in drafted(request) if "return points" not in each.text)

    async with editing(TEXT, doubting, settings=NOW) as editor:
        at = editor.document.text.index("items")
        editor.change((at, at + len("items"), "points"))
        await editor.next_edit()
        await settle()
        answer = suggestion(await editor.next_edit())
        assert (answer.index, answer.total) == (1, 1)


@pytest.mark.parametrize(
    ("text", "edit", "ends"),
    [
        ("show(⟨⟩price, 1)\n", "unit_", "show(unit_price|, 1)\n"),
        ("show(⟨item⟩s, 1)\n", "point", "show(points|, 1)\n"),
        ("show(⟨unit_⟩price, 1)\n", "", "show(price|, 1)\n"),
        ("show(⟨⟩price)\n", "a, ", "show(a, |price)\n"),
        ("show(price⟨⟩)\n", "s", "show(prices|)\n"),
        ("a\n⟨⟩b\n", "c\n", "a\nc|\nb\n"),
        ("a\r\n⟨⟩b\r\n", "c\r\n", "a\r\nc|\r\nb\r\n"),
        ("⟨a\n⟩b\n", "c\n", "c|\nb\n"),
        ("show(⟨a⟩)\nb\n", "c)\nshow(d", "show(c)\nshow(d)|\nb\n"),
        ("⟨a\n⟩b\n", "", "|b\n"),
        ("⟨⟩b\n", "c\n", "c\n|b\n"),
    ],
    ids=[
        "begins",
        "ends",
        "removed",
        "before_a_name",
        "whole",
        "line",
        "crlf",
        "line_for_line",
        "more_lines",
        "gone",
        "first",
    ],
)
def test_an_edit_ends_where_the_cursor_belongs(text: str, edit: str, ends: str) -> None:
    start, end = text.index("⟨"), text.index("⟩") - 1
    text = text.replace("⟨", "").replace("⟩", "")
    given = TextEdit(start, end, edit)
    whole = to_its_end(text, given, names_of("python"))
    result = apply(text, [whole])
    assert result == apply(text, [given])
    behind = whole.start + len(whole.text)
    assert f"{result[:behind]}|{result[behind:]}" == ends
