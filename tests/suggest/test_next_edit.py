"""Next edits: at the cursor, and where the last edits go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.suggest.editor import NOW, URI, ScriptedModel, editing, reason, region, settle, suggestion

from calomel.infer.completer import Candidate, CompleteRequest, Kind, ModelInfo
from calomel.prompts.parts import RegionBounds
from calomel.suggest.edit import Suggestion
from calomel.suggest.snapshot import Diagnostic, Trigger
from calomel.workspace.privacy import Privacy
from calomel.workspace.syntax import SyntaxTrees

FILLS: tuple[Kind, ...] = ("fill",)


LINES = "".join(f"line_{number} = old_name\n" for number in range(20))


async def test_the_lines_around_the_cursor_are_rewritten() -> None:
    async with editing(LINES.replace("line_9", "line_9|"), lambda request: region(request).replace("line_11", "other"),
                       settings=NOW) as editor:  # fmt: skip
        editor.type("x")
        answer = suggestion(await editor.next_edit())
        (request,) = editor.model.requests
        assert region(request).splitlines()[0] == "line_7 = old_name"
        assert region(request).splitlines()[-1] == "line_14 = old_name"
        parts = request.parts
        assert parts.region is not None
        assert parts.prefix + parts.region.text + parts.suffix == editor.document.text
        assert parts.region.text[: parts.region.cursor].endswith("line_9x")
        assert editor.after(answer) == editor.document.text.replace("line_11", "other")
        assert len(answer.edits) == 1


async def test_a_model_that_only_fills_in_says_so() -> None:
    async with editing("x = |\n", model=ScriptedModel(kinds=FILLS), settings=NOW) as editor:
        editor.type("1")
        assert reason(await editor.next_edit()) == "not_trained_for_edits"
        assert editor.model.requests == []


async def test_a_model_that_only_fills_in_continues_a_rename_if_it_would_write_the_new_name() -> None:
    text = "old_name = 1\n\n\n\nprint(old_name)\nlog(old_name)\n"
    said = ["new_name", "new_names"]
    async with editing("|" + text, lambda _: said.pop(), model=ScriptedModel(kinds=FILLS), settings=NOW) as editor:
        editor.change((0, 3, "new"))
        answer = await editor.next_edit()
        assert editor.after(answer) == "new_name = 1\n\n\n\nprint(old_name)\nlog(new_name)\n"
        assert [request.kind for request in editor.model.requests] == ["fill", "fill"]
        assert editor.model.requests[0].parts.prefix.endswith("print(")
        assert editor.model.requests[0].parts.suffix.startswith(")\nlog(")


async def test_what_follows_from_a_name_that_is_half_typed_is_not_offered_for_the_whole_one() -> None:
    def renamed(request: CompleteRequest) -> str:
        new = request.parts.prefix + region(request)
        return region(request).replace("print(items)", f"print({new.split(' ', 1)[0]})")

    async with editing("|= 1\nprint(items)\n", renamed, settings=NOW) as editor:
        editor.type("po ")
        assert editor.after(await editor.next_edit()) == "po = 1\nprint(po)\n"
        editor.backspace()
        editor.type("ints ")
        assert editor.after(await editor.next_edit()) == "points = 1\nprint(points)\n"
        # What is typed elsewhere leaves it as it is.
        editor.change((len(editor.text), len(editor.text), "x"))
        asked = len(editor.model.requests)
        assert editor.after(await editor.next_edit()).startswith("points = 1\nprint(points)\n")
        assert len(editor.model.requests) == asked


def fills(text: str) -> Callable[[CompleteRequest], str]:
    """Takes the first draft of a region, and writes this into holes."""

    def reply(request: CompleteRequest) -> str:
        if request.kind == "fill":
            return text
        return request.drafts[0].text if request.drafts else region(request)

    return reply


@pytest.mark.parametrize("held_back", [False, True])
@pytest.mark.parametrize(
    ("text", "typed", "filling", "finished"),
    [
        ("values = [|\nprint(values)\n", "1, ", "2]", True),
        ("values = [|\nprint(values)\n", "1, ", "2", False),
        ("total = 1\nprint(|)\n", "tot", "al", True),
        ("total = 1\nprint(|)\n", "total", "s", False),
    ],
)
async def test_what_was_left_within_a_line_is_finished_if_that_mends_it(
    text: str, typed: str, filling: str, *, finished: bool, held_back: bool
) -> None:
    def cut_off(request: CompleteRequest) -> str | tuple[Candidate, ...]:
        """Rewrites what is held back."""
        if request.kind == "fill":
            return filling
        return (Candidate(f"{region(request)}more", (-0.1,), finish_reason="length"),)

    async with editing(text, cut_off if held_back else fills(filling), settings=NOW) as editor:
        editor.workspace.syntax = SyntaxTrees(parse_seconds=60.0)
        editor.workspace.syntax.opened(editor.document)
        editor.type(typed)
        answer = await editor.next_edit()
        assert isinstance(answer, Suggestion) == finished
        if isinstance(answer, Suggestion):
            assert editor.after(answer) == text.replace("|", typed + filling)


async def test_diagnostics_tell_where_to_look() -> None:
    text = "x = |\n" + "\n" * 20 + "print(undefined)\n"

    def reply(request: CompleteRequest) -> str:
        return region(request).replace("undefined", "x")

    async with editing(text, reply, settings=NOW) as editor:
        editor.type("1")
        at = editor.document.text.index("undefined")
        answer = await editor.suggester.next_edit(URI, None, editor.cursor, diagnostics=[Diagnostic(at, at + 9)])
        assert "print(x)" in editor.after(answer)


async def test_a_rewriting_that_was_cut_off_deletes_nothing() -> None:
    async with editing(LINES.replace("line_9", "line_9|"), "line_7 = old_name\n", settings=NOW) as editor:
        editor.type("x")
        assert reason(await editor.next_edit()) == "deletes_too_much"
        editor.model.reply = lambda request: region(request)[:-30] if request.kind == "edit" else ""
        editor.model.finish_reason = "length"
        editor.type("y")
        assert reason(await editor.next_edit()) == "cut_off"


async def test_typing_cancels_a_next_edit_that_was_for_the_text_before() -> None:
    hold = asyncio.Event()
    model = ScriptedModel(hold=hold)
    async with editing("x = |\ny = 2\n", settings=NOW, model=model) as editor:
        editor.type("1")
        edit = asyncio.ensure_future(editor.suggester.next_edit(URI, None, editor.cursor))
        await settle()
        assert model.running == 1
        editor.type("2")
        fill = asyncio.ensure_future(editor.suggester.inline(URI, editor.cursor, Trigger.EDIT))
        await settle()
        assert reason(await edit) == "superseded"
        assert (model.cancelled, model.requests[-1].kind) == (1, "fill")
        hold.set()
        await fill


CALLS = "|run(a)\n" + "\n" * 6 + "run(b)\nrun(c)\n" + "\n" * 6 + "run(d)\n"


def agreeing(request: CompleteRequest) -> tuple[Candidate, ...]:
    """A model that would leave everything as it is, but finds every draft better."""
    drafts = [
        Candidate(draft.text, (-0.1,), maker=draft.maker, log_prob=-1.0, keep_log_prob=-6.0) for draft in request.drafts
    ]
    return (*drafts, Candidate(region(request), (-0.1,), log_prob=-6.0, keep_log_prob=-6.0))


class SmallModel(ScriptedModel):
    """One that rewrites few lines at once, as the shipped one does."""

    async def info(self) -> ModelInfo:
        return ModelInfo("small", "0", ("fill", "edit"), 8192, 2048, None, "1", region=RegionBounds(1, 2, 160))


async def test_what_the_last_edits_did_is_drafted_at_the_next_place_and_judged_by_the_model() -> None:
    async with editing(CALLS, agreeing, settings=NOW, model=SmallModel()) as editor:
        editor.change((5, 5, ", 1"))
        answer = suggestion(await editor.next_edit())
        assert answer.maker == "arguments"
        assert "run(b, 1)\nrun(c, 1)\n" in editor.after(answer)
        at_cursor, elsewhere = editor.model.requests
        assert at_cursor.drafts == ()
        assert [draft.text for draft in elsewhere.drafts] == [
            "\nrun(b, 1)\nrun(c, 1)\n\n", "\nrun(b, 1)\nrun(c)\n\n", "\nrun(b)\nrun(c, 1)\n\n",
        ]  # fmt: skip


async def test_one_question_looks_at_three_places_at_most() -> None:
    text = "|old_name = 1\n" + ("\n" * 6 + "use(old_name)\n") * 5
    async with editing(text, region, settings=NOW, model=SmallModel()) as editor:
        editor.change((0, 3, "new"))
        assert reason(await editor.next_edit()) == "no_change"
        assert len(editor.model.requests) == 3
        places = [request.parts.prefix.count("\n") for request in editor.model.requests]
        assert places == sorted(places)


async def test_a_secret_is_in_no_draft() -> None:
    secret = "gh" + "p_" + "hunter2hunter2hunter2hunter2hunter22"
    text = f"|a.x = '{secret}'\n" + "\n" * 6 + "a.x = 'other'\n"
    async with editing(text, agreeing, settings=NOW, model=SmallModel(), privacy=Privacy()) as editor:
        editor.change((2, 3, "name"))
        answer = await editor.next_edit()
        assert "\na.name = 'other'" in editor.after(answer)
        assert all("hunter2" not in str(request.parts) for request in editor.model.requests)


async def test_what_stands_behind_the_same_words_elsewhere_competes_for_the_line() -> None:
    text = "# Files\nself.store.put(path, encoding='utf-8')\n\n\ndef save(self):\n    self.store.|\n"
    async with editing(text, "get()", settings=NOW) as editor:
        editor.type("p")
        await editor.inline()
        (request,) = editor.model.requests
        assert [(draft.text, draft.maker) for draft in request.drafts] == [
            ("ut(path, encoding='utf-8')", "continuation")
        ]


USERS = """class UserStore {
  findUser(userId: string): User {
    return this.users.get(USER_PREFIX + userId);
  }
}
"""


@pytest.mark.parametrize(
    ("typed", "drafted"),
    [
        ("class OrderStore {\n  fin|", ["dOrder(orderId: string): Order {"]),
        (
            "class OrderStore {\n  findOrder(orderId: string): Order {\n    ret|",
            ["urn this.orders.get(ORDER_PREFIX + orderId);"],
        ),
        (
            "def add_user():\n    user = User()\n    save(user)\n\ndef add_line_item():\n    |",
            ["line_item = LineItem()"],
        ),
    ],
)
async def test_what_stands_in_a_neighbour_is_drafted_with_the_own_names(typed: str, drafted: list[str]) -> None:
    async with editing(f"{USERS}\n{typed}\n", settings=NOW) as editor:
        await editor.inline()
        (request,) = editor.model.requests
        assert [draft.text for draft in request.drafts] == drafted


async def test_a_file_of_windows_is_shown_with_line_feeds_and_edited_in_its_own() -> None:
    text = "def load(path):\r\n    return open(path)\r\n\r\n\r\nload('a')|\r\nload('b')\r\n"

    def says(request: CompleteRequest) -> str:
        return region(request).replace("'b'", "'c'") if request.kind == "edit" else ".read(\n)"

    async with editing(text, says, settings=NOW) as editor:
        other = "from a import load\r\n\r\n\r\ndef show():\r\n    return load('x')\r\n"
        editor.workspace.open("file:///work/b.py", "python", 1, other)
        editor.type("  # one\r\nload('d')")
        answer = suggestion(await editor.next_edit())
        assert editor.after(answer).replace("\r\n", "").isprintable()
        assert "load('c')\r\n" in editor.after(answer)
        await editor.inline()
        assert {request.kind for request in editor.model.requests} == {"edit", "fill"}
        assert not [request for request in editor.model.requests if "\r" in str(request.parts).replace("\\r", "\r")]
