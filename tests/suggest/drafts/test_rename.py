from __future__ import annotations

import pytest
from tests.suggest.drafts.moment import Moment

from calomel.suggest.drafts.propose import region_texts

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


def test_all_places_of_a_line_are_one_edit() -> None:
    moment = Moment("timeout = 1\nrun(timeout, 2 * timeout)\n", ("timeout =", "limit ="))
    assert moment.results()[0] == "run(limit, 2 * limit)"
    assert moment.results("rename") == ["run(limit, 2 * limit)"]


def test_more_renamed_places_are_more_support() -> None:
    text = "old_name = 1\na(old_name)\nb(old_name)\nc(old_name)\n"
    moment = Moment(text, ("old_name = 1", "new_name = 1"), ("a(old_name)", "a(new_name)"))
    assert [draft.support for draft in moment.drafts("rename")] == [2, 2]


def test_a_misspelt_word_is_corrected_in_comments_too() -> None:
    moment = Moment("def recieve():\n    # recieve all\n    return recieve\n", ("recieve", "receive"))
    assert sorted(moment.results()) == ["    # receive all", "    return receive"]


def test_other_spellings_of_a_renamed_compound_follow() -> None:
    moment = Moment("class UserGroup:\n    pass\n\nuser_group = UserGroup()\n", ("UserGroup:", "UserTeam:"))
    assert "user_team = UserGroup()" in moment.results()
    assert "user_group = UserTeam()" in moment.results()


def test_a_name_put_in_the_place_of_another_is_no_rename() -> None:
    moment = Moment("first = 1\nother = 2\nuse(first)\nlog(first)\n", ("use(first)", "use(other)"))
    assert "other = 1" not in moment.results()
    assert moment.results("rename") == []


def test_a_rewritten_line_is_no_rename() -> None:
    moment = Moment(
        "self.update(other)\nself.update(more)\n", ("self.update(other)", "for item in values: insert(item)")
    )
    assert moment.results("rename") == []


def test_a_type_is_no_name_to_be_renamed() -> None:
    moment = Moment("def f(a: int) -> int:\n    b: int = 1\n", ("a: int", "a: float"))
    assert moment.results("rename") == []


def test_what_was_renamed_twice_has_its_last_name() -> None:
    text = "old_name = 1\na(old_name)\n"
    moment = Moment(text, ("old_name = 1", "new_name = 1"), ("new_name = 1", "other_name = 1"))
    assert moment.results() == ["a(other_name)"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            '    print("total is %s" % total)',
            ['    print("total is %s" % sum_up)', '    print("sum_up is %s" % total)'],
        ),
        ("    print('total is', total)", ["    print('total is', sum_up)", "    print('sum_up is', total)"]),
        ("    print(total)  # the total", ["    print(sum_up)  # the total", "    print(total)  # the sum_up"]),
        ('    print(f"total is {total}")', ['    print(f"total is {sum_up}")', '    print(f"sum_up is {total}")']),
        ("    don(total, 'x')", ["    don(sum_up, 'x')"]),
    ],
)
def test_a_string_or_comment_is_a_change_of_its_own(line: str, expected: list[str]) -> None:
    moment = Moment(f"def f():\n    total = g()\n{line}\n", ("total", "sum_up"))
    assert moment.results("rename") == expected
    assert [draft.alone for draft in moment.drafts("rename")] == [False, True][: len(expected)]


def test_a_string_is_not_renamed_together_with_other_lines() -> None:
    moment = Moment('def f():\n    total = g()\n    print("total is")\n    return total\n', ("total", "sum_up"))
    texts = region_texts(moment.text, 0, len(moment.text), moment.drafts("rename"))
    assert [('"sum_up is"' in each.draft.text, "return sum_up" in each.draft.text) for each in texts] == [
        (False, True),
        (True, False),
    ]


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
        ("int total", "int added", ["        added += a[i] * n;", "    return added / n;"]),
        ("int i =", "int at =", ["    for (int at = 0; at < n; at++) {", "        total += a[at] * n;"]),
    ],
)
def test_a_name_behind_its_type_is_renamed_within_its_function(old: str, new: str, expected: list[str]) -> None:
    assert sorted(Moment(C, (old, new)).results()) == sorted(expected)


def test_a_type_in_front_of_a_name_is_none_of_the_function() -> None:
    go = "func f(a Foo) {\n\tb(a)\n}\n\nfunc g(a Foo) {\n}\n"
    assert Moment(go, ("a Foo", "a Bar")).results("rename") == ["func g(a Bar) {"]
    java = "class A {\n    int f(Foo a) {\n        return a.b;\n    }\n\n    int g(Foo a) {\n    }\n}\n"
    assert Moment(java, ("Foo a", "Bar a")).results("rename") == ["    int g(Bar a) {"]


def test_a_new_name_may_stand_in_a_string_or_a_comment_before() -> None:
    text = 'def apply(cart):\n    print("discounted %s")\n    # discounted\n\n\nx = apply(1)\n'
    assert Moment(text, ("def apply", "def discounted")).results() == ["x = discounted(1)"]
    assert Moment(text + "discounted = 2\n", ("def apply", "def discounted")).results("rename") == []


def test_the_words_of_a_string_or_a_comment_name_no_code() -> None:
    text = 'def hello():\n    return "hello"\n\n\nprint(hello())\n'
    assert Moment(text, ('"hello"', '"welcome"')).results() == []
    text = "# the total\ntotal = 1\nprint(total)\n"
    assert Moment(text, ("# the total", "# the sum")).results() == []
