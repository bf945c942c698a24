from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.prompts.edit_prompt import EditPrompt, ForeignPromptError
from calomel.prompts.mercury import mercury_answer, parse_mercury
from calomel.prompts.parts import EditRegion, Excerpt, Hunk, PromptParts
from calomel.prompts.zeta import ZetaPrompt, is_zeta, parse_zeta, write_zeta, zeta_answer

FRONT = """<[fim-suffix]>
fn main() {}
<[fim-prefix]><filename>app/related.rs
fn helper() {}
...
fn other() {}

<filename>edit_history
--- a/app/shape.rs
+++ b/app/shape.rs
-struct Shape;
+struct Shape { side: f64 }

<filename>app/shape.rs
use std::fmt;
"""
ZETA21 = FRONT + "<|marker_1|>fn area(s: &Shape) -> f64 {\n    s.s<|user_cursor|>\n}\n<|marker_2|>\n<[fim-middle]>"
ZETA2 = FRONT + "<<<<<<< CURRENT\nfn area(s: &Shape) -> f64 {\n    s.s<|user_cursor|>\n}\n=======\n<[fim-middle]>"
REGION = "fn area(s: &Shape) -> f64 {\n    s.s\n}"
CURSOR = 35
EDITS = (Hunk("app/shape.rs", 0, "struct Shape;\n", "struct Shape { side: f64 }\n"),)
RELATED = (Excerpt("app/related.rs", 0, "fn helper() {}\n"), Excerpt("app/related.rs", 0, "fn other() {}\n"))
STOP = ("<[end▁of▁sentence]>",)


def shown(*blocks: str, suffix: str = "", file: str = "a.rs") -> str:
    """A prompt of zeta2.1 whose region has these blocks."""
    marked = "".join(f"<|marker_{at}|>{block}" for at, block in enumerate((*blocks, ""), 1))
    return f"<[fim-suffix]>{suffix}<[fim-prefix]><filename>{file}\n{marked}\n<[fim-middle]>"


def in_the_editor(old: str, boundaries: tuple[int, ...], answer: str) -> str:
    """What the editor makes of an answer: the first and the last tag say where, what is between them says what."""
    tags = list(re.finditer(r"<\|marker_(\d+)\|>", answer))
    first, last = int(tags[0][1]), int(tags[-1][1])
    assert len(tags) == 2
    if first == last:
        return old
    return old[: boundaries[first - 1]] + answer[tags[0].end() : tags[1].start()] + old[boundaries[last - 1] :]


@pytest.mark.parametrize(
    ("prompt", "region", "markers", "line_end"),
    [(ZETA21, REGION + "\n", (0, len(REGION) + 1), ""), (ZETA2, REGION, (), "\n")],
    ids=["zeta2.1", "zeta2"],
)
def test_a_prompt_is_read(prompt: str, region: str, markers: tuple[int, ...], line_end: str) -> None:
    edit = EditPrompt("app/shape.rs", "use std::fmt;\n", region, "\nfn main() {}\n", CURSOR, EDITS, RELATED)

    assert parse_zeta(prompt) == ZetaPrompt(edit, markers, line_end)


def test_a_region_of_zeta2_that_ends_before_a_line_keeps_its_line_end() -> None:
    read = parse_zeta(ZETA2.replace("<[fim-suffix]>\n", "<[fim-suffix]>"))

    assert (read.edit.region, read.line_end, read.edit.suffix) == (REGION + "\n", "", "fn main() {}\n")


def test_diagnostics_are_left_out_and_other_pseudo_files_sorted() -> None:
    files = (
        "<filename>diagnostics\n*unused*:\n```\nx\n```\n"
        "<filename>context/treesitter\nEnclosing scope: impl Shape {\n\n"
        "<filename>context/staged_diff\n--- a/b.rs\n+++ b/b.rs\n-1\n+2\n\n"
    )
    read = parse_zeta(shown("x\n").replace("<filename>a.rs", f"{files}<filename>a.rs"))

    assert read.edit.related == (Excerpt("a.rs", 0, "impl Shape {\n"),)
    assert read.edit.edits == (Hunk("b.rs", 0, "1\n", "2\n"),)


def test_a_change_is_answered_between_the_nearest_markers() -> None:
    read = parse_zeta(shown("one\n", "two\n", "three\n", "four\n"))

    assert zeta_answer(read, "one\n2\nthree\nfour\n", STOP) == "<|marker_2|>2\n<|marker_3|>"
    assert zeta_answer(read, "one\n2\n3\nfour\n", STOP) == "<|marker_2|>2\n3\n<|marker_4|>"
    assert zeta_answer(read, "0\none\ntwo\nthree\nfour\n", STOP) == "<|marker_1|>0\none\n<|marker_2|>"
    assert zeta_answer(read, "one\ntwo\nthree\nfour\nfive\n", STOP) == "<|marker_4|>four\nfive\n<|marker_5|>"
    assert zeta_answer(read, "one\nthree\nfour\n", STOP) == "<|marker_2|><|marker_3|>"
    assert zeta_answer(read, "", STOP) == "<|marker_1|><|marker_5|>"


