from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.prompts.edit_prompt import EditPrompt, ForeignPromptError
from calomel.prompts.mercury import mercury_answer, parse_mercury
from calomel.prompts.parts import Excerpt, Hunk

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
EDITS = (Hunk("src/shop.py", 0, "import sys\n", "import math\n"),)
READ = EditPrompt(
    path="src/shop.py",
    prefix="import math\n",
    region="def area(r):\n    return math.p\n",
    suffix="print(area(2))\n",
    cursor=30,
    edits=EDITS,
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
    assert read.edits == (Hunk("c.py", 0, "1\n", "2\n"), *EDITS)


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
    assert (beside.prefix, beside.region, beside.edits) == (READ.prefix, READ.region, EDITS)


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
def test_a_region_that_is_not_certain_is_refused(prompt: str) -> None:
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
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
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
