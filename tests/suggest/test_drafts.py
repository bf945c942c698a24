"""What the last edits want elsewhere: a text, the edits of it, and the lines that the drafts make."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calomel.prompts.parts import Hunk, text_hunks
from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.drafts.propose import drafts, region_texts


class Moment:
    """A text and the edits of it: each replaces the first place of a text by another one."""

    def __init__(self, text: str, *edits: tuple[str, str]) -> None:
        self.text = text
        self.cursor = 0
        self.hunks: tuple[Hunk, ...] = ()
        for old, new in edits:
            self.edit(old, new)

    def edit(self, old: str, new: str) -> Moment:
        at = self.text.index(old)
        after = self.text[:at] + new + self.text[at + len(old) :]
        self.hunks += text_hunks("a", self.text, after)
        self.text, self.cursor = after, at + len(new)
        return self

    def drafts(self, *makers: str) -> tuple[EditDraft, ...]:
        found = drafts(self.text, self.hunks, self.cursor)
        return tuple(draft for draft in found if not makers or draft.maker in makers)

    def results(self, *makers: str) -> list[str]:
        """The lines that each draft makes, best draft first."""
        return [lines(self.text, draft) for draft in self.drafts(*makers)]


def lines(text: str, draft: EditDraft) -> str:
    """The lines that a draft changes, as they are then; of inserted lines these alone."""
    start = text.rfind("\n", 0, draft.start) + 1
    end = text.find("\n", draft.end)
    end = len(text) if end < 0 else end
    if draft.start == draft.end == start and draft.text.endswith("\n"):
        return draft.text[:-1]
    return text[start : draft.start] + draft.text + text[draft.end : end]


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("def load(path):\n    pass\n\nmode = 1\nload(a)\nx = load(b)\n", "(path)", "(path, mode)", ["load(a, mode)", "x = load(b, mode)"]),  # noqa: E501
        ("func load(path string) {\n}\n\nfunc main() {\n\tmode := 1\n\tload(a)\n}\n", "path string", "path string, mode int", ["\tload(a, mode)"]),  # noqa: E501
    ],
)  # fmt: skip
def test_calls_follow_a_new_parameter(text: str, old: str, new: str, expected: list[str]) -> None:
    assert Moment(text, (old, new)).results("arguments") == expected


def test_a_new_argument_is_added_to_the_other_calls() -> None:
    moment = Moment("run(first)\ny = run(second(1, 2))\nrun(third, more)\nwalk(fourth)\n", ("(first)", "(first, True)"))
    assert moment.results("arguments") == ["y = run(second(1, 2), True)", "run(third, more, True)"]


def test_lists_over_several_lines_keep_their_layout() -> None:
    moment = Moment("run(a, b)\nrun(\n    c,\n    d,\n)\n", ("run(a, b)", "run(a, b, c=1)"))
    (draft,) = moment.drafts("arguments")
    assert draft.apply(moment.text) == "run(a, b, c=1)\nrun(\n    c,\n    d,\n    c=1,\n)\n"


def test_a_parameter_that_is_gone_is_taken_from_the_calls() -> None:
    text = "class A:\n    def load(self, path, mode):\n        pass\n\na.load(p, 1)\na.load(q, mode=2)\nb.load(r)\n"
    moment = Moment(text, ("self, path, mode", "self, path"))
    assert moment.results("arguments") == ["a.load(p)", "a.load(q)"]


SHOP = """class Cart:
    def __init__(self, owner):
        self.names = set()

    def add(self, name):
        self.names.add(name)

    def twice(self, name, quantity):
        self.add(name)


def discount(cart, percent):
    return cart.total(), percent


def report(cart, minimum, quantity):
    print(cart.names(), cart.total())
    cart.add(first)
    add(first)
    return discount(cart, 10)


def main(quantity):
    cart, seen = Cart("bob"), "x"
    names = set()
    names.add("pear")
    print(discount(cart, 20))
