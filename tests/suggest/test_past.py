"""Made-up sessions: whatever is proposed, no answer turns an edit back, resumes an undone one, or breaks the syntax."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.suggest.editor import Editor, ScriptedModel, editing

from calomel.bench.harm import SYNTAX, UNDO, Offered, harms
from calomel.infer.completer import Candidate, CompleteRequest, ModelInfo
from calomel.prompts.edit_prompt import EditPrompt
from calomel.prompts.parts import Edit, Hunk
from calomel.selectivity.intent import words_changed
from calomel.suggest.edit import Suggestion
from calomel.suggest.judging import SuggestionFilter
from calomel.suggest.snapshot import Trigger
from calomel.suggest.stateless import EditService
from calomel.workspace.documents import FullChange
from calomel.workspace.edits import TextEdit, apply
from calomel.workspace.settings import SuggestSettings
from calomel.workspace.syntax import SyntaxTrees

NOW = SuggestSettings(debounce_seconds=0.0)
TEXT = (
    "def pay(cart, percent):\n"
    "    value = cart.total()\n"
    "    value = value - value * percent / 100\n"
    "    if value < 0:\n"
    "        value = 0\n"
    "    return value\n"
    "\n"
    "\n"
    "def refund(cart, percent):\n"
    "    price = pay(cart, percent)\n"
    "    return price\n"
)
WORDS = ("value", "cart", "percent", "price", "pay")
NEW = ("amount", "values", "basket", "share")


@dataclass(frozen=True)
class Rename:
    word: str
    number: int
    new: str
    pause: float


@dataclass(frozen=True)
class Types:
    row: int
    text: str


@dataclass(frozen=True)
class Does:
    what: Literal["undo", "redo", "reload", "accept"]


Deed = Rename | Types | Does
DEEDS: st.SearchStrategy[Deed] = st.one_of(
    st.builds(
        Rename,
        st.sampled_from(WORDS + NEW),
        st.integers(0, 6),
        st.sampled_from(NEW + WORDS),
        st.sampled_from([0.0, 2.5, 90.0]),
    ),
    st.builds(Types, st.integers(0, 8), st.sampled_from(["    # all\n", "    print(cart)\n"])),
    st.builds(Does, st.sampled_from(["undo", "undo", "redo", "reload", "accept", "accept"])),
)
MISCHIEF = st.sampled_from(["drafts", "turn back", "go on", "break", "all"])


def proposals(request: CompleteRequest, mischief: str) -> tuple[Candidate, ...]:
    """What a model might say that has read its prompt too well, likeliest first."""
    region = request.parts.region
    assert region is not None
    said: list[tuple[str, str]] = []
    if mischief in {"turn back", "all"}:
        said += [("canvas", text) for text in rewritten(region.text, request.parts.edits, back=True)]
    if mischief in {"go on", "all"}:
        said += [("canvas", text) for text in rewritten(region.text, request.parts.edits, back=False)]
    if mischief in {"break", "all"}:
        said.append(("canvas", region.text.replace("(cart", "(, cart")))
    said += [(each.maker, each.text) for each in request.drafts]
    return tuple(Candidate(text, (-0.01 - 0.001 * at,), maker=maker) for at, (maker, text) in enumerate(said))


def rewritten(text: str, hunks: Sequence[Hunk], *, back: bool) -> list[str]:
    """The region with the words of an edit put in the place of those that they took, everywhere and at each place."""
    found = []
    for hunk in reversed(hunks):
        old, new = (hunk.after, hunk.before) if back else (hunk.before, hunk.after)
        for gone, came in pairs(old, [TextEdit(0, len(old), new)]):
            if gone.strip():
                places = [match.start() for match in re.finditer(re.escape(gone), text)]
                found += [text.replace(gone, came), *(text[:at] + came + text[at + len(gone) :] for at in places)]
    return found


def pairs(text: str, edits: Sequence[tuple[int, int, str]]) -> set[tuple[str, str]]:
    return {(text[start:end], new) for start, end, new in words_changed(text, edits)}


@dataclass
class Session:
    """An editor beside a plain account of what was done: the oracle.

    `done` are the changes that stand, each with its inverse; `undone` those that may be done again.
    """

    editor: Editor
    changes: list[Edit] = field(default_factory=list)
    done: list[tuple[Edit, Edit]] = field(default_factory=list)
    undone: list[tuple[Edit, Edit]] = field(default_factory=list)
    taken_back: set[tuple[str, str]] = field(default_factory=set)

    def change(self, change: Edit) -> None:
        self.changes.append(change)
        self.editor.change((change.start, change.end, change.text))

    def makes(self, change: Edit) -> None:
        text = self.editor.document.text
        back = Edit(change.start, change.start + len(change.text), text[change.start : change.end])
        self.change(change)
        self.done.append((change, back))
        self.undone.clear()

    def withdrawn(self) -> set[tuple[str, str]]:
        """What was put in the place of what and is not wanted any more."""
        text, standing = TEXT, set[tuple[str, str]]()
        for change, _ in self.done:
            standing |= pairs(text, [(change.start, change.end, change.text)])
            text = change.apply(text)
        return self.taken_back - standing

    async def does(self, deed: Deed, offer: Suggestion | None) -> None:
        text = self.editor.document.text
        if isinstance(deed, Rename):
            places = [match.start() for match in re.finditer(rf"\b{deed.word}\b", text)]
            if places and deed.word != deed.new:
                at = places[deed.number % len(places)]
                self.makes(Edit(at, at + len(deed.word), deed.new))
            await self.editor.time.advance(deed.pause)
        elif isinstance(deed, Types):
            at = [0, *(match.end() for match in re.finditer("\n", text))][deed.row + 1]
            self.makes(Edit(at, at, deed.text))
        else:
            self.does_again(deed, offer)
        # What is changed and changed again in one go was never another thing.
        self.editor.workspace.history.settle()

    def does_again(self, deed: Does, offer: Suggestion | None) -> None:
        text = self.editor.document.text
        if deed.what == "undo" and self.done:
            change, back = self.done.pop()
            self.undone.append((change, back))
            before = back.apply(text)
            self.taken_back |= pairs(before, [(change.start, change.end, change.text)])
            self.change(back)
        elif deed.what == "redo" and self.undone:
            change, back = self.undone.pop()
            self.change(change)
            self.done.append((change, back))
        elif deed.what == "reload" and self.done:
            before = TEXT
            for change, _ in self.done:
                self.taken_back |= pairs(before, [(change.start, change.end, change.text)])
                before = change.apply(before)
            self.changes.append(Edit(0, len(text), TEXT))
            self.editor.several(FullChange(TEXT))
            self.editor.cursor = 0
            self.done.clear()
            self.undone.clear()
        elif deed.what == "accept" and offer is not None:
            self.editor.suggester.accepted(offer.id)
            for edit in reversed(offer.edits):
                self.makes(Edit(edit.start, edit.end, edit.text))

    def holds(self, edits: Sequence[TextEdit], door: str) -> None:
        """No harm in an answer."""
        text = self.editor.document.text
        found = harms(Offered(text, edits, self.editor.cursor, "a.py", TEXT, self.changes))
        story = f"{door} offered {edits} in {text!r}"
        assert not {SYNTAX, UNDO} & set(found), f"{story}: {found}"
        resumed = pairs(text, edits) & self.withdrawn()
        assert not resumed, f"{story}, which goes on with {resumed}"

    def hunks(self) -> tuple[Hunk, ...]:
        history = self.editor.workspace.history
        return (*history.settled(), *history.open_edit())


async def play(deeds: Sequence[tuple[Deed, str, Trigger]]) -> int:
    """Ask behind each deed, at both doors; how many answers there were."""
    said = 0
    model = ScriptedModel()
    service = EditService(SuggestionFilter())
    async with editing("|" + TEXT, settings=NOW, model=model) as editor:
        syntax = SyntaxTrees(editor.time.clock)
        editor.workspace.syntax = syntax
        editor.workspace.listeners.append(syntax)
        session, offer = Session(editor), None
        for deed, mischief, trigger in deeds:
            await session.does(deed, offer)
            model.reply = partial(proposals, mischief=mischief)
            answer = await editor.next_edit(trigger)
            offer = answer if isinstance(answer, Suggestion) else None
            if offer is not None:
                session.holds(offer.edits, f"the editor ({trigger})")
                said += 1
            text = editor.document.text
            info = ModelInfo("m", "w", ("fill", "edit"), 32768, 2048, None, "0", source="small")
            asked = EditPrompt("a.py", "", text, "", None, session.hunks())
            served = await service.rewrite(model.complete, info, asked)
            assert served.text == apply(text, served.edits)
            if served.edits:
                session.holds(served.edits, "the server")
                said += 1
    return said


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(DEEDS, MISCHIEF, st.sampled_from([Trigger.EDIT, Trigger.EXPLICIT])), max_size=8))
def test_no_answer_turns_an_edit_back_or_resumes_one_or_breaks_the_syntax(
    deeds: list[tuple[Deed, str, Trigger]],
) -> None:
    asyncio.run(play(deeds))


def test_such_sessions_have_answers() -> None:
    deeds: list[Deed] = [Rename("value", 0, "amount", 2.5), Does("accept"), Does("accept"), Does("undo"), Does("redo")]
    for mischief in ("drafts", "all"):
        assert asyncio.run(play([(deed, mischief, Trigger.EDIT) for deed in deeds])) >= 2
