"""One table of answers and of what is inserted, in many languages; its head explains its marks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.suggest.editor import editing
from tests.suggest.scripted_engine import ScriptedEngine

from calomel.infer.cleaning import clean, hole_of
from calomel.infer.completer import FillRequest
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import Tokenizer
from calomel.workspace.syntax import SyntaxTrees

_TABLE = Path(__file__).with_name("cleaning.txt")
_CASES = {
    f"{cells[0][2:].strip()}, {cells[1].strip()}": (cells[1].strip(), cells[2], cells[3][1:] if row[0] == "+" else None)
    for row in _TABLE.read_text(encoding="utf-8").splitlines()
    if row[:2] in {"+ ", "- "}
    for cells in [[cell.removesuffix(" ") for cell in row.split("│")]]
}


def read(case: str, made: str | None, line_end: str = "\n") -> tuple[str, str, str, str]:
    """The text before the cursor, the answer, the text after the cursor and what is inserted."""
    before, _, rest = case[1:].partition("├")
    answer, _, after = rest.partition("┤")
    texts = [each.replace("↵", line_end).replace("⇥", "\t") for each in (before, answer, after, made or "")]
    return texts[0], texts[1], texts[2], texts[1] if made is None else texts[3]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(("path", "case", "made"), _CASES.values(), ids=_CASES)
def test_an_answer_is_inserted_as_it_fits_the_text_before_it(
    path: str, case: str, made: str | None, line_end: str
) -> None:
    before, answer, after, wanted = read(case, made, line_end)
    assert clean(answer, hole_of(before, after, path)) == wanted


@pytest.mark.parametrize(("path", "case", "made"), _CASES.values(), ids=_CASES)
async def test_what_is_streamed_of_an_answer_is_what_is_inserted(
    path: str, case: str, made: str | None, tokenizer: Tokenizer
) -> None:
    before, answer, after, wanted = read(case, made)
    parts = PromptParts(path=path, prefix=before, suffix=after)
    asked = FillRequest("fill", parts, max_tokens=200, fitted=True, recall=False, whole_word=False)
    *pieces, last = [piece async for piece in ScriptedEngine(tokenizer, answer).filler().stream(asked)]
    assert "".join(map(str, pieces)) == wanted
    assert getattr(last, "text", None) == wanted


_IN_AN_EDITOR = ("a function, a.py", "a statement, a.py", "a value, a.py", "statements, a.py", "a method, a.ts")


@pytest.mark.parametrize("name", [*_IN_AN_EDITOR, "a comment, a.py", "one of Python, a.py"])
async def test_an_editor_is_offered_the_same(name: str) -> None:
    path, case, made = _CASES[name]
    before, answer, after, wanted = read(case, made)
    async with editing("|", answer) as editor:
        editor.workspace.syntax = SyntaxTrees(parse_seconds=60.0)
        editor.open(before + after, "python" if path.endswith(".py") else "typescript", len(before))
        assert editor.after(await editor.inline()) == before + wanted + after
