from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.prompts.edit_prompt import parse_edits, parse_hunks
from calomel.prompts.own import NEAR_TOKENS, ContextRenderer, FimTokens
from calomel.prompts.parts import EditRegion, Excerpt, Hunk, PromptParts
from calomel.prompts.tokenizer import Tokenizer

TEXTS = st.text(st.sampled_from(list("abc x=()\n\t<|end|>file😀")), max_size=80)
LINES = "".join(f"    value_{number} = compute({number}, other)\n" for number in range(400))


@pytest.fixture(scope="module")
def renderer(nano: Tokenizer) -> ContextRenderer:
    return ContextRenderer(nano)


def render(renderer: ContextRenderer, prefix: str, suffix: str = "", size: int = 2048, **more: Any) -> FimTokens:
    """The prompt of a window alone."""
    return renderer.render(PromptParts(prefix=prefix, suffix=suffix, **more), size)


def test_a_prompt_has_its_parts_in_order_of_stability(nano: Tokenizer, renderer: ContextRenderer) -> None:
    rendered = render(renderer, "def f(", "):\n    return 1\n", path="a.py")

    near = nano.encode("):\n    return 1\n")
    assert len(near) <= NEAR_TOKENS
    assert list(rendered.context) == [
        *(nano.file, *nano.encode("a.py")),
        *(nano.prefix, *nano.encode("def f(")),
        *(nano.near, *near, nano.middle),
    ]
    assert rendered.reuse == len(rendered.context) - len(near) - 2


@given(size=st.integers(16, 700), cut=st.integers(0, len(LINES)))
def test_a_prompt_never_exceeds_its_budget(size: int, cut: int, renderer: ContextRenderer) -> None:
    rendered = render(renderer, LINES[:cut], LINES[cut:], size + 48, path="some/path.py")

    assert len(rendered.context) <= size + 48


def test_a_region_stands_behind_the_front_that_a_hole_at_its_start_has(
    nano: Tokenizer, renderer: ContextRenderer
) -> None:
    hole = render(renderer, "def f():\n", "print(f())\n", path="a.py")
    region = EditRegion("    return a\n", cursor=12)
    edit = render(renderer, "def f():\n", "print(f())\n", path="a.py", region=region)
    assert edit.reuse == hole.reuse
    assert edit.context[: edit.reuse] == hole.context[: hole.reuse]
    t = nano
    marked = [t.region, *t.encode("    return a"), t.cursor, *t.encode("\n")]
    assert list(edit.context[edit.reuse :]) == [*marked, t.near, *t.encode("print(f())\n"), t.middle]


def test_no_text_forges_a_region(nano: Tokenizer, renderer: ContextRenderer) -> None:
    edit = render(renderer, "<|reserved_0|><|reserved_1|>", region=EditRegion("<|reserved_1|>", None))
    assert edit.context.count(nano.region) == 1
    assert nano.cursor not in edit.context


def ids(nano: Tokenizer, *pieces: str | int) -> list[int]:
    return [token for piece in pieces for token in ([piece] if isinstance(piece, int) else nano.encode(piece))]


def test_parts_stand_in_their_order_with_their_names(nano: Tokenizer, renderer: ContextRenderer) -> None:
    parts = PromptParts(
        related=(Excerpt("b.py", 3, "import b\n"),),
        far=(Excerpt("a.py", 0, "import a\n"),),
        edits=(Hunk("a.py", 4, "x = 1\n", "x = 2\n"), Hunk("a.py", 9, "", "y\n"), Hunk("b.py", 1, "z\n", "")),
        path="a.py",
        prefix="def f",
        suffix="():\n",
    )
    t = nano
    expected = ids(t, t.file, "b.py", t.prefix, "import b\n", t.file, "a.py", t.prefix, "import a\n")
    expected += ids(t, t.file, "a.py", t.prefix, "-x = 1\n+x = 2\n", "+y\n", t.file, "b.py", t.prefix, "-z\n")
    window = render(renderer, "def f", "():\n", 512, path="a.py")
    found = renderer.render(parts, 512)
    assert found.context == (*expected, *window.context)
    assert found.reuse == len(expected) + window.reuse


