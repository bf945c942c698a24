"""Items beside the first one, for those who want another."""

from __future__ import annotations

from typing import Any

from tests.lsp.editor import Editor, span

ADD = "return a + b"
SUBTRACT, LESS = "return a - b", "return b"


async def offered(editor: Editor, *also: str, fill: str = ADD, kind: int = 2) -> list[dict[str, Any]]:
    """What is offered in an empty function, where the model says all of this."""
    editor.script.fill, editor.script.also = fill, also
    await editor.begin()
    return list((await editor.inline(1, 4, kind))["items"])


def texts(items: list[dict[str, Any]]) -> list[str]:
    return [item["insertText"] for item in items]


def name(item: dict[str, Any]) -> str:
    return str(item["command"]["arguments"][0])


async def test_there_are_three_at_most_the_likeliest_first_and_no_two_alike(editor: Editor) -> None:
    items = await offered(editor, f"{ADD}  ", SUBTRACT, LESS, "return a")
    assert texts(items) == [ADD, SUBTRACT, LESS]
    assert len({name(item) for item in items}) == 3
    assert len(editor.script.requests) == 1


async def test_what_no_filter_lets_through_is_not_among_them(editor: Editor) -> None:
    assert texts(await offered(editor, "return (a", "   ", SUBTRACT)) == [ADD, SUBTRACT]


async def test_of_several_lines_the_first_one_may_be_had_alone(editor: Editor) -> None:
    whole = "total = a + b\n    return total"
    assert texts(await offered(editor, fill=whole)) == [whole, "total = a + b"]


async def test_each_is_taken_and_counted_by_itself(editor: Editor) -> None:
    items = await offered(editor, SUBTRACT)
    for item in items:
        editor.notify("textDocument/didShowCompletion", {"item": item})
    await editor.command("calomel.accept", name(items[1]))
    editor.change(2, {"range": span(1, 4, 4), "text": SUBTRACT})
    outcomes = await editor.outcomes()
    assert (outcomes["accepted"], outcomes["shown"]) == (1, 1)


async def test_the_text_tells_which_was_taken(editor: Editor) -> None:
    items = await offered(editor, SUBTRACT)
    editor.notify("textDocument/didShowCompletion", {"item": items[0]})
    editor.change(2, {"range": span(1, 4, 4), "text": SUBTRACT})
    assert (await editor.outcomes())["accepted"] == 1


async def test_parts_of_each_are_counted_by_itself(editor: Editor) -> None:
    items = await offered(editor, SUBTRACT)
    editor.notify("textDocument/didShowCompletion", {"item": items[1]})
    editor.change(2, {"range": span(1, 4, 4), "text": "return a -"})
    partly = {"item": items[1], "acceptedLength": len("return a -")}
    editor.notify("textDocument/didPartiallyAcceptCompletion", partly)
    assert (await editor.outcomes())["partly_accepted"] == 1


async def test_they_stay_under_their_names_while_the_user_types_what_they_say(editor: Editor) -> None:
    items = await offered(editor, SUBTRACT, LESS)
    editor.change(2, {"range": span(1, 4, 4), "text": "return "})
    left = (await editor.inline(1, 11, 2))["items"]
    assert texts(left) == ["a + b", "a - b", "b"]
    assert [*map(name, left)] == [*map(name, items)]
    editor.change(3, {"range": span(1, 11, 11), "text": "a -"})
    (only,) = (await editor.inline(1, 14, 2))["items"]
    assert (only["insertText"], name(only)) == (" b", name(items[1]))
    assert len(editor.script.requests) == 1


async def test_a_rejected_one_is_not_among_them_again(editor: Editor) -> None:
    items = await offered(editor, SUBTRACT, LESS)
    await editor.command("calomel.reject", name(items[1]))
    assert texts((await editor.inline(1, 4, 2))["items"]) == [ADD, LESS]


async def test_one_without_others_is_one(editor: Editor) -> None:
    assert texts(await offered(editor, kind=1)) == [ADD]
    assert texts((await editor.inline(1, 4))["items"]) == [ADD]
