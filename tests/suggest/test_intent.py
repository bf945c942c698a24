"""What the last edits still want: an edit that was taken back wants nothing, and no answer takes one back."""

from __future__ import annotations

import pytest
from tests.suggest.editor import URI, Editor, Reply, editing

from calomel.suggest.completer import Candidate, CompleteRequest
from calomel.suggest.edit import Answer, Suggestion, apply
from calomel.suggest.question import Trigger
from calomel.suggest.silence import Silence, SilenceReason
from calomel.workspace.documents import FullChange
from calomel.workspace.settings import SuggestSettings

NOW = SuggestSettings(debounce_seconds=0.0)
TEXT = (
    "def pay(cart, percent):\n"
    "    |value = cart.total()\n"
    "    value = value - value * percent / 100\n"
    "    if value < 0:\n"
    "        value = 0\n"
    "    return value\n"
)


def likes_drafts(request: CompleteRequest) -> Reply:
    """Every draft is sure, and the model has nothing of its own to say."""
    return tuple(Candidate(each.text, (-0.01,), maker=each.maker) for each in request.drafts)


def after(editor: Editor, answer: Answer) -> str | None:
    return apply(editor.document.text, answer.edits) if isinstance(answer, Suggestion) else None


def types_over(editor: Editor, old: str, new: str, at: int | None = None) -> int:
    """`cw` and the new word, key by key."""
    start = editor.document.text.index(old) if at is None else at
    editor.change((start, start + len(old), ""))
    for key in new:
        editor.type(key)
    return start


async def test_a_rename_goes_on_while_it_stands() -> None:
    async with editing(TEXT, likes_drafts, settings=NOW) as editor:
        types_over(editor, "value", "amount")
        await editor.time.advance(2.5)
        assert "amount = amount - amount" in str(after(editor, await editor.next_edit()))


@pytest.mark.parametrize("pause", [0.0, 2.5])
@pytest.mark.parametrize("how", ["whole", "in steps"])
async def test_what_was_undone_is_not_gone_on_with(pause: float, how: str) -> None:
    async with editing(TEXT, likes_drafts, settings=NOW) as editor:
        start = types_over(editor, "value", "amount")
        await editor.time.advance(pause)
        if how == "whole":
            editor.change((start, start + 6, "value"))
        else:
            editor.change((start, start + 6, ""))
            editor.change((start, start, "value"))
        await editor.time.advance(2.5)
        assert after(editor, await editor.next_edit()) is None


async def test_what_was_undone_is_no_intent_behind_another_edit() -> None:
    async with editing(TEXT, likes_drafts, settings=NOW) as editor:
        start = types_over(editor, "value", "amount")
        await editor.time.advance(2.5)
        editor.change((start, start + 6, "value"))
        await editor.time.advance(2.5)
        editor.cursor = len(editor.document.text)
        editor.type("x")
        assert "amount" not in str(after(editor, await editor.next_edit()))


@pytest.mark.parametrize("how", ["reopened", "replaced", "minimal"])
async def test_what_a_reload_took_away_is_not_offered_again(how: str) -> None:
    async with editing(TEXT, likes_drafts, settings=NOW) as editor:
        before = editor.document.text
        types_over(editor, "value", "amount")
        await editor.time.advance(2.5)
        first = await editor.next_edit()
        assert isinstance(first, Suggestion)
        editor.change(first.edits[0])
        editor.suggester.accepted(first.id)
        await editor.time.advance(2.5)
        if how == "reopened":
            editor.workspace.close(URI)
            editor.workspace.open(URI, "python", 9, before)
        elif how == "replaced":
            editor.several(FullChange(before))
        else:
            text = editor.document.text
            low, high = text.index("amount"), text.index("    if ")
            editor.change((low, high, before[before.index("value =") : before.index("    if ")]))
        await editor.time.advance(2.5)
        assert after(editor, await editor.next_edit()) is None
        editor.cursor = editor.document.text.index("        value")
        editor.type("\n")
        editor.change((editor.cursor - 1, editor.cursor, ""))
        editor.cursor = len(editor.document.text)
        editor.type("# done")
        assert "amount" not in str(after(editor, await editor.next_edit()))


async def test_an_answer_takes_no_edit_back() -> None:
    def inverse(request: CompleteRequest) -> str:
        assert request.parts.region is not None
        return request.parts.region.text.replace("amount", "value")

    async with editing(TEXT, inverse, settings=NOW) as editor:
        types_over(editor, "value", "amount")
        await editor.time.advance(90.0)  # however long ago
        assert after(editor, await editor.next_edit()) is None