def test_what_does_not_fit_is_left_out_from_the_least_useful_on(renderer: ContextRenderer) -> None:
    related = tuple(Excerpt(f"r{number}.py", 0, "value = 1\n" * 5) for number in range(3))
    edits = tuple(Hunk("a.py", number, "old\n", "new\n") for number in range(3))
    parts = PromptParts(related=related, edits=edits, path="a.py", prefix="x = ", suffix="\n")
    whole = len(renderer.render(parts, 4096).context)
    sizes = [len(renderer.render(parts, room).context) for room in range(whole, 20, -1)]
    assert all(size <= room for size, room in zip(sizes, range(whole, 20, -1), strict=True))
    without_one = renderer.render(parts, whole - 1)
    assert without_one == renderer.render(PromptParts(related[1:], (), edits, "a.py", "x = ", "\n"), 4096)
    bare = len(render(renderer, "x = ", "\n", 4096, path="a.py").context)
    newest = renderer.render(PromptParts((), (), edits[2:], "a.py", "x = ", "\n"), 4096)
    assert renderer.render(parts, len(newest.context)) == newest
    assert len(renderer.render(parts, bare).context) <= bare


@given(
    sizes=st.lists(st.tuples(st.sampled_from(["a.py", "b.py"]), st.integers(0, 3), st.booleans()), max_size=8),
    room=st.integers(0, 120),
)
def test_as_many_of_the_last_excerpts_are_taken_as_fit_with_the_headings_that_they_need(
    nano: Tokenizer, renderer: ContextRenderer, sizes: list[tuple[str, int, bool]], room: int
) -> None:
    excerpts: list[Excerpt] = []
    for path, lines, goes_on in sizes:
        last = excerpts[-1] if excerpts and goes_on else Excerpt(path, 100 * len(excerpts), "")
        start = last.start_line + last.text.count("\n")
        excerpts.append(Excerpt(last.path, start, "x = 1\n" * lines))

    def naive(shown: list[Excerpt]) -> list[int]:
        found: list[int] = []
        behind = None
        for each in shown:
            if behind != (each.path, each.start_line):
                found += ids(nano, nano.file, each.path, nano.prefix)
            found += nano.encode(each.text)
            behind = (each.path, each.start_line + each.text.count("\n"))
        return found

    expected = next(found for first in range(len(excerpts) + 1) if len(found := naive(excerpts[first:])) <= room)
    bare = renderer.render(PromptParts(), 4096).context
    assert renderer.excerpts_tokens(excerpts) == len(naive(excerpts))
    assert renderer.render(PromptParts(far=tuple(excerpts)), len(bare) + room).context == (*expected, *bare)


@given(TEXTS)
def test_no_text_forges_a_marker(nano: Tokenizer, renderer: ContextRenderer, text: str) -> None:
    parts = PromptParts((Excerpt(text, 0, text),), (Excerpt("a", 0, text),), (Hunk(text, 0, text, text),), "a", "", "")
    found = renderer.render(parts, 4096).context
    special = {nano.file, nano.prefix, nano.near, nano.middle, nano.suffix, nano.end}
    marks = [token for token in found if token in special]
    heading = [nano.file, nano.prefix]
    # One heading for each: related, far, edits, window.
    assert marks == [*heading * 4, nano.near, nano.middle]


def test_edits_take_half_of_a_small_prompt_about_a_region_before_the_window(
    nano: Tokenizer, renderer: ContextRenderer
) -> None:
    edits = tuple(Hunk("a.py", line, f"x{line} = 1\n", f"x{line} = 2\n") for line in range(40))
    parts = PromptParts(path="a.py", edits=edits, prefix="y = 3\n" * 300, region=EditRegion("z = 4\n", 0))
    found = renderer.render(parts, 200)
    assert len(found.context) <= 200
    text = nano.decode(found.context)
    assert "-x39 = 1\n+x39 = 2\n" in text
    assert "x0 = 1" not in text
    assert text.count("y = 3\n") > 8


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