def test_an_answer_in_zeta2_is_the_region_with_an_end_and_silence_an_empty_text() -> None:
    read = parse_zeta(ZETA2)

    assert zeta_answer(read, REGION.replace("s.s", "s.side")) == REGION.replace("s.s", "s.side") + "\n>>>>>>> UPDATED\n"
    assert zeta_answer(read, None) == zeta_answer(read, REGION) == ""


@pytest.mark.parametrize("stop", [">>>>>>> UPDATED\n", ">>>>>>> UPDATED", "\n>>>>>>> UPDATED"])
def test_an_answer_in_zeta2_ends_before_the_clients_stop(stop: str) -> None:
    assert zeta_answer(parse_zeta(ZETA2), "x", ("never", stop)) in ("x\n", "x")


@pytest.mark.parametrize("code", ["// =======", "// <<<<<<< CURRENT", "<[fim-prefix]>", "\n=======\n"])
def test_special_words_in_the_users_code_are_code(code: str) -> None:
    region = f"{code}\n{REGION}"
    before = parse_zeta(ZETA2.replace("use std::fmt;\n", f"use std::fmt;\n{code}\n"))
    within = parse_zeta(ZETA2.replace("CURRENT\n", f"CURRENT\n{code}\n"))
    behind = parse_zeta(
        ZETA2.replace("fn main() {}\n", f"fn main() {{}}\n{code}\n") if code != "<[fim-prefix]>" else ZETA2
    )

    assert before.edit.region == behind.edit.region == REGION
    assert within.edit.region == region
    assert zeta_answer(before, "x") == "x\n>>>>>>> UPDATED\n"


def test_a_change_next_to_a_marker_of_the_users_own_is_not_sent() -> None:
    read = parse_zeta(shown("one\n", "two\n"))

    assert zeta_answer(read, "one\n<|marker_2|>\n") == "<|marker_1|><|marker_1|>"
    assert zeta_answer(read, "one\n<|user_cursor|>\n") == "<|marker_1|><|marker_1|>"
    assert zeta_answer(parse_zeta(ZETA2), "a\n<|user_cursor|>\n") == ""


def test_a_change_that_a_stop_would_cut_is_not_sent() -> None:
    read = parse_zeta(shown("one\n", "two\n"))

    assert zeta_answer(read, "one\ntwo END\n", ("END",)) == "<|marker_1|><|marker_1|>"
    assert zeta_answer(read, "one\n2\n", ("<|",)) == ""
    assert zeta_answer(parse_zeta(ZETA2), "one\n\ntwo", ("\n\n",)) == ""


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "<[fim-suffix]>a<[fim-prefix]>b<[fim-middle]>",
        "=======\n<[fim-middle]>",
        ZETA2.replace("<<<<<<< CURRENT\n", ""),
        ZETA2.replace("use std::fmt;\n", "<<<<<<< CURRENT\n"),
        ZETA2.replace("s.s", "<|user_cursor|>"),
        ZETA21.replace("<|marker_1|>", ""),
        ZETA21.replace("use std::fmt;\n", "<|marker_1|>"),
        ZETA21.replace("    s.s", "<filename>x\n"),
    ],
)
def test_a_region_that_is_not_certain_is_refused(prompt: str) -> None:
    with pytest.raises(ForeignPromptError):
        parse_zeta(prompt)
    assert is_zeta(ZETA2)
    assert is_zeta(ZETA21)


_LINES = st.lists(st.sampled_from(["", "a", "}", "    é🙂", "end", "a\r"]), max_size=8).map("\n".join)


@given(st.lists(_LINES, min_size=1, max_size=5), _LINES, st.integers(min_value=0), st.integers(min_value=0))
def test_the_editor_makes_of_an_answer_what_was_meant(blocks: list[str], new: str, start: int, end: int) -> None:
    read = parse_zeta(shown(*blocks, suffix="\nz"))
    old = read.edit.region
    start %= len(old) + 1
    end = start + end % (len(old) - start + 1)
    wanted = old[:start] + new + old[end:]

    assert in_the_editor(old, read.markers, zeta_answer(read, wanted, STOP)) == wanted
    assert in_the_editor(old, read.markers, zeta_answer(read, None, STOP)) == old


_WORDS = [
    "<|marker_1|>",
    "<|marker_2|>",
    "<<<<<<< CURRENT\n",
    "=======\n",
    "<filename>",
    "<|user_cursor|>",
    "<[fim-prefix]>",
    "\n",
]


