from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.prompts.edit_prompt import parse_edits, parse_hunks
from calomel.prompts.parts import Hunk


@pytest.mark.parametrize(
    ("diff", "hunks"),
    [
        (
            "--- a/a\n+++ b/a\n@@ -1,5 +1,6 @@ def f():\n one\n-two\n+2\n three\n+more\n four\n-five\n",
            (Hunk("a", 1, "two\n", "2\n"), Hunk("a", 3, "", "more\n"), Hunk("a", 4, "five\n", "")),
        ),
        ("--- a\n+++ a\n@@ -6,0 +7,1 @@\n+new\n", (Hunk("a", 6, "", "new\n"),)),
        ("--- lib/a/x\n+++ lib/a/x\n@@ -1 +1 @@\n-1\n+2\n", (Hunk("lib/a/x", 0, "1\n", "2\n"),)),
        (
            "--- a.py\t2026-01-01 10:00:00\n+++ a.py\t2026-01-01 10:00:01\n-1\n+2\n",
            (Hunk("a.py", 0, "1\n", "2\n"),),
        ),
        (
            '--- "a/caf\\303\\251 \\"x\\".py"\n+++ "b/caf\\303\\251 \\"x\\".py"\n-1\n+2\n',
            (Hunk('café "x".py', 0, "1\n", "2\n"),),
        ),
        (
            "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- first\n--- second\n+++ first\n+++ second\n",
            (Hunk("q.sql", 0, "-- first\n-- second\n", "++ first\n++ second\n"),),
        ),
        (
            "--- q.go\n+++ q.go\n@@ -1,4 +1,9 @@\n-a\n+b\n\n--- q.go\n+++ q.go\n@@ -1,1 +1,1 @@\n-c\n+d\n\n",
            (Hunk("q.go", 0, "a\n", "b\n"), Hunk("q.go", 0, "c\n", "d\n")),
        ),
        (
            "--- a\n+++ a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n",
            (Hunk("a", 0, "x", "y"),),
        ),
        ("--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n", (Hunk("x", 0, "a\r\n", "b\r\n"),)),
        (
            "--- a/x\n+++ b/x\n" + "-a\n" * 200_000 + "--- a/y\n+++ b/y\n@@ -3 +3 @@\n-b\n+c\n",
            (Hunk("y", 2, "b\n", "c\n"),),
        ),
    ],
    ids=[
        "context divides hunks and counts", "an insertion", "a folder named a", "names with times",
        "names in quotation marks", "removed comments of SQL", "made-up numbers and lost blank lines",
        "no end of a line", "line ends of Windows", "the end of a long diff",
    ],
)  # fmt: skip
def test_hunks_are_read_as_they_are_meant(diff: str, hunks: tuple[Hunk, ...]) -> None:
    assert parse_hunks(diff) == hunks


def test_names_of_new_deleted_and_renamed_files() -> None:
    diff = (
        "diff --git a/new.py b/new.py\nnew file mode 100644\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n"
        "diff --git a/gone.py b/gone.py\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/was.py b/is.py\nsimilarity index 90%\nrename from was.py\nrename to is.py\n"
        "--- a/was.py\n+++ b/is.py\n@@ -1 +1 @@\n-x\n+y\n"
    )

    assert [(hunk.path, hunk.before, hunk.after) for hunk in parse_hunks(diff)] == [
        ("new.py", "", "x\n"),
        ("gone.py", "x\n", ""),
        ("is.py", "x\n", "y\n"),
    ]


def test_an_accepted_prediction_is_marked_and_what_follows_is_not() -> None:
    diff = (
        "// User accepted prediction:\n--- a/x.rs\n+++ b/x.rs\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n"
        "\n--- a/x.rs\n+++ b/x.rs\n@@ -2 +2 @@\n-e\n+f\n"
        "/// User accepted prediction:\n--- a/x.rs\n+++ b/x.rs\n-g\n+h\n"
    )

    assert [hunk.predicted for hunk in parse_hunks(diff)] == [True, True, False, True]


def test_the_newest_hunks_are_kept() -> None:
    diff = "--- a\n+++ a\n" + "".join(f"@@ -{n} +{n} @@\n-x{n}\n+y{n}\n" for n in range(1, 200))

    hunks = parse_hunks(diff)

    assert len(hunks) == 64
    assert hunks[-1] == Hunk("a", 198, "x199\n", "y199\n")


def test_edits_leave_out_what_did_not_change() -> None:
    diff = "--- a\n+++ a\n@@ -10,2 +10,3 @@\n-}\n-end\n+}\n+  more\n+end\n"

    assert parse_edits(diff) == (Hunk("a", 10, "", "  more\n"),)
    assert parse_edits("--- a\n+++ a\n@@ -1 +1 @@\n-  x\n+    x\n") == ()


_LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["--- a/x", "+++ b/x", "@@ -1,2 +3,4 @@", "@@", "\\ No newline", "", "// User accepted prediction:"]
        ),
        st.text(alphabet='-+ @ax\r\\"/\t0', max_size=12),
    )
)


@given(_LINES, st.text(max_size=8))
def test_any_text_is_read_and_hunks_hold_lines_of_it(lines: list[str], path: str) -> None:
    for hunk in parse_hunks("\n".join(lines), path):
        assert hunk.before or hunk.after
        assert hunk.start_line >= 0
        for line in hunk.before.split("\n") + hunk.after.split("\n"):
            assert any(line in each for each in lines)
