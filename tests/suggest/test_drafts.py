"""What the last edits want elsewhere: a text, the edits of it, and the lines that the drafts make."""

from __future__ import annotations

import time

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


PYTHON = """\
def load(path, retries):
    for attempt in range(retries):
        log(attempt, retries)
    return path

def save(path, retries):
    return retries
"""


# What is told, its maker (any without a name), the text, what becomes what, and the lines that the drafts make.
FOLLOWS: dict[str, tuple[str, str, str, str, list[str]]] = {
    "calls follow a new parameter": (
        "arguments", "def load(path):\n    pass\n\nmode = 1\nload(a)\nx = load(b)\n", "(path)", "(path, mode)",
        ["load(a, mode)", "x = load(b, mode)"]),
    "calls follow a new parameter of Go": (
        "arguments", "func load(path string) {\n}\n\nfunc main() {\n\tmode := 1\n\tload(a)\n}\n",
        "path string", "path string, mode int", ["\tload(a, mode)"]),
    "a new argument is added to the other calls": (
        "arguments", "run(first)\ny = run(second(1, 2))\nrun(third, more)\nwalk(fourth)\n", "(first)", "(first, True)",
        ["y = run(second(1, 2), True)", "run(third, more, True)"]),
    "a parameter that is gone is taken from the calls": (
        "arguments",
        "class A:\n    def load(self, path, mode):\n        pass\n\na.load(p, 1)\na.load(q, mode=2)\nb.load(r)\n",
        "self, path, mode", "self, path", ["a.load(p)", "a.load(q)"]),
    "a method is that of its class as far as the file shows": (
        "arguments", SHOP, "add(self, name)", "add(self, name, quantity)",
        ["        self.add(name, quantity)", "    cart.add(first, quantity)"]),
    "a parameter with a default changes no call": ("", SHOP, "add(self, name)", "add(self, name, quantity=1)", []),
    "calls wait and their functions become asynchronous": (
        "awaited", "def load():\n    pass\n\ndef main():\n    x = self.store.load()\n", "def load", "async def load",
        ["    x = await self.store.load()", "async def main():"]),
    "calls of JavaScript wait": (
        "awaited",
        "function load() {\n}\n\nfunction main() {\n  use(load());\n}\n", "function load", "async function load",
        ["  use(await load());", "async function main() {"]),
    "calls of Rust wait": (
        "awaited", "fn load() {\n}\n\nfn main() {\n    load().run();\n}\n", "fn load", "async fn load",
        ["    load().await.run();", "async fn main() {"]),
    "what TypeScript gives back is promised": (
        "awaited",
        "function load(): Row {\n}\nfunction all(n: int): Row[] {\n  load().map((row) => {\n    use(row);\n  })\n}\n",
        "function load(): Row", "async function load(): Promise<Row>",
        ["  await load().map((row) => {", "async function all(n: int): Promise<Row[]> {"]),
    "what is promised already is not promised again": (
        "awaited",
        "function load(): Row {\n}\nfunction all(): Promise<Row> {\n  use(load());\n}\n",
        "function load(): Row", "async function load(): Promise<Row>",
        ["  use(await load());", "async function all(): Promise<Row> {"]),
    "the other places of a renamed name follow": (
        "", "old_name = 1\nprint(old_name)\nold_names = old_name\n", "old_name = 1", "new_name = 1",
        ["print(new_name)", "old_names = new_name"]),
    "a parameter is renamed within its function alone": (
        "rename", PYTHON, "load(path, retries)", "load(path, attempts)",
        ["    for attempt in range(attempts):", "        log(attempt, attempts)"]),
    "a variable of Go is renamed within its function alone": (
        "rename", "func a() {\n\tcount := 1\n\tuse(count)\n}\n\nfunc b() {\n\tcount := 2\n\tuse(count)\n}\n",
        "count := 1", "total := 1", ["\tuse(total)"]),
    "a variable of Rust is renamed within its function alone": (
        "rename",
        "fn a() {\n    let mut count = 1;\n    use_it(count);\n}\nfn b(count: i32) {\n    use_it(count);\n}\n",
        "mut count", "mut total", ["    use_it(total);"]),
    "a member is another value's, too": (
        "rename", "a.x = 1\nb.x = 2\nx = 3\nuse(a.x, c.x)\n", "a.x", "a.name", ["use(a.name, c.x)"]),
    "a misspelt word is corrected in comments too": (
        "", "def recieve():\n    # recieve all\n    return 1\n", "recieve", "receive", ["    # receive all"]),
    "a new name may stand in a string or a comment before": (
        "", 'def apply(cart):\n    print("discounted %s")\n    # discounted\n\n\nx = apply(1)\n',
        "def apply", "def discounted", ["x = discounted(1)"]),
    "a new name may not stand in the code before": (
        "rename", "def apply(cart):\n    pass\n\nx = apply(1)\ndiscounted = 2\n", "def apply", "def discounted", []),
    "the words of a string name no code": (
        "", 'def hello():\n    return "hello"\n\n\nprint(hello())\n', '"hello"', '"welcome"', []),
    "the words of a comment name no code": (
        "", "# the total\ntotal = 1\nprint(total)\n", "# the total", "# the sum", []),
    "imports are no model": ("substitution", "import os\nos.getcwd()\nos.path\n", "import os\n", "import sys\n", []),
    "comments are no model": (
        "substitution", "# the old way of things\nx = way\n", "old way of", "new approach of", []),
    "an expression of the same form is written anew (cobra, ReplaceAll)": (
        "template", 'x = s.Replace(a, " ", "-", -1)\ny = up(s.Replace(f(b, c), ":", "_", -1))\ns.Replace(d, 1)\n',
        'Replace(a, " ", "-", -1)', 'ReplaceAll(a, " ", "-")', ['y = up(s.ReplaceAll(f(b, c), ":", "_"))']),
    "what is looked into is the form's own (koa, statuses.message)": (
        "template", "code = statuses[n]\nreturn statuses[this.code]\nothers[n]\n", "statuses[n]", "statuses.message[n]",
        ["return statuses.message[this.code]"]),
    "a function becomes a method (flask, is_relative_to)": (
        "template", "if under(path, base):\n    pass\nunder(Path(p), q)\n", "under(path, base)", "path.is_under(base)",
        ["Path(p).is_under(q)"]),
    "punctuation alone is no form": ("template", "f(a);\nf(b);\n", "f(a);", "f(a)", []),
    "a function that is bound to a name has parameters (redux)": (
        "arguments", "const text = (n: number) =>\n  n\ncall(text(1), text(2))\n", "(n: number) =>", "() =>",
        ["call(text(), text(2))", "call(text(1), text())"]),
    "the method of an object is called on itself (koa)": (
        "arguments", "  toJSON (lazy) {\n  }\n\n  inspect () {\n    return this.toJSON(true)\n  }\n", "(lazy)", "()",
        ["    return this.toJSON()"]),
    "types have commas of their own (itertools)": (
        "arguments", "fn flip<T, E>(r: Result<Option<T>, E>, n: usize) {\n}\nflip(v.map(f), 64)\n", ", n: usize", "",
        ["flip(v.map(f))"]),
    "the last parameter of several lines goes with the comma above": (
        "arguments", "function f(\n  a: A,\n  b: B\n) {\n}\nf(x, y)\n", ",\n  b: B", "", ["f(x)"]),
    "an error is known by its name in its function alone": (
        "rename", "def f():\n    try:\n        g()\n    except E as e:\n        raise X from e\n\n\ne = 1\n",
        "as e:", "as error:", ["        raise X from error"]),
    "nothing after formatting": ("", "a=1\nb=2\n", "a=1", "a = 1", []),
    "nothing after a line of prose": (
        "", "x()\n\nx()\n", "x()\n", "# Now for something completely different.\nx()\n", []),
    "nothing that brings back a deleted line": (
        "",
        "@slow\ndef test_a():\n    pass\n\n@slow\ndef test_b():\n    pass\n", "@slow\ndef test_a", "def test_a", []),
}  # fmt: skip