@given(
    st.lists(st.one_of(st.sampled_from(_WORDS), st.text(max_size=3))),
    st.sampled_from(["=======\n", "<|marker_2|>\n", ""]),
)
def test_any_text_is_read_or_refused(pieces: list[str], tail: str) -> None:
    prompt = f"<[fim-suffix]>{''.join(pieces)}\n{tail}<[fim-middle]>"
    try:
        read = parse_zeta(prompt)
    except ForeignPromptError:
        return
    assert read.edit.cursor is None or 0 <= read.edit.cursor <= len(read.edit.region)
    assert not read.markers or read.markers[-1] == len(read.edit.region)


@pytest.mark.parametrize("word", ["<[fim-middle]>", "<filename>b.rs", "<|marker_2|>", "<|user_cursor|>"])
def test_text_of_the_users_forges_no_word_of_a_prompt_that_is_written(word: str) -> None:
    text = f"let a = '{word}';\n"
    prompt, reply = write_zeta(
        PromptParts(path="a.rs", prefix=text, suffix=text, region=EditRegion(text, 0)), blocks=True
    )

    assert parse_zeta(prompt).edit.region == f"let a = '{word[:1]} {word[1:]}';"
    assert reply.read(zeta_answer(parse_zeta(prompt), None)) == text


NO_SNIPPETS = "<|recently_viewed_code_snippets|>\n<|/recently_viewed_code_snippets|>\n\n"
FILE = """<|current_file_content|>
current_file_path: src/shop.py
import math
<|code_to_edit|>
def area(r):
    return math.p<|cursor|>
<|/code_to_edit|>
print(area(2))
<|/current_file_content|>

"""
HISTORY = """<|edit_diff_history|>
--- src/shop.py
+++ src/shop.py
@@ -1,1 +1,1 @@
-import sys
+import math

<|/edit_diff_history|>
"""
MERCURY_EDITS = (Hunk("src/shop.py", 0, "import sys\n", "import math\n"),)
READ = EditPrompt(
    path="src/shop.py",
    prefix="import math\n",
    region="def area(r):\n    return math.p\n",
    suffix="print(area(2))\n",
    cursor=30,
    edits=MERCURY_EDITS,
)


def snippets(*blocks: str) -> str:
    inner = "".join(f"<|recently_viewed_code_snippet|>\n{block}<|/recently_viewed_code_snippet|>\n" for block in blocks)
    return f"<|recently_viewed_code_snippets|>\n{inner}<|/recently_viewed_code_snippets|>\n\n"


def region(inner: str) -> str:
    return f"<|current_file_content|>\n<|code_to_edit|>\n{inner}<|/code_to_edit|>\n<|/current_file_content|>\n"


@pytest.mark.parametrize(
    "prompt",
    [
        # The published order.
        NO_SNIPPETS + FILE + HISTORY,
        HISTORY + NO_SNIPPETS + FILE,
        HISTORY + FILE,
        (NO_SNIPPETS + FILE + HISTORY).replace("\n\n<", "\n<"),
        NO_SNIPPETS + FILE + HISTORY + "\n\n<|!@#IS_NEXT_EDIT!@#|>",
        FILE.replace("print(area(2))\n", "print(area(2))\n" + HISTORY),
        "\n\n" + FILE.replace("content|>\ncurrent", "content|>\n\ncurrent") + HISTORY,
    ],
)
def test_order_nesting_and_blank_lines_do_not_matter(prompt: str) -> None:
    assert parse_mercury(prompt) == READ


def test_a_region_behind_its_file_is_found_in_it() -> None:
    prompt = (
        "<|recently_viewed_code_snippets|>\n<|/recently_viewed_code_snippets|>\n<|edit_diff_history|>\n"
        "<|/edit_diff_history|>\n<|current_file_content|>\n"
        "x = 1\ndef greet():\n    pass\ny = 2\n<|/current_file_content|>\n"
        "<|code_to_edit|>\ndef greet():\n    pass<|cursor|>\n<|/code_to_edit|>"
    )

    assert parse_mercury(prompt) == EditPrompt(None, "x = 1\n", "def greet():\n    pass\n", "y = 2\n", 21)


def test_a_cursor_outside_of_the_region_is_taken_out_of_the_file() -> None:
    read = parse_mercury(
        "<|current_file_content|>\na<|cursor|>b\n<|code_to_edit|>\nc\n<|/code_to_edit|>\n<|/current_file_content|>"
    )

    assert (read.prefix, read.region, read.cursor) == ("ab\n", "c\n", None)


def test_windows_line_ends_around_tags() -> None:
    read = parse_mercury(FILE.replace("\n", "\r\n"))

    assert (read.path, read.prefix) == ("src/shop.py", "import math\r\n")
    assert (read.region, read.cursor) == ("def area(r):\r\n    return math.p\r\n", 31)


