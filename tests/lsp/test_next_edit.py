from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from tests.lsp.editor import URI, Editor, edit_params, span

TEXT = "old = 1\nprint(old)\n"


_LITERALS: dict[str, Any] = {"codeAction": {"codeActionLiteralSupport": {}}}
_BOTH = {"textDocument": _LITERALS | {"inlineCompletion": {}}}


async def actions(editor: Editor, **context: Any) -> Any:
    """What the menu at the end of the changed word holds."""
    params = {"textDocument": {"uri": URI}, "range": span(0, 3, 3), "context": {"diagnostics": [], **context}}
    return await editor.ask("textDocument/codeAction", params)


async def edited(editor: Editor, capabilities: Any = None) -> None:
    """The user renamed the first `old`; the model would rename the second."""
    editor.script.edit = {"print(old)": "print(new)"}
    await editor.begin(TEXT, capabilities, extensions=capabilities is None)
    editor.change(2, {"range": span(0, 0, 3), "text": "new"})


async def test_an_edit_names_document_version_range_and_command(editor: Editor) -> None:
    await edited(editor)
    (edit,) = (await editor.next_edit(0, 3, version=2))["edits"]
    assert (await editor.next_edit(0, 3, version=None))["edits"] == [edit]
    assert edit["textDocument"] == {"uri": URI, "version": 2}
    assert edit["range"]["start"]["line"] == 1
    assert edit["command"]["command"] == "calomel.accept"
    start, end = edit["range"]["start"]["character"], edit["range"]["end"]["character"]
    line = "print(old)"
    assert line[:start] + edit["text"] + line[end:] == "print(new)"


async def test_a_word_that_an_accepted_edit_left_as_it_was_may_be_changed_next(editor: Editor) -> None:
    """Some editors report an edit of several places as one change from the first place to the last."""
    editor.script.edit = {"amount": "value"}
    lines = ["    amount = cart.total()", "    left = amount - (amount * percent) / amount", "    return left"]
    await editor.begin("\n".join(["def discounted(cart, percent):", *lines, ""]))
    editor.change(2, {"range": span(1, 4, 10), "text": "value"})
    (edit,) = (await editor.next_edit(1, 9, version=2))["edits"]
    assert edit["text"] == "value - (value * percent) / value"
    editor.change(3, {"range": edit["range"], "text": edit["text"]})
    await editor.command("calomel.accept", *edit["command"]["arguments"])
    editor.script.edit = {"percent": "share"}
    editor.change(4, {"range": span(0, 21, 28), "text": "share"})
    (edit,) = (await editor.next_edit(0, 26, version=4))["edits"]
    assert (edit["text"], edit["range"]["start"]["line"]) == ("share", 2)


@pytest.mark.parametrize("version", [1, 3])
async def test_another_version_than_ours_gets_no_edit(editor: Editor, version: int) -> None:
    await edited(editor)
    assert await editor.next_edit(0, 3, version=version) == {"edits": []}
    assert await editor.silence() == "stale"


async def test_no_edit_is_an_empty_list_never_null_or_an_error(editor: Editor) -> None:
    editor.script.error = "failed"
    await editor.initialize()
    assert await editor.next_edit(0, 0) == {"edits": []}
    editor.open(TEXT)
    assert await editor.next_edit(0, 0) == {"edits": []}
    editor.change(2, {"range": span(0, 0, 3), "text": "new"})
    assert await editor.next_edit(0, 3, version=2) == {"edits": []}


async def test_a_superseded_question_gets_an_empty_list(editor: Editor) -> None:
    editor.script.hold = asyncio.Event()
    await edited(editor)
    first = editor.start("textDocument/copilotInlineEdit", edit_params(0, 3, 2))
    await editor.until_asked()
    editor.change(3, {"range": span(0, 3, 3), "text": "er"})
    second = editor.start("textDocument/copilotInlineEdit", edit_params(0, 5, 3))
    assert (await editor.answer(first))["result"] == {"edits": []}
    editor.script.hold.set()
    await editor.answer(second)


