"""Hard filters: all golden cases in one table, and what every filter has to be."""

from __future__ import annotations

import os
import re
from dataclasses import FrozenInstanceError
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.selectivity.golden import proposal

from calomel.prompts.tokenizer import SPECIAL_TOKENS
from calomel.selectivity.filters import FILTERS, fired
from calomel.selectivity.proposal import Edit, Proposal, Recent
from calomel.suggest.silence import SilenceReason

TABLE = Path(__file__).parents[1] / "golden" / "filters.txt"
CASE = re.compile(r"(?P<sign>[+-]) (?:\[(?P<language>[\w.]*)\] ?)?.*? *│ (?P<case>.*) │(?P<others>[ \w]*)")
HEAD, *SECTIONS = TABLE.read_text(encoding="utf-8").rstrip("\n").split("\n\n## ")


def told(line: str, name: str) -> str:
    """A line of the table as the filters would have it now."""
    found = CASE.fullmatch(line)
    assert found is not None, line
    language = "python" if found["language"] is None else found["language"]
    said = {tuple(fired(proposal(found["case"], language, line_end))) for line_end in ("\n", "\r\n")}
    assert len(said) == 1, f"line ends change what becomes of {line}"
    names = said.pop()
    others = "".join(f" {other}" for other in names if other != name)
    return f"{'+' if name in names else '-'}{line[1 : found.start('others')]}{others}"


@pytest.mark.parametrize("section", SECTIONS, ids=[section.partition("\n")[0] for section in SECTIONS])
def test_golden_cases_are_dropped_by_the_filters_that_the_table_names(section: str) -> None:
    name, *lines = section.split("\n")
    now = [told(line, name) for line in lines]
    if os.environ.get("CALOMEL_WRITE_GOLDEN"):
        text = TABLE.read_text(encoding="utf-8")
        TABLE.write_text(text.replace(f"## {section}", "\n".join([f"## {name}", *now])), encoding="utf-8")
    assert now == lines


def test_the_table_shows_both_sides_of_every_filter() -> None:
    sides = {name: {line[0] for line in lines} for name, *lines in (section.split("\n") for section in SECTIONS)}
    assert sides == {name: {"+", "-"} for name in FILTERS}


def test_the_marks_of_the_table_are_read_as_its_head_explains_them() -> None:
    read = proposal("x = ├1┤↵")
    assert (read.kind, read.text, read.after, read.cursor) == ("fill", "x = \n", "x = 1\n", 4)
    read = proposal("a↵⌈├b→c┤↵d├e→┤↵⌉‸f")
    assert (read.kind, read.text, read.after) == ("edit", "a\nb\nde\nf", "a\nc\nd\nf")
    assert (read.region, read.cursor) == ((2, 7), 7)
    read = proposal("⟦one→two⟧⟨old→n├ew→o✂┤⟩ «gone→»‸")
    assert (read.edits[0], read.cut_off, read.withdrawn) == (Edit(1, 3, "o"), True, frozenset({("one", "two")}))
    assert (read.recent, read.edited) == ((Recent(0, 3, "old", "new"),), (Recent(4, 4, "gone", ""),))
    read = proposal("⟪ab·2⟫ = '▒hunter▒'├↵┤", line_end="\r\n")
    assert (read.text, read.masked, read.edits[0][2]) == ("abab = 'hunter'", "abab = '******'", "\r\n")


MARKS = [
    *SPECIAL_TOKENS,
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|file_sep|>",
    "<|im_start|>",
    "<|code_to_edit|>",
    "<|/code_to_edit|>",
    "<|user_cursor_is_here|>",
    "<|editable_region_start|>",
    "<fim_middle>",
    "<fim-suffix>",
    "<PRE>",
    "<EOT>",
    "[SUFFIX]",
    "[/INST]",
    "<｜fim▁hole｜>",  # noqa: RUF001 (as DeepSeek writes it)
    "<start_of_turn>",
    "<NO_CHANGE>",
    "</think>",
    "[MASK]",
]


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_of_a_prompt_is_dropped(mark: str) -> None:
    assert "prompt_marker" in fired(proposal(f"x = ├1 {mark}┤↵"))
    assert "prompt_marker" in fired(proposal(f"⌈├x→{mark}y┤↵⌉"))