"""


def test_a_parameter_goes_only_where_its_name_means_something() -> None:
    moment = Moment(SHOP, ("cart, percent)", "cart, percent, minimum)"))
    assert moment.results() == ["    return discount(cart, 10, minimum)"]
    assert moment.edit("discount(cart, 10)", "discount(cart, 10, minimum)").results() == []


def test_a_method_is_that_of_its_class_as_far_as_the_file_shows() -> None:
    moment = Moment(SHOP, ("add(self, name)", "add(self, name, quantity)"))
    assert set(moment.results("arguments")) == {"        self.add(name, quantity)", "    cart.add(first, quantity)"}


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("def load():\n    pass\n\ndef main():\n    x = self.store.load()\n", "def load", "async def load",
         ["    x = await self.store.load()", "async def main():"]),
        ("function load() {\n}\n\nfunction main() {\n  use(load());\n}\n", "function load", "async function load",
         ["  use(await load());", "async function main() {"]),
        ("fn load() {\n}\n\nfn main() {\n    load().run();\n}\n", "fn load", "async fn load",
         ["    load().await.run();", "async fn main() {"]),
    ],
)  # fmt: skip
def test_calls_wait_and_their_functions_become_asynchronous(text: str, old: str, new: str, expected: list[str]) -> None:
    assert sorted(Moment(text, (old, new)).results("awaited")) == sorted(expected)


def test_what_stands_behind_the_star_is_named() -> None:
    text = (
        "class A:\n    def load(self, path, mode, deep=False):\n        pass\n\na.load(p, 1, True)\na.load(p, mode=2)\n"
    )
    moment = Moment(text, ("path, mode", "path, *, mode"))
    assert moment.results("by_name") == ["a.load(p, mode=1, deep=True)"]


def test_an_options_object_names_all() -> None:
    text = "function load(path, mode) {\n}\n\nload(p, 1);\nload(path, mode);\nload(q);\nload({ path: r });\n"
    moment = Moment(text, ("(path, mode)", "({ path, mode })"))
    assert moment.results("by_name") == ["load({ path: p, mode: 1 });", "load({ path, mode });", "load({ path: q });"]


@pytest.mark.parametrize(
    ("text", "new", "expected"),
    [
        ("y = wait(3000)\nz = wait(3000, 1)\n", "LIMIT = 3000\n", ["y = wait(LIMIT)", "z = wait(LIMIT, 1)"]),
        ("\twait(30 * time.Second)\n", "const timeout = 30 * time.Second\n", ["\twait(timeout)"]),
    ],
)
def test_what_got_a_name_is_called_by_it(text: str, new: str, expected: list[str]) -> None:
    assert Moment("\n" + text, ("\n", new + "\n")).results("extraction") == expected


def test_a_computed_value_holds_below_in_its_function() -> None:
    text = "def f(a):\n    x()\n    use(a.owner.name)\n\ndef g(a):\n    use(a.owner.name)\n"
    moment = Moment(text, ("    x()\n", "    x()\n    name = a.owner.name\n"))
    assert moment.results("extraction") == ["    use(name)"]


GO = 'package a\n\nimport (\n\t"errors"\n\t"os"\n)\n\nfunc f() {\n}\n'


def imported(path: str, text: str, old: str, new: str) -> list[str]:
    after = text.replace(old, new, 1)
    found = drafts(after, text_hunks(path, text, after), after.index(new), path)
    return [lines(after, draft) for draft in found if draft.maker == "imports"]


def test_gos_packages_stand_in_the_order_of_the_alphabet() -> None:
    after = GO.replace("{\n}", '{\n\tfmt.Println("x")\n}')
    (draft,) = drafts(after, text_hunks("a.go", GO, after), len(after) - 3, "a.go")
    assert draft.apply(after).startswith('package a\n\nimport (\n\t"errors"\n\t"fmt"\n\t"os"\n)')
    assert imported("a.go", GO, "{\n}", "{\n\tx := filepath.Join(a)\n}") == ['\t"path/filepath"']


def test_names_that_are_known_or_made_here_are_not_imported() -> None:
    assert imported("a.go", GO, "{\n}", "{\n\tfmt := a.fmt\n\tfmt.Println()\n}") == []
    assert imported("a.go", GO, "{\n}", '{\n\tlog("fmt.Println")  // fmt.Println\n}') == []
    assert imported("a.go", GO, "{\n}", "{\n\tos.Exit(1)\n}") == []
    assert imported("a.py", GO, "{\n}", "{\n\tfmt.Println()\n}") == []


PYTHON = """\
def load(path, retries):
    for attempt in range(retries):
        log(attempt, retries)
    return path

def save(path, retries):
    return retries
