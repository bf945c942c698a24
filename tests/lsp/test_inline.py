from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.lsp.editor import SECONDS, URI, Editor, at, inline_params, place, span


async def test_the_capability_is_advertised_as_an_object(editor: Editor) -> None:
    result = await editor.initialize()
    assert result["capabilities"]["inlineCompletionProvider"] == {"workDoneProgress": False}
    assert "completionProvider" not in result["capabilities"]


@pytest.mark.parametrize(
    ("text", "line_end"),
    [
        ("import os\r\ndef add(a, b):\n    \nprint()\r\n", "\n"),
        ("import os\ndef add(a, b):\n    \r\nprint()\n", "\r\n"),
        ("import os\ndef add(a, b):\r\n    ", "\r\n"),
        ("import os\r\ndef add(a, b):\n    ", "\n"),
    ],
)
async def test_lines_end_as_the_one_being_typed_on(editor: Editor, text: str, line_end: str) -> None:
    editor.script.fill = "total = a + b\n    return total"
    await editor.begin(text)
    item, *_ = (await editor.inline(2, 4))["items"]
    assert item["insertText"] == f"total = a + b{line_end}    return total"


async def test_a_superseded_request_is_answered_with_null(editor: Editor) -> None:
    editor.script.hold = asyncio.Event()
    editor.script.fill = "a + b"
    await editor.begin("x = \n")
    first = editor.start("textDocument/inlineCompletion", inline_params(0, 4))
    await editor.until_asked()
    editor.change(2, {"range": span(0, 4, 4), "text": "("})
    second = editor.start("textDocument/inlineCompletion", inline_params(0, 5))
    assert (await editor.answer(first))["result"] is None
    editor.script.hold.set()
    assert (await editor.answer(second))["result"]["items"]
    assert not editor.shown("calomel/silence")


async def test_a_question_is_about_the_text_as_it_was_when_it_came(editor: Editor) -> None:
    """A question and the next keystrokes arrive in one piece: the question is not about the newer text."""
    await editor.begin()
    await editor.inline(1, 4)
    number = editor.start("textDocument/inlineCompletion", inline_params(1, 4))
    editor.change(2, {"range": span(0, 0, 0), "text": "# above\n"})
    answer = (await editor.answer(number))["result"]
    assert answer is None or span(1, 4, 4) == answer["items"][0]["range"]


async def test_a_document_that_was_never_opened_is_answered_with_null(editor: Editor) -> None:
    await editor.initialize(options={"calomel": {"extensions": True}})
    assert await editor.inline(0, 0) is None
    notice = await editor.notice("calomel/silence")
    assert (notice["kind"], notice["reason"], notice["uri"]) == ("fill", "unknown_document", URI)
    assert notice["message"]


async def test_a_position_beyond_the_text_is_its_end(editor: Editor) -> None:
    editor.script.fill = "a + b"
    await editor.begin("x = ")
    answer = await editor.inline(99, 99)
    assert at(0, 4) == answer["items"][0]["range"]["start"]


async def test_a_failing_model_is_silence_not_an_error(editor: Editor) -> None:
    editor.script.error = "failed"
    await editor.begin("x = \n")
    assert await editor.inline(0, 4) is None
    assert await editor.silence() == "failed"


async def test_the_selected_item_of_a_popup_is_continued(editor: Editor) -> None:
    editor.script.fill = "d(a, b)"
    await editor.begin("import math\nmath.\n")
    params = inline_params(1, 5)
    params["context"]["selectedCompletionInfo"] = {"range": span(1, 5, 5), "text": "gc"}
    answer = await editor.ask("textDocument/inlineCompletion", params)
    assert answer is None or answer["items"][0]["insertText"].startswith("gc")
    assert editor.script.requests[-1].parts.prefix.endswith("math.gc")