async def test_diagnostics_of_every_form_are_hints_not_errors(editor: Editor) -> None:
    await edited(editor)
    params = edit_params(0, 3, 2)
    good = {"severity": "error", "message": "undefined: old", "range": span(1, 6, 9), "code": "E1", "source": "x"}
    params["diagnostics"] = [good, good | {"severity": 1}, 5, None, {}, {"range": 5, "message": "x"}]
    assert len((await editor.ask("textDocument/copilotInlineEdit", params))["edits"]) == 1


async def test_the_action_applies_the_edit_in_clients_that_know_nothing_else(editor: Editor) -> None:
    capabilities = {
        "workspace": {"workspaceEdit": {"documentChanges": True}},
        "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}},
    }
    await edited(editor, capabilities)
    (action,) = await actions(editor, triggerKind=1)
    assert action["title"] == "Apply next edit"
    (change,) = action["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 2}
    assert action["command"]["command"] == "calomel.accept"


@pytest.mark.parametrize("context", [{"triggerKind": 2}, {"only": ["quickfix"]}])
async def test_a_menu_that_nobody_opened_asks_no_model(editor: Editor, context: dict[str, Any]) -> None:
    await edited(editor, {"textDocument": _LITERALS})
    assert await actions(editor, **context) == []
    assert editor.script.requests == []


async def test_a_client_with_ghost_text_alone_is_offered_the_edit_too(editor: Editor) -> None:
    await edited(editor, _BOTH)
    (action,) = await actions(editor)
    assert action["title"] == "Apply next edit"


async def test_a_client_that_asks_for_next_edits_is_asked_nothing_more_by_its_menus(editor: Editor) -> None:
    await edited(editor, _BOTH)
    editor.script.edit = {}
    assert await editor.next_edit(0, 3, version=2) == {"edits": []}
    asked = len(editor.script.requests)
    assert await actions(editor, triggerKind=1) == []
    assert len(editor.script.requests) == asked


async def test_a_known_edit_is_offered_without_asking(editor: Editor) -> None:
    await edited(editor, {"textDocument": _LITERALS})
    await editor.next_edit(0, 3, version=2)
    asked = len(editor.script.requests)
    (action,) = await actions(editor, triggerKind=2)
    assert list(action["edit"]["changes"]) == [URI]
    assert asked == len(editor.script.requests)


@pytest.mark.parametrize("command", ["reject", "toggle", "snooze"])
async def test_a_menu_does_not_hold_what_was_dismissed_or_turned_off(editor: Editor, command: str) -> None:
    await edited(editor, {"textDocument": _LITERALS})
    (edit,) = (await editor.next_edit(0, 3, version=2))["edits"]
    assert len(await actions(editor, triggerKind=2)) == 1
    arguments = {"reject": edit["command"]["arguments"], "toggle": [], "snooze": [5]}
    await editor.command(f"calomel.{command}", *arguments[command])
    assert await actions(editor, triggerKind=2) == []


async def test_a_menu_does_not_hold_an_edit_of_the_text_before_the_document_was_opened_again(editor: Editor) -> None:
    await edited(editor, {"textDocument": _LITERALS})
    await editor.next_edit(0, 3, version=2)
    editor.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    editor.open("# another branch\n" + TEXT, version=1)
    editor.change(2, {"range": span(1, 0, 3), "text": "new"})
    assert await actions(editor, triggerKind=2) == []


async def test_what_was_shown_and_rejected_does_not_come_back(editor: Editor) -> None:
    await edited(editor)
    (edit,) = (await editor.next_edit(0, 3, version=2))["edits"]
    (name,) = edit["command"]["arguments"]
    editor.notify("textDocument/didShowInlineEdit", {"item": {"command": {"arguments": [name]}}})
    assert await editor.command("calomel.reject", name)
    assert await editor.next_edit(0, 3, version=2) == {"edits": []}
    assert (await editor.outcomes())["rejected"] == 1


BLANK = "\n" * 40


@pytest.mark.parametrize(
    "ends", [("\n", "\r\n", "\n", "\r\n"), ("\r\n", "\n", "\n", "\r\n"), ("\n", "\r\n", "\r\n", "\r\n")]
)
async def test_line_ends_of_both_kinds_stay_where_they_are(editor: Editor, ends: tuple[str, ...]) -> None:
    editor.script.edit = {"old": "new"}
    lines = [line + end for line, end in zip(["old = 1", "print(old)", "x = old", "print(x)"], ends, strict=True)]
    await editor.begin("".join(lines))
    editor.change(2, {"range": span(0, 0, 3), "text": "new"})
    (edit,) = (await editor.next_edit(0, 3, version=2))["edits"]
    editor.change(3, {"range": edit["range"], "text": edit["text"]})
    assert await editor.text() == "".join(lines).replace("old", "new")


AMOUNTS = f"amount = total()\namount = amount - amount * 2\nif amount < 0:\n    amount = 0\n{BLANK}print(amount)\n"


def each_place(answer: dict[str, Any], text: str) -> list[dict[str, Any]]:
    """An edit of the server as an editor makes it that replaces each word by itself, from the last one to the first."""
    (edit,) = answer["edits"]
    lines = text.split("\n")
    start, end = edit["range"]["start"], edit["range"]["end"]
    first, last = start["line"], end["line"]
    new = lines[first][: start["character"]] + edit["text"] + lines[last][end["character"] :]
    changes = []
    for row, line in enumerate(new.split("\n"), first):
        changes += [
            {"range": span(row, match.start(), match.end()), "text": "value"}
            for match in re.finditer("amount", lines[row])
            if lines[row] != line
        ]
    return changes[::-1]


@pytest.mark.parametrize("told", ["afterwards", "before", "never"])
async def test_an_edit_made_at_several_places_at_once_is_no_sign_of_several_cursors(editor: Editor, told: str) -> None:
    editor.script.edit = {"amount": "value"}
    await editor.begin(AMOUNTS)
    editor.change(2, {"range": span(0, 0, 6), "text": "value"})
    answer = await editor.next_edit(0, 5, version=2)
    changes = each_place(answer, AMOUNTS)
    assert len(changes) >= 3
    command = answer["edits"][0]["command"]
    if told == "before":
        await editor.command(command["command"], *command["arguments"])
    editor.change(3, *changes)
    if told == "afterwards":
        await editor.command(command["command"], *command["arguments"])
    cursor = changes[0]["range"]["start"]
    assert (await editor.next_edit(cursor["line"], cursor["character"] + 5, version=3))["edits"] != []


async def test_the_same_word_typed_at_several_places_is_one_of_several_cursors(editor: Editor) -> None:
    editor.script.edit = {"amount": "value"}
    await editor.begin(AMOUNTS)
    editor.change(2, {"range": span(4, 0, 0), "text": "v"}, {"range": span(2, 0, 0), "text": "v"})
    assert await editor.next_edit(4, 1, version=2) == {"edits": []}
    assert await editor.silence() == "multi_cursor"


async def test_a_formatter_that_changes_several_places_alike_is_no_sign_of_several_cursors(editor: Editor) -> None:
    editor.script.edit = {"amount": "value"}
    await editor.begin(AMOUNTS + "f(1,2)\ng(3,4)\n")
    editor.change(2, {"range": span(0, 0, 6), "text": "value"})
    rows = [AMOUNTS.count("\n") + 1, AMOUNTS.count("\n")]
    editor.change(3, *({"range": span(row, 4, 4), "text": " "} for row in rows))
    assert (await editor.next_edit(0, 5, version=3))["edits"] != []
    # Whoever types there has several cursors indeed.
    assert await editor.next_edit(rows[0], 5, version=3) == {"edits": []}
    assert await editor.silence() == "multi_cursor"
