"""Hard filters: all golden cases in one table, whose head explains its marks, and what they cost."""

from __future__ import annotations

import os
import random
import re
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calomel.code.languages import builtin_names
from calomel.code.trees import error_count
from calomel.prompts.parts import Edit
from calomel.prompts.tokenizer import SPECIAL_TOKENS
from calomel.selectivity.filters import FILTERS, QUICK, fired
from calomel.selectivity.proposal import Proposal, Recent
from calomel.suggest.silence import SilenceReason

_TIMES = re.compile(r"⟪(.*?)·(\d+)⟫")
_LETTER = re.compile(r"\\u([0-9a-f]{4})|\\\\")
_WITHDRAWN = re.compile(r"⟦(.*?)→(.*?)⟧")


def proposal(case: str, language_id: str = "python", line_end: str = "\n") -> Proposal:
    """The suggestion that a case shows."""
    case = _TIMES.sub(lambda found: found[1] * int(found[2]), case)
    case = _LETTER.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\\", case).replace("↵", line_end)
    withdrawn = frozenset((found[1], found[2]) for found in _WITHDRAWN.finditer(case))
    case = _WITHDRAWN.sub("", case)
    made = _read(case.replace("✂", ""), language_id)
    made = replace(made, withdrawn=withdrawn, cut_off="✂" in case)

    def errors(behind: str) -> tuple[int, int] | None:
        start, end, new = made.edits[-1]
        more = replace(made, edits=(*made.edits[:-1], Edit(start, end, new + behind)))
        before, after = (error_count(text, language_id, 60.0) for text in (made.text, more.after))
        return None if before is None or after is None else (before, after)

    return replace(made, errors=errors)


def _read(case: str, language_id: str) -> Proposal:
    text = ""
    edits: list[Edit] = []
    done: dict[str, list[Recent]] = {"⟩": [], "»": []}
    written: list[tuple[int, str]] = []
    cursor: int | None = None
    region: list[int] = []
    at = 0
    while at < len(case):
        mark = case[at]
        at += 1
        if mark == "├":
            old, arrow, new = case[at : case.index("┤", at)].partition("→")
            at = case.index("┤", at) + 1
            if not arrow:
                old, new = "", old
            edits.append(Edit(len(text), len(text) + len(old), new))
            text += old
        elif mark in "⟨«":
            written.append((len(text), case[at : case.index("→", at)]))
            at = case.index("→", at) + 1
        elif mark in done:
            start, gone = written.pop()
            done[mark].append(Recent(start, len(text), gone, text[start:]))
        elif mark == "‸":
            cursor = len(text)
        elif mark in "⌈⌉":
            region.append(len(text))
        else:
            text += mark
    return Proposal(
        kind="fill" if cursor is None and not region else "edit",
        text=text,
        edits=tuple(edits),
        cursor=edits[0].start if cursor is None and edits else cursor or 0,
        language_id=language_id,
        region=(region[0], region[1]) if region else None,
        recent=tuple(done["⟩"]),
        edited=tuple(done["»"]),
        builtins=builtin_names(language_id, None),
    )


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


MARKS = [
    *SPECIAL_TOKENS,
    *[
        "<|endoftext|>",
        "<|fim_prefix|>",
        "<|file_sep|>",
        "<|im_start|>",
        "<|code_to_edit|>",
        "<|/code_to_edit|>",
        "<fim_middle>",
    ],
    *[
        "<|user_cursor_is_here|>",
        "<|editable_region_start|>",
        "<fim-suffix>",
        "<PRE>",
        "<EOT>",
        "[SUFFIX]",
        "[/INST]",
        "[MASK]",
    ],
    *["<｜fim▁hole｜>", "<start_of_turn>", "<NO_CHANGE>", "</think>"],  # noqa: RUF001 (as DeepSeek writes it)
]


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_of_a_prompt_is_dropped(mark: str) -> None:
    assert "prompt_marker" in fired(proposal(f"x = ├1 {mark}┤↵"))
    assert "prompt_marker" in fired(proposal(f"⌈├x→{mark}y┤↵⌉"))


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


SOURCES = Path(__file__).parents[2] / "lsp" / "calomel"


def test_all_filters_that_do_not_parse_are_quick_on_a_long_file() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in sorted(SOURCES.rglob("*.py")))
    text = "".join((source * 4).splitlines(keepends=True)[:9000])
    chance = random.Random(0)
    taken = []
    for number in range(200):
        start = text.index("\n", chance.randrange(len(text) // 100, len(text) - 400)) + chance.randrange(4, 30)
        end = text.index("\n", start + chance.choice((1, 60, 160)))
        region: tuple[int, int] | None = (text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1)
        now, edit = text, Edit(start, end, text[start:end].replace("e", "ee"))
        if number % 2:
            now, edit, region = text[:start] + text[end:], Edit(start, start, text[start:end]), None
        suggestion = Proposal(
            "edit" if region else "fill",
            now,
            (edit,),
            start,
            "python",
            region,
            recent=(Recent(start - 2, start, "", text[start - 2 : start]),) * 8,
        )
        began = time.process_time()
        list(fired(suggestion, QUICK))
        taken.append((time.process_time() - began) * 1000)
    # Milliseconds of processor time; a machine for tests is slower than the one of a user, and busy.
    assert sorted(taken)[100] <= 3.0


def test_nothing_is_unknown_without_the_names_of_the_language_and_no_edit_is_no_change() -> None:
    unknown = Proposal("edit", "a = 1\nprint(a)\n", ((12, 13, "minimum"),), 0, "python")
    assert list(fired(unknown, ["unknown_name"])) == []
    assert next(fired(Proposal("edit", "x", (), 0))) == "no_change"


@pytest.mark.parametrize(
    ("kind", "dropped", "passed"),
    [
        # Among many errors a parser guesses about text at the cursor.
        ("fill", [(0, 1)], [None, (1, 1), (9, 12)]),
        ("edit", [(0, 1), (9, 12)], [None, (9, 9)]),
    ],
)
def test_syntax_errors_are_counted_before_and_behind(kind: Any, dropped: list[Any], passed: list[Any]) -> None:
    counted = None

    def errors(_: str) -> Any:
        return counted

    for counted in (*dropped, *passed):
        guess = Proposal(kind, "x\n", ((1, 1, " y"),), 1, errors=errors)
        assert ("unparsable" in fired(guess)) is (counted in dropped)