@pytest.mark.parametrize(
    ("language", "typed", "fill", "label"),
    [
        ("python", "x = self.siz", "e()", "size()"),
        ("python", "x = self.", "size()", "size()"),
        ("python", "é = naï", "ve", "naïve"),
        ("emacs-lisp", "(goto-ch", "ar (point-min))", "goto-char (point-min))"),
        ("python", "end = top-ch", "ars", "chars"),
    ],
)
async def test_the_popup_item_begins_where_its_word_does(
    editor: Editor, language: str, typed: str, fill: str, label: str
) -> None:
    """Clients drop an item that does not begin as what was typed."""
    result = await editor.initialize(options={"calomel": {"completion_item": True}})
    assert "completionProvider" in result["capabilities"]
    editor.open(typed[:-1] + "\n", language=language)
    editor.change(2, {"range": span(0, len(typed) - 1, len(typed) - 1), "text": typed[-1]})
    editor.script.fill = fill
    (item,) = (await editor.ask("textDocument/completion", inline_params(0, len(typed))))["items"]
    assert (item["label"], item["filterText"]) == (label, label)
    where = span(0, len(typed) + len(fill) - len(label), len(typed))
    assert item["textEdit"] == {"newText": label, "range": where}
    assert item["command"]["command"] == "calomel.accept"


async def test_without_the_option_there_is_no_popup_item(editor: Editor) -> None:
    await editor.initialize()
    assert await editor.error("textDocument/completion", place(0, 0)) == -32601


async def ask_within_a_pattern(editor: Editor, typed: str) -> Any:
    """What is suggested behind text among functions that repeat each other, but for a number."""
    text = [
        f'def handler_{n:04}(request, store):\n    """Kind {n}."""\n    return store.get("kind-{n}", {n})\n\n'
        for n in (*range(7, 13), *range(14, 19))
    ]
    before = "".join(text[:6]) + typed
    await editor.begin(f"{before}\n\n{''.join(text[6:])}")
    return await editor.inline(before.count("\n"), len(typed.rsplit("\n", 1)[-1]))


@pytest.mark.parametrize(
    ("typed", "rest"),
    [
        ("def han", "dler_0013(request, store):"),
        ("def handler_0013(", "request, store):"),
        ("def handler_0013(request, store):\n    ", '"""Kind 13."""'),
        ('def handler_0013(request, store):\n    """Kind 13."""\n    ret', 'urn store.get("kind-13", 13)'),
        ('def handler_0013(request, store):\n    """Kind 13."""\n    return store.get("kind-1', '3", 13)'),
    ],
)
async def test_a_repeated_pattern_is_completed_with_the_own_number(editor: Editor, typed: str, rest: str) -> None:
    await ask_within_a_pattern(editor, typed)
    (request,) = editor.script.requests
    assert [draft.text for draft in request.drafts] == [rest]


@pytest.mark.parametrize(
    ("typed", "copied"),
    [
        ("def handler_", "0012(request, store):"),
        ("def handler_0013(request, store):\n    ", '"""Kind 12."""'),
        ('def handler_0013(request, store):\n    """Kind 13."""\n    return ', 'store.get("kind-13", 12)'),
        ('def handler_0013(request, store):\n    """Kind 13."""\n    return store.get("kind-', '1", 13)'),
    ],
)
async def test_a_neighbours_number_is_never_offered(editor: Editor, typed: str, copied: str) -> None:
    editor.script.fill = copied
    assert await ask_within_a_pattern(editor, typed) is None


async def test_the_place_that_the_user_looks_at_is_read_before_anybody_asks(editor: Editor) -> None:
    editor.script.reads_ahead, editor.script.fill = True, "a + b"
    await editor.begin("x = 1\ny = \n")
    editor.notify("textDocument/didFocus", place(1, 4))

    await asyncio.wait_for(editor.script.asked.wait(), SECONDS)

    assert [(each.ahead, each.parts.prefix) for each in editor.script.requests] == [(True, "x = 1\ny = ")]
    assert (await editor.inline(1, 4))["items"]
    assert [each.ahead for each in editor.script.requests] == [True, False]


# Items beside the first one, for those who want another.
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