"""


def test_the_other_places_of_a_renamed_name_follow() -> None:
    moment = Moment("old_name = 1\nprint(old_name)\nold_names = old_name\n", ("old_name = 1", "new_name = 1"))
    assert moment.results() == ["print(new_name)", "old_names = new_name"]


def test_a_parameter_is_renamed_within_its_function_alone() -> None:
    moment = Moment(PYTHON, ("load(path, retries)", "load(path, attempts)"))
    assert moment.results("rename") == ["    for attempt in range(attempts):", "        log(attempt, attempts)"]


def test_a_variable_is_renamed_within_its_function_alone() -> None:
    go = "func a() {\n\tcount := 1\n\tuse(count)\n}\n\nfunc b() {\n\tcount := 2\n\tuse(count)\n}\n"
    assert Moment(go, ("count := 1", "total := 1")).results("rename") == ["\tuse(total)"]
    typescript = "function a() {\n  const count = 1;\n  use(count);\n}\nfunction b(count) {\n  use(count);\n}\n"
    assert Moment(typescript, ("const count", "const total")).results("rename") == ["  use(total);"]
    rust = "fn a() {\n    let mut count = 1;\n    use_it(count);\n}\nfn b(count: i32) {\n    use_it(count);\n}\n"
    assert Moment(rust, ("mut count", "mut total")).results("rename") == ["    use_it(total);"]


def test_a_renamed_field_is_renamed_wherever_it_is_read() -> None:
    moment = Moment("a.x = 1\nb.x = 2\nx = 3\nuse(c.x)\n", ("a.x", "a.name"))
    assert moment.results("rename") == ["b.name = 2", "use(c.name)"]


def test_a_misspelt_word_is_corrected_in_comments_too() -> None:
    moment = Moment("def recieve():\n    # recieve all\n    return recieve\n", ("recieve", "receive"))
    assert sorted(moment.results()) == ["    # receive all", "    return receive"]


def test_other_spellings_of_a_renamed_compound_follow() -> None:
    moment = Moment("class UserGroup:\n    pass\n\nuser_group = UserGroup()\n", ("UserGroup:", "UserTeam:"))
    assert "user_team = UserGroup()" in moment.results()
    assert "user_group = UserTeam()" in moment.results()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            '    print("total is %s" % total)',
            ['    print("total is %s" % sum_up)', '    print("sum_up is %s" % total)'],
        ),
        ("    print(total)  # the total", ["    print(sum_up)  # the total", "    print(total)  # the sum_up"]),
        ('    print(f"total is {total}")', ['    print(f"total is {sum_up}")', '    print(f"sum_up is {total}")']),
    ],
)
def test_a_string_or_comment_is_a_change_of_its_own(line: str, expected: list[str]) -> None:
    moment = Moment(f"def f():\n    total = g()\n{line}\n", ("total", "sum_up"))
    assert moment.results("rename") == expected
    assert [draft.alone for draft in moment.drafts("rename")] == [False, True][: len(expected)]


C = """\
int sum(const int *a, int n) {
    int total = 0;
    for (int i = 0; i < n; i++) {
        total += a[i] * n;
    }
    return total / n;
}

static int
other(int n)
{
    return n;
}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "*a, int n)",
            "*a, int count)",
            ["    for (int i = 0; i < count; i++) {", "        total += a[i] * count;", "    return total / count;"],
        ),
        ("other(int n)", "other(int count)", ["    return count;"]),
    ],
)
def test_a_name_behind_its_type_is_renamed_within_its_function(old: str, new: str, expected: list[str]) -> None:
    assert sorted(Moment(C, (old, new)).results()) == sorted(expected)


def test_a_new_name_may_stand_in_a_string_or_a_comment_before() -> None:
    text = 'def apply(cart):\n    print("discounted %s")\n    # discounted\n\n\nx = apply(1)\n'
    assert Moment(text, ("def apply", "def discounted")).results() == ["x = discounted(1)"]
    assert Moment(text + "discounted = 2\n", ("def apply", "def discounted")).results("rename") == []


def test_the_words_of_a_string_or_a_comment_name_no_code() -> None:
    text = 'def hello():\n    return "hello"\n\n\nprint(hello())\n'
    assert Moment(text, ('"hello"', '"welcome"')).results() == []
    text = "# the total\ntotal = 1\nprint(total)\n"
    assert Moment(text, ("# the total", "# the sum")).results() == []


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("self.a = a\nself.b = b\nself.c = c\n", "= a", "= int(a)", ["self.b = int(b)", "self.c = int(c)"]),
        ("type P struct {\n\tName string\n\tCity string\n}\n", "Name string", 'Name string `json:"name"`',
         ['\tCity string `json:"city"`']),
        ("pub a: String,\npub b: String,\n", "a: String", "a: Option<String>", ["pub b: Option<String>,"]),
    ],
)  # fmt: skip
def test_lines_that_look_alike_are_changed_alike(text: str, old: str, new: str, expected: list[str]) -> None:
    results = Moment(text, (old, new)).results()
    assert results[: len(expected)] == expected