@pytest.mark.parametrize(("maker", "text", "old", "new", "expected"), FOLLOWS.values(), ids=FOLLOWS)
def test_what_an_edit_wants_elsewhere(maker: str, text: str, old: str, new: str, expected: list[str]) -> None:
    results = Moment(text, (old, new)).results(*filter(None, [maker]))
    assert sorted(results[: len(expected)] if expected else results) == sorted(expected)
    assert not maker or len(results) == len(expected)


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("class UserGroup:\n    pass\n\nuser_group = UserGroup()\n", "UserGroup:", "UserTeam:",
         ["user_group = UserTeam()"]),
        ("a = os.path.join(x, y)\nlog(os.path.join(z, w), 1)\n", "os.path.join(x, y)", "Path(x, y)",
         ["log(Path(z, w), 1)"]),
    ],
)  # fmt: skip
def test_spellings_and_expressions_follow_too(text: str, old: str, new: str, expected: list[str]) -> None:
    assert set(expected) <= set(Moment(text, (old, new)).results())


def test_lists_over_several_lines_keep_their_layout() -> None:
    moment = Moment("run(a, b)\nrun(\n    c,\n    d,\n)\n", ("run(a, b)", "run(a, b, c=1)"))
    (draft,) = moment.drafts("arguments")
    assert draft.apply(moment.text) == "run(a, b, c=1)\nrun(\n    c,\n    d,\n    c=1,\n)\n"


