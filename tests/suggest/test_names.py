"""A name is what its language says: renaming it changes exactly its uses, in no language a part of another name."""

from __future__ import annotations

import time
import unicodedata
from dataclasses import dataclass

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from calomel.prompts.parts import text_hunks
from calomel.suggest.drafts.propose import drafts


@dataclass(frozen=True)
class Language:
    """How a language writes a name: where it is defined, in other lines that use it, and as a part of another name."""

    path: str
    defines: str
    uses: tuple[str, ...]
    others: tuple[str, ...]


LANGUAGES = (
    Language("a.css", ".% { color: red; }", (".% { margin: 0; }",), (".%-title { margin: 0; }", ".x-% { margin: 0; }")),
    Language("a.scss", "$%: 1px;", ("p { width: $%; }",), ("p { width: $%-wide; }", "% { width: 1px; }")),
    Language("a.yaml", "%: 1", ("  - %",), ("  image: web-%", "  - %-1")),
    Language("a.toml", "% = 1", ("[%]",), ("[%-dev]", "[my-%]")),
    Language("a.html", '<my-card %="1">', ("<b %></b>",), ("<b data-%></b>", "<b %-x></b>")),
    Language(
        "a.sh",
        '%="$1"',
        ('echo "$%"', "echo ${%}", "echo $%-x", "read -r %"),
        ("get --file-%", "echo %", "echo $%s", "%-all"),
    ),
    Language("a.php", "$% = load();", ("show($%);", 'echo "$%";'), ("show($%s);", "%();", "$a->%();")),
    Language("a.pl", "my $% = 1;", ("print $%;",), ("print $%s;", "%(2);")),
    Language("a.ps1", "$% = 1", ("Show $%",), ("Show-% 1", "Show $%s", "Get -% 1")),
    Language("a.el", "(setq % 1)", ("(message %)",), ("(message %-limit)", "(max-% 2)", "(%-p)")),
    Language("a.clj", "(def % 1)", ("(inc %)",), ("(inc %-limit)", "(%? 2)", "(->% 2)")),
    Language("a.rb", "def %; end", ("x = %",), ("x = %?", "x = @%", "%!")),
    Language("a.ex", "def %(a) do", ("%(2)",), ("%?(2)", "%!(2)", "x = @%")),
    Language("a.jl", "%(a) = a", ("%(2)",), ("%!(2)", "%s(2)")),
    Language("a.js", "const % = 1;", ("use(%);", "use(%?.a, %);"), ("use($%);", "use(%$);", "use(this.#%);")),
    Language("a.kt", "val % = 1", ('println("$%")', "use(%!!)"), ("use(%s)", "use(_%)")),
    Language("a.hs", "% = 1", ("y = % + 1",), ("y = %' + 1", "y = %s + 1")),
    Language("a.R", "% <- 1", ("print(%)",), ("print(%.total)", "print(x.%)")),
    Language("a.sql", "declare @% int;", ("select @%;",), ("select %;", "select @%s;")),
    Language("a.py", "% = 1", ("print(%)", "x = %-1"), ("print(%s)", "print(_%)", "print(%\u0301)")),
    Language("a.go", "var % = 1", ("use(%)", "x = %-1"), ("use(%s)", "use(a%)")),
    Language("a.rs", "static %: u8 = 1;", ("run(%);",), ("run(%s);", "run(_%);")),
)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.path)
@settings(max_examples=12)
@given(data=st.data())
def test_a_name_is_renamed_wherever_it_stands_and_never_as_a_part_of_another(
    data: st.DataObject, language: Language
) -> None:
    names = NAMES if language.path != "a.sh" else st.sampled_from([each for each in WORDS if each.isascii()])
    old, new = data.draw(st.tuples(names, names))
    assume(old != new and not old.startswith(new) and not new.startswith(old))
    lines = data.draw(st.lists(st.sampled_from((*language.uses, *language.others)), min_size=1, max_size=6))
    before = "\n".join(each.replace("%", old) for each in (language.defines, *lines)) + "\n"
    after = before.replace(language.defines.replace("%", old), language.defines.replace("%", new), 1)
    expected = [each.replace("%", new if each in language.uses else old) for each in lines]
    assert renamed(language.path, before, after).split("\n")[1:-1] == expected


WORDS = ("width", "label", "user_name", "rate", "café", "cafe", "größe", "नमस्ते", "ตัวแปร", "결과값", "合計額", "имя")
NAMES = st.sampled_from((*WORDS, unicodedata.normalize("NFD", "élan")))