async def test_who_asks_by_a_key_gets_no_edit_turned_back_either() -> None:
    def inverse(request: CompleteRequest) -> str:
        assert request.parts.region is not None
        return request.parts.region.text.replace("amount", "value")

    async with editing(TEXT, inverse, settings=NOW) as editor:
        types_over(editor, "value", "amount")
        for pause in (0.0, 2.5, 90.0):
            await editor.time.advance(pause)
            answer = await editor.next_edit(Trigger.EXPLICIT)
            assert isinstance(answer, Silence)
            assert answer.reason is SilenceReason.REVERTS_EDIT


async def test_one_of_two_edits_of_a_line_is_not_turned_back() -> None:
    def first(request: CompleteRequest) -> str:
        assert request.parts.region is not None
        return request.parts.region.text.replace("amount = amount", "value = amount")

    async with editing(TEXT, first, settings=NOW) as editor:
        start = editor.document.text.index("    value = value - value")
        for place in (4, 13):
            types_over(editor, "value", "amount", start + place)
            await editor.time.advance(90.0)
        assert after(editor, await editor.next_edit(Trigger.EXPLICIT)) is None


@pytest.mark.parametrize("trigger", [Trigger.EDIT, Trigger.EXPLICIT])
async def test_the_model_does_not_go_on_with_what_was_undone(trigger: Trigger) -> None:
    def goes_on(request: CompleteRequest) -> str:
        assert request.parts.region is not None
        return request.parts.region.text.replace("value", "amount")

    async with editing(TEXT, goes_on, settings=NOW) as editor:
        start = types_over(editor, "value", "amount")
        editor.workspace.history.settle()
        await editor.time.advance(2.5)
        editor.change((start, start + 6, "value"))
        editor.workspace.history.settle()
        await editor.time.advance(2.5)
        editor.cursor = editor.document.text.index("\n    return")
        editor.type("  # all")
        answer = await editor.next_edit(trigger)
        assert isinstance(answer, Silence)
        assert answer.reason is SilenceReason.RESUMES_UNDONE


async def test_what_was_offered_before_an_undo_is_not_kept_behind_another_edit() -> None:
    async with editing(TEXT, likes_drafts, settings=NOW) as editor:
        start = types_over(editor, "value", "amount")
        await editor.time.advance(2.5)
        assert isinstance(await editor.next_edit(), Suggestion)
        editor.change((start, start + 6, "value"))
        editor.cursor = editor.document.text.index("\n    if")
        editor.type("  # all")
        assert "amount" not in str(after(editor, await editor.next_edit()))


async def test_what_was_undone_and_done_again_goes_on() -> None:
    async with editing(TEXT, likes_drafts, settings=NOW) as editor:
        start = types_over(editor, "value", "amount")
        for old, new in (("amount", "value"), ("value", "amount")):
            editor.workspace.history.settle()
            await editor.time.advance(2.5)
            editor.change((start, start + len(old), new))
        editor.workspace.history.settle()
        await editor.time.advance(2.5)
        assert "amount = amount - amount" in str(after(editor, await editor.next_edit()))


async def follow(editor: Editor) -> list[str]:
    """Take every offer until there is none; the lines that each changed."""
    found: list[str] = []
    while len(found) < 12:
        await editor.time.advance(2.5)
        offer = await editor.next_edit()
        if not isinstance(offer, Suggestion):
            break
        before = set(editor.document.text.split("\n"))
        for edit in reversed(offer.edits):
            editor.change(edit)
        editor.suggester.accepted(offer.id)
        found += [line for line in editor.document.text.split("\n") if line not in before]
    return found


CART = (
    "class Cart:\n"
    "    def add(self, name, price):\n"
    "        self.names.append((name, price))\n"
    "\n"
    "\n"
    "def apply_discount(cart, percent):\n"
    "    return cart.total() * percent\n"
    "\n"
    "\n"
    "def report(cart, minimum):\n"
    '    cart = Cart("bob")\n'
    '    cart.add("a", 1)\n'
    "    print(apply_discount(cart, 10))\n"
    "    print(apply_discount(cart, 20))\n"
    "    print(cart.names(), cart.total())\n"
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "(cart, percent):",
            "(cart, percent, minimum):",
            ["    print(apply_discount(cart, 10, minimum))", "    print(apply_discount(cart, 20, minimum))"],
        ),
        ("name, price):", "name, price, quantity=1):", []),
        (
            "def apply_discount(",
            "def discounted(",
            ["    print(discounted(cart, 10))", "    print(discounted(cart, 20))"],
        ),
    ],
)
async def test_it_stops_when_the_change_is_complete(old: str, new: str, expected: list[str]) -> None:
    async with editing("|" + CART, likes_drafts, settings=NOW) as editor:
        at = editor.document.text.index(old)
        editor.change((at, at + len(old), new))
        assert sorted(await follow(editor)) == expected
