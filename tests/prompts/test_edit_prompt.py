from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from calomel.prompts.edit_prompt import parse_edits, parse_hunks
from calomel.prompts.parts import Hunk


def test_context_lines_divide_hunks_and_count() -> None:
    diff = "--- a/a\n+++ b/a\n@@ -1,5 +1,6 @@ def f():\n one\n-two\n+2\n three\n+more\n four\n-five\n"

    assert parse_hunks(diff) == (
        Hunk("a", 1, "two\n", "2\n"),
        Hunk("a", 3, "", "more\n"),
        Hunk("a", 4, "five\n", ""),
    )


def test_an_insertion_stands_behind_the_line_that_its_header_names() -> None:
    assert parse_hunks("--- a\n+++ a\n@@ -6,0 +7,1 @@\n+new\n") == (Hunk("a", 6, "", "new\n"),)


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


def test_a_folder_named_a_keeps_its_name() -> None:
    assert parse_hunks("--- lib/a/x\n+++ lib/a/x\n@@ -1 +1 @@\n-1\n+2\n")[0].path == "lib/a/x"


def test_names_with_times_and_in_quotation_marks() -> None:
    timed = "--- a.py\t2026-01-01 10:00:00\n+++ a.py\t2026-01-01 10:00:01\n-1\n+2\n"
    quoted = '--- "a/caf\\303\\251 \\"x\\".py"\n+++ "b/caf\\303\\251 \\"x\\".py"\n-1\n+2\n'

    assert [parse_hunks(diff)[0].path for diff in (timed, quoted)] == ["a.py", 'café "x".py']


def test_removed_comments_of_sql_are_no_file_names() -> None:
    diff = "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- first\n--- second\n+++ first\n+++ second\n"

    assert parse_hunks(diff) == (Hunk("q.sql", 0, "-- first\n-- second\n", "++ first\n++ second\n"),)


def test_an_accepted_prediction_is_marked_and_what_follows_is_not() -> None:
    diff = (
        "// User accepted prediction:\n--- a/x.rs\n+++ b/x.rs\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n"
        "\n--- a/x.rs\n+++ b/x.rs\n@@ -2 +2 @@\n-e\n+f\n"
        "/// User accepted prediction:\n--- a/x.rs\n+++ b/x.rs\n-g\n+h\n"
    )

    assert [hunk.predicted for hunk in parse_hunks(diff)] == [True, True, False, True]


def test_made_up_numbers_and_lost_blank_lines_do_no_harm() -> None:
    diff = "--- q.go\n+++ q.go\n@@ -1,4 +1,9 @@\n-a\n+b\n\n--- q.go\n+++ q.go\n@@ -1,1 +1,1 @@\n-c\n+d\n\n"

    assert [(hunk.before, hunk.after) for hunk in parse_hunks(diff)] == [("a\n", "b\n"), ("c\n", "d\n")]


def test_a_line_without_an_end_stays_so() -> None:
    diff = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n"

    assert parse_hunks(diff) == (Hunk("a", 0, "x", "y"),)


def test_windows_line_ends_stay_in_the_lines_and_leave_the_names() -> None:
    diff = "--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n"

    assert parse_hunks(diff) == (Hunk("x", 0, "a\r\n", "b\r\n"),)


def test_the_newest_hunks_are_kept() -> None:
    diff = "--- a\n+++ a\n" + "".join(f"@@ -{n} +{n} @@\n-x{n}\n+y{n}\n" for n in range(1, 200))

    hunks = parse_hunks(diff)

    assert len(hunks) == 64
    assert hunks[-1] == Hunk("a", 198, "x199\n", "y199\n")


def test_the_end_of_a_long_diff_is_read_from_the_names_of_a_file_on() -> None:
    diff = "--- a/x\n+++ b/x\n" + "-a\n" * 200_000 + "--- a/y\n+++ b/y\n@@ -3 +3 @@\n-b\n+c\n"

    assert parse_hunks(diff) == (Hunk("y", 2, "b\n", "c\n"),)


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