def renamed(path: str, before: str, after: str) -> str:
    """The text when all that follows from a rename is done."""
    found = drafts(after, text_hunks(path, before, after), 0, path)
    done: list[tuple[int, int]] = []
    for draft in sorted((each for each in found if each.maker == "rename"), key=lambda each: (-each.start, -each.end)):
        if all(draft.end <= start for start, _ in done):
            after = draft.apply(after)
            done.append((draft.start, draft.end))
    return after


def test_a_name_is_the_same_however_its_accents_are_encoded() -> None:
    composed, decomposed = "café", unicodedata.normalize("NFD", "café")
    before = f"{composed} = 1\nprint({decomposed})\nprint(cafe)\n"
    assert renamed("a.py", before, before.replace(composed, "bar", 1)) == "bar = 1\nprint(bar)\nprint(cafe)\n"


# `%` stands for a parameter `size` that is renamed; another function has one, too.
FUNCTIONS = {
    "a line with types, and the name below": (
        "a.c", "static int\nscale(const box *%, int by)\n{\n    return %->w * by;\n}\n\nint other(box *size)\n{\n}\n"
    ),
    "a head of several lines that has no name": (
        "a.js", "const scale = async (\n  %,\n  by,\n) => {\n  return % * by;\n};\n\nfunction other(size) {\n}\n"
    ),
    "a type in brackets": (
        "a.ts", "class A {\n  scale(%: Box): Map<{ w: number }> {\n    return %;\n  }\n  other(size: Box) {\n  }\n}\n"
    ),
    "a head below an annotation": (
        "a.java", "class A {\n  @A\n  Box scale(\n    Box %) {\n    return %;\n  }\n  int other(Box size) {\n  }\n}\n"
    ),
    "an expression for a body": (
        "a.cs", "class A\n{\n  int Scale(Box %)\n    => %.By(1);\n\n  int Other(Box size)\n  {\n  }\n}\n"
    ),
    "a function on one line below": (
        "a.cpp", "auto scale(int %)\n{\n    return % * 2;\n}\n\nint other(int size) { return size; }\n"
    ),
    "a function on its line": (
        "a.py", "pick = max(boxes, key=lambda %: %.w)\nother = min(boxes, key=lambda size: size.h)\n"
    ),
    "a division that looks like a comment": (
        "a.py", "def scale(%, by):\n    return by // %\n\n\ndef other(size):\n    pass\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FUNCTIONS)
def test_a_parameter_is_renamed_in_its_own_function_alone(case: str) -> None:
    path, text = FUNCTIONS[case]
    before, expected = text.replace("%", "size"), text.replace("%", "area")
    assert renamed(path, before, text.replace("%", "area", 1).replace("%", "size")) == expected


def test_a_name_in_a_text_of_several_lines_is_the_last_change() -> None:
    before = 'def scale(box_size, by):\n    """Make\n    box_size larger.\n    """\n    return box_size * by\n'
    after = before.replace("box_size", "area", 1)
    hunks = text_hunks("a.py", before, after)
    (code,) = drafts(after, hunks, 0, "a.py")
    done = code.apply(after)
    (words,) = drafts(done, (*hunks, *text_hunks("a.py", after, done)), 0, "a.py")
    assert [after[: each.start].count("\n") for each in (code, words)] == [4, 2]
    assert [each.alone for each in (code, words)] == [False, True]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.ts", "const % = () =>\n  Math.random()\n    .toString();\n\nexport const A = `a${%()}`;\nconst b = %();\n"),
        ("a.go", "type box struct {\n\t% int\n}\n\nfunc f() {\n\tall := box{%: 1}\n\tuse(all.%)\n}\n"),
        ("a.py", "def f():\n    def %(a):\n        return a\n\n    return %(1)\n"),
    ],
)  # fmt: skip
def test_what_is_no_parameter_and_no_variable_is_renamed_outside_of_a_function_too(path: str, text: str) -> None:
    before, after = text.replace("%", "size"), text.replace("%", "area", 1).replace("%", "size")
    assert renamed(path, before, after) == text.replace("%", "area")


def test_a_name_that_a_line_uses_a_thousand_times_takes_no_longer_than_a_person_waits() -> None:
    many = ", ".join(["size"] * 1000)
    before = f"class A {{\n  size = 1;\n  m() {{\n    this.size = 2;\n    use(size);\n    all = [{many}];\n  }}\n}}\n"
    after = before.replace("this.size", "this.area")
    began = time.process_time()
    drafts(after, text_hunks("a.ts", before, after), 0, "a.ts")
    assert time.process_time() - began <= 3.0