def test_what_was_replaced_is_replaced_elsewhere() -> None:
    moment = Moment("a = os.path.join(x, y)\nlog(os.path.join(z, w), 1)\n", ("os.path.join(x, y)", "Path(x, y)"))
    assert "log(Path(z, w), 1)" in moment.results()


def test_imports_and_comments_are_no_model() -> None:
    assert Moment("import os\nos.getcwd()\nos.path\n", ("import os\n", "import sys\n")).results("substitution") == []
    assert Moment("# the old way of things\nx = way\n", ("old way of", "new approach of")).results("substitution") == []


CALLS = "run(a)\nrun(b)\nrun(c)\nrun(d)\n"


def test_nothing_after_an_undo() -> None:
    moment = Moment(CALLS, ("run(a)", "run(a, 1)"), ("run(b)", "run(b, 1)"), ("run(b, 1)", "run(b)"))
    assert moment.results() == []


def test_nothing_after_formatting_or_a_line_of_prose() -> None:
    assert Moment("a=1\nb=2\n", ("a=1", "a = 1")).results() == []
    assert Moment("x()\n\nx()\n", ("x()\n", "# Now for something completely different.\nx()\n")).results() == []


def test_nothing_that_brings_back_a_deleted_line() -> None:
    moment = Moment(
        "@slow\ndef test_a():\n    pass\n\n@slow\ndef test_b():\n    pass\n", ("@slow\ndef test_a", "def test_a")
    )
    assert moment.results() == []


def test_what_is_half_typed_is_finished_as_the_edits_before() -> None:
    moment = Moment(CALLS, ("run(a)", "run(a, k=1)"), ("run(b)", "run(b, k=1)"))
    moment.edit("run(c)", "run(c,)")
    moment.cursor -= 1
    assert moment.results()[0] == "run(c, k=1)"


def test_windows_line_ends_are_kept() -> None:
    moment = Moment("x = old_name\r\ny = old_name\r\n", ("old_name", "new_name"))
    (draft,) = moment.drafts()
    assert draft.apply(moment.text) == "x = new_name\r\ny = new_name\r\n"


LINES = st.lists(
    st.sampled_from(
        ["", "a = f(b)", "    a.b(c, d)", "def f(a, b):", "x(", ")", "{", "'", '"', "// c", "é = ß", "\t@d"]
    ),
    max_size=12,
).map("\n".join)


@settings(max_examples=200, deadline=None)
@given(before=LINES, middle=LINES, after=LINES, cursor=st.integers(0, 200))
def test_whatever_was_edited_drafts_lie_in_the_text_and_change_it(
    before: str, middle: str, after: str, cursor: int
) -> None:
    hunks = (*text_hunks("a", before, middle), *text_hunks("a", middle, after))
    found = drafts(after, hunks, min(cursor, len(after)))
    assert all(0 <= draft.start <= draft.end <= len(after) for draft in found)
    assert all(draft.apply(after) != after for draft in found)
    assert len({draft.apply(after) for draft in found}) == len(found)
    assert all(draft.support >= 1 for draft in found)


TEXT = "a(x)\nb(x)\nc(x)\n"


def draft(at: str, new: str, maker: str = "rename", support: int = 1) -> EditDraft:
    start = TEXT.index(at)
    return EditDraft(start, start + len(at), new, maker, support)


def test_a_region_becomes_what_all_drafts_of_one_maker_make_of_it_or_one_alone() -> None:
    found = region_texts(TEXT, 0, 10, [draft("a(x", "a(y", support=2), draft("b(x", "b(y"), draft("c(x", "c(y")])
    assert [(each.draft.text, each.draft.maker, each.support) for each in found] == [
        ("a(y)\nb(y)\n", "rename", 1), ("a(y)\nb(x)\n", "rename", 2), ("a(x)\nb(y)\n", "rename", 1),
    ]  # fmt: skip


def test_a_new_line_belongs_to_the_lines_behind_it() -> None:
    new = EditDraft(5, 5, "n()\n", "repeated")
    assert region_texts(TEXT, 0, 5, [new]) == ()
    assert [each.draft.text for each in region_texts(TEXT, 5, 10, [new])] == ["n()\nb(x)\n"]