def test_snippets_become_excerpts_a_staged_diff_edits_and_diagnostics_nothing() -> None:
    named = "code_snippet_file_path: "
    read = parse_mercury(
        snippets(
            f"{named}a.py\nx = 1\n",
            f"{named}b.py\ny = 2\n\n",
            f"{named}staged_git_diff\n--- a/c.py\n+++ b/c.py\n@@ -1 +1 @@\n-1\n+2\n",
            f"{named}treesitter_context\nEnclosing scope: class A:\nSibling: line 7: def f(self):\nImport: import b\n",
            f"{named}diagnostics\nline 3: [error] 'p' is not defined (source: x)\n",
        )
        + FILE
        + HISTORY
    )

    scope = Excerpt("src/shop.py", 0, "class A:\ndef f(self):\nimport b\n")
    assert read.related == (Excerpt("a.py", 0, "x = 1\n"), Excerpt("b.py", 0, "y = 2\n\n"), scope)
    assert read.edits == (Hunk("c.py", 0, "1\n", "2\n"), *MERCURY_EDITS)


def test_tags_in_lines_of_the_users_code_are_code() -> None:
    code = 'START = "<|code_to_edit|>"  # <|/code_to_edit|>\n'

    read = parse_mercury(FILE.replace("import math\n", code).replace("def area", f"{code}def area"))

    assert (read.prefix, read.region[: len(code)]) == (code, code)


def test_a_whole_prompt_in_the_users_file_is_code() -> None:
    inner = "text\n<|code_to_edit|>\nxyz\n<|/code_to_edit|>\n"

    around = parse_mercury(FILE.replace("import math\n", inner))
    within = parse_mercury(FILE.replace("def area", f"{inner}def area"))
    beside = parse_mercury(snippets(f"code_snippet_file_path: prompt.txt\n{FILE}") + FILE + HISTORY)

    assert (around.prefix, around.region) == (inner, READ.region)
    assert within.region == inner + READ.region
    assert (beside.prefix, beside.region, beside.edits) == (READ.prefix, READ.region, MERCURY_EDITS)


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "<|code_to_edit|>\nx\n",
        "<|/code_to_edit|>\nx\n<|code_to_edit|>\n",
        FILE.replace("def area", "<|/code_to_edit|>\ndef area"),
        FILE.replace("import math", "<|code_to_edit|>\nimport math"),
        region("a<|cursor|>b<|cursor|>\n"),
        FILE + "<|code_to_edit|>\n<|/code_to_edit|>\n" * 3000,
        "<|code_to_edit|>\na\n<|/code_to_edit|>\n<|code_to_edit|>\nb\n<|/code_to_edit|>\n",
    ],
)
def test_a_region_that_is_not_certain_is_refused_of_mercury(prompt: str) -> None:
    with pytest.raises(ForeignPromptError, match=r"code_to_edit|cursor|tags") as error:
        parse_mercury(prompt)
    assert "area" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\n", "```\na\nb\n```"),
        ("a", "```\na\n```"),
        ("", "```\n\n```"),
        ("a\n\n", "```\na\n\n```"),
        ("a\r\n", "```\na\r\n```"),
    ],
)
def test_the_answer_is_the_region_in_a_bare_fence(text: str, expected: str) -> None:
    assert mercury_answer(text) == expected


_TAGS = [
    f"<|{slash}{name}|>"
    for name in ("code_to_edit", "current_file_content", "edit_diff_history", "recently_viewed_code_snippet")
    for slash in ("", "/")
]


@given(
    st.lists(st.one_of(st.sampled_from([*_TAGS, "<|cursor|>", "\n", "<|!@#IS_NEXT_EDIT!@#|>"]), st.text(max_size=4)))
)
def test_any_text_is_read_or_refused_of_mercury(pieces: list[str]) -> None:
    try:
        read = parse_mercury("".join(pieces))
    except ForeignPromptError:
        return
    assert read.cursor is None or 0 <= read.cursor <= len(read.region)


@given(st.text(), st.text(), st.text(), st.integers(min_value=0))
def test_what_is_shown_is_read_back(prefix: str, inner: str, suffix: str, cursor: int) -> None:
    prefix, inner, suffix = (f"{text}\n" for text in (prefix, inner, suffix))
    cursor %= len(inner) + 1
    shown = inner[:cursor] + "<|cursor|>" + inner[cursor:]
    prompt = f"<|current_file_content|>\ncurrent_file_path: a\n{prefix}<|code_to_edit|>\n{shown}"
    if not shown.endswith("\n"):
        prompt += "\n"
        inner += "\n"
    prompt += f"<|/code_to_edit|>\n{suffix}<|/current_file_content|>\n"

    assert parse_mercury(prompt) == EditPrompt("a", prefix, inner, suffix, cursor)