@pytest.mark.parametrize(
    ("kind", "counted", "dropped"),
    [
        ("fill", None, False),
        ("fill", (0, 1), True),
        ("fill", (1, 1), False),
        # Among many errors a parser guesses about text at the cursor.
        ("fill", (9, 12), False),
        ("edit", None, False),
        ("edit", (0, 1), True),
        ("edit", (9, 9), False),
        ("edit", (9, 12), True),
    ],
)
def test_syntax_errors_are_counted_before_and_behind(
    kind: str, counted: tuple[int, int] | None, *, dropped: bool
) -> None:
    guess = Proposal("fill" if kind == "fill" else "edit", "x\n", ((1, 1, " y"),), 1, errors=lambda _: counted)
    assert ("unparsable" in fired(guess)) is dropped


def test_without_the_names_of_the_language_no_name_is_unknown() -> None:
    unknown = Proposal("edit", "a = 1\nprint(a)\n", ((12, 13, "minimum"),), 0, "python")
    assert list(fired(unknown, ["unknown_name"])) == []


def test_no_edit_at_all_is_no_change() -> None:
    assert next(fired(Proposal("edit", "x", (), 0))) == "no_change"


PLAIN = ["a", "foo", "return x", "x = ", "0, ", " ", "    ", "\n", "\r\n", "\r", "\\", "<|end|>", "*" * 8]
SIGNS = ["(", ")", "{", "]", '"', "'", '"""', "`", "# ", "//", "/*", "*/", "é", "😀", "\u2028", "\0"]
PIECES = st.lists(st.sampled_from(PLAIN + SIGNS), max_size=12).map("".join)


@st.composite
def proposals(draw: st.DrawFn) -> Proposal:
    text = draw(PIECES)
    places = st.integers(0, len(text))
    marks = sorted(draw(st.lists(places, max_size=6)))
    edits = [Edit(start, end, draw(PIECES)) for start, end in list(pairwise(marks))[::2]]
    start, end = sorted((draw(places), draw(places)))
    return Proposal(
        kind=draw(st.sampled_from(["fill", "edit"])),
        text=text,
        edits=tuple(edits),
        cursor=draw(places),
        language_id=draw(st.sampled_from(["", "python", "typescript", "rust", "go", "markdown"])),
        region=draw(st.sampled_from([None, (start, end)])),
        recent=(Recent(start, end, draw(PIECES), text[start:end]),),
        masked=draw(st.sampled_from(["", text, "*" * len(text)])),
        cut_off=draw(st.booleans()),
        errors=lambda _: (0, 1),
    )


@settings(deadline=None)
@given(proposals())
def test_no_filter_ever_fails(suggestion: Proposal) -> None:
    assert set(fired(suggestion)) <= set(FILTERS)


def test_every_filter_is_a_reason_that_people_can_read() -> None:
    assert [name for name in FILTERS if not SilenceReason(name).message] == []


def test_whoever_wants_one_name_pays_for_no_more() -> None:
    def never(_: str) -> tuple[int, int] | None:
        pytest.fail("a text was parsed that another filter had dropped")

    suggestion = Proposal("fill", "x = \n", ((4, 4, " "),), 4, errors=never)
    assert next(fired(suggestion)) == "whitespace_only"


def test_a_good_suggestion_passes_all() -> None:
    assert list(fired(proposal("def add(a, b):↵    ⟨→ret⟩├urn a + b┤↵"))) == []
    assert list(fired(proposal("⟨item→entry⟩ = 1↵⌈‸print(├item→entry┤)↵⌉"))) == []
    with pytest.raises(FrozenInstanceError):
        proposal("x├y┤").text = ""  # type: ignore[misc]