def test_a_parameter_goes_only_where_its_name_means_something() -> None:
    moment = Moment(SHOP, ("cart, percent)", "cart, percent, minimum)"))
    assert moment.results() == ["    return discount(cart, 10, minimum)"]
    assert moment.edit("discount(cart, 10)", "discount(cart, 10, minimum)").results() == []
    commented = Moment(SHOP + "# minimum: 3\nx = 'minimum'\n", ("cart, percent)", "cart, percent, minimum)"))
    assert commented.results() == ["    return discount(cart, 10, minimum)"]


COPIES = {
    "a line": ("width = clamp(box.width)\n", "width", "height", "use(width, box.width)\n"),
    "a function": ("def load_users(path):\n    return read(path)\n\n", "load_users", "load_items", "load_users(a)\n"),
    "a field": ("    name: str = field()\n", "name", "email", "show(user.name)\n"),
    "a member": ("    RED = auto()\n", "RED", "BLUE", "paint(Colour.RED)\n"),
    "a rule": (".card { color: red; }\n", "card", "tile", '<div class="card">\n'),
}


@pytest.mark.parametrize(("lines", "old", "new", "uses"), COPIES.values(), ids=COPIES)
def test_what_is_changed_in_a_copy_stays_in_the_original(lines: str, old: str, new: str, uses: str) -> None:
    moment = Moment(lines + uses)
    moment.edit(lines, lines + lines)
    at = moment.text.index(lines, 1)
    changed = moment.text[:at] + lines.replace(old, new, 1) + moment.text[at + len(lines) :]
    moment.hunks += text_hunks("a", moment.text, changed)
    moment.text, moment.cursor = changed, at + len(new)
    assert [draft for draft in moment.drafts() if not at <= draft.start < at + len(lines)] == []


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ('    print("sub_total is %s" % sub_total)', '    print("sub_total is %s" % amount)', ""),
        ("    print(sub_total)  # sub_total", "    print(amount)  # sub_total", "    print(amount)  # amount"),
        ('    print(f"sub_total {sub_total}")', '    print(f"sub_total {amount}")', ""),
        ("    print(sub_total)  # sub total", "    print(amount)  # sub total", ""),
    ],
)
def test_a_comment_is_the_last_change(line: str, code: str, words: str) -> None:
    moment = Moment(f"def f():\n    sub_total = g()\n{line}\n", ("sub_total", "amount"))
    assert moment.results("rename") == [code]
    moment.edit(line, code)
    assert moment.results("rename") == [words] * bool(words)
    assert all(draft.alone for draft in moment.drafts("rename"))


CALLS = "run(a)\nrun(b)\nrun(c)\nrun(d)\n"


def test_a_parameter_behind_a_row_of_stars_takes_no_longer_than_a_person_waits() -> None:
    before = "def load(path):\n    pass\n\nload(1)\n"
    after = before.replace("(path)", f"(path, {'*' * 36}1)")
    began = time.process_time()
    drafts(after, text_hunks("a.py", before, after), 0, "a.py")
    assert time.process_time() - began <= 3.0


def test_nothing_after_an_undo() -> None:
    moment = Moment(CALLS, ("run(a)", "run(a, 1)"), ("run(b)", "run(b, 1)"), ("run(b, 1)", "run(b)"))
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
    assert [(each.text, each.maker, signals.support) for each, signals in found.items()] == [
        ("a(y)\nb(y)\n", "rename", 1), ("a(y)\nb(x)\n", "rename", 2), ("a(x)\nb(y)\n", "rename", 1),
    ]  # fmt: skip


def test_a_new_line_belongs_to_the_lines_behind_it() -> None:
    new = EditDraft(5, 5, "n()\n", "repeated")
    assert region_texts(TEXT, 0, 5, [new]) == {}
    assert [each.text for each in region_texts(TEXT, 5, 10, [new])] == ["n()\nb(x)\n"]
