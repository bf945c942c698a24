"""What is known of a document is carried forward when somebody asks: seldom or at every key makes no difference."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.suggest.editor import NOW, Editor, ScriptedModel

from calomel.suggest.cache import Entry
from calomel.suggest.silence import SilenceReason
from calomel.suggest.state import DocumentState
from calomel.workspace.documents import FullChange, Position, RangeChange
from calomel.workspace.edits import Planned

TEXT = "def area(w, h):\r\n    return w * h\r\n\r\nvalue = '\U0001f600'\r\n"
PIECES = st.sampled_from(["", "x", "wide", "\r\n", "\n", "\U0001f600", "(a, b)", "    return w"])
# A message: several changes at once, an undo of the last one, or a whole text.
MESSAGES = st.one_of(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 6), PIECES), min_size=1, max_size=3),
    st.sampled_from(["undo", "whole"]),
)


def play(editor: Editor, message: Any, taken: list[tuple[int, int, str]]) -> None:
    document = editor.document
    if message == "whole":
        editor.several(FullChange(document.text.replace("w", "wide", 1)))
    elif message == "undo":
        if taken:
            start, end, text = taken.pop()
            if end <= len(document):
                first, last = document.position_at(start), document.position_at(end)
                editor.several(RangeChange(first, last, text))
    else:
        changes = []
        for start, length, text in message:
            low = min(start, len(document))
            high = min(low + length, len(document))
            first, last = document.position_at(low), document.position_at(high)
            taken.append((low, low + len(text), document.text[low:high]))
            changes.append(RangeChange(Position(*first), Position(*last), text))
        editor.several(*changes[:1])


def known(state: DocumentState, editor: Editor) -> tuple[object, ...]:
    text = editor.document.text
    entries = [(each.edits, each.window, each.agreed) for each in state.cache.every("fill", text, 5)]
    return (
        state.recent.recent(),
        entries,
        state.rejected(text, (Planned(0, 0, "# ", ""),)),
        state.revision,
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(MESSAGES, max_size=12), st.integers(0, 40), PIECES)
def test_what_is_known_is_the_same_however_often_somebody_asks(messages: list[Any], at: int, text: str) -> None:
    editor = Editor(ScriptedModel(), NOW, None).open(TEXT, cursor=0)
    often, once = DocumentState(editor.time.clock), DocumentState(editor.time.clock)
    for state in (often, once):
        at = min(at, len(TEXT))
        entry = Entry("fill", at, SilenceReason.EMPTY, (0, 60))
        entry.original, entry.edits = (Planned(at, at, text + "!", ""),), (Planned(at, at, text + "!", ""),)
        state.cache.put(TEXT, entry)
        state.reject(TEXT, (Planned(0, 0, "# ", ""),))
    taken: list[tuple[int, int, str]] = []
    for message in messages:
        editor.time.now += 0.4
        play(editor, message, taken)
        assert often.follow(editor.document)
    assert once.follow(editor.document)
    assert known(once, editor) == known(often, editor)


def test_what_is_older_than_a_document_remembers_is_forgotten() -> None:
    editor = Editor(ScriptedModel(), NOW, None).open("|x\n")
    state = DocumentState(editor.time.clock)
    for _ in range(64):
        editor.type("a")
    assert state.follow(editor.document)
    assert state.recent.recent()[-1].inserted == "a" * 64
    for _ in range(65):
        editor.type("b")
    assert not state.follow(editor.document)
