"""A rename changes the uses of one binding, in every language that has a table of scopes, and nothing else.

In the cases `%` is the name that is renamed, at its first place by the person; `size` is another one's.
"""

# ruff: noqa: E501 (a text is easier to read on one line)

from __future__ import annotations

import pytest
from tests.suggest.test_names import renamed

from calomel.prompts.parts import text_hunks
from calomel.suggest.drafts.propose import drafts

# What is told, and the text.
CASES: dict[str, tuple[str, str]] = {
    "a function declares it anew": (
        "a.py", "def outer(%):\n    def inner(size):\n        return size\n\n    return inner(%), %\n"),
    "a loop in brackets has its own": ("a.py", "def f(%):\n    return [size for size in %], %\n"),
    "an attribute is another's": ("a.py", "def f(box, %):\n    return box.size + %\n"),
    "a keyword is the callee's": ("a.py", "def f(%):\n    return open(size=%)\n\n\nsize = 1\n"),
    "a keyword of its own function": ("a.py", "def f(%):\n    return %\n\n\nf(%=1)\ng(size=1)\n"),
    "a keyword of its own constructor": (
        "a.py", "class Box:\n    def __init__(self, %):\n        self.size = %\n\n\nBox(%=1)\nBag(size=1)\n"),
    "a name of the class is none of its methods": (
        "a.py", "class Box:\n    size = 1\n\n    def f(self, %):\n        return %, self.size\n"),
    "what is declared global is the file's": (
        "a.py", "% = 1\n\n\ndef f():\n    global %\n    % = 2\n\n\ndef g(size):\n    return size\n"),
    "what is caught is known there alone": (
        "a.py", "def f():\n    try:\n        g()\n    except A as %:\n        log(%)\n    except C as size:\n        log(size)\n"),
    "a pattern binds, its key does not": (
        "a.py", "def f(x):\n    match x:\n        case {'size': %}:\n            return %\n        case Box(size=other):\n            pass\n"),
    "a string that computes": ("a.py", "def f(%):\n    return f'size {%}' + 'size {size}'\n"),
    "a key and a value in one": ("a.ts", "function f(%: number) {\n  return { size: %, other: %.size };\n}\n"),
    "an option's key": ("a.ts", "const % = ref();\ndefine({ size: 'x', other: % });\n"),
    "a property that is read": ("a.ts", "let % = state(article.size);\nuse(%, this.size);\n"),
    "a block has its own": ("a.js", "function f(%) {\n  {\n    const size = 1;\n    use(size);\n  }\n  return %;\n}\n"),
    "an arrow has its own": ("a.js", "const f = (%) => all.map((size) => size + 1).concat(%);\n"),
    "a type has a space of its own": ("a.ts", "type size = number;\nfunction f(%: size): size {\n  return %;\n}\n"),
    "a field of the constructor": (
        "a.ts", "class A {\n  constructor(private %: B) {}\n  run(size: B) {\n    return this.% + size;\n  }\n}\n"),
    "a path of a module": ("a.ts", "import { f } from './size';\nconst % = f();\nuse(%);\n"),
    "a field of Go": (
        "a.go", "type Box struct {\n\t% int\n}\n\nfunc (b *Box) Get(size int) int {\n\treturn b.% + size\n}\n"),
    "what is declared again in Go": (
        "a.go", "func f(% int) {\n\tif ok {\n\t\tsize := 1\n\t\tuse(size)\n\t}\n\tuse(%)\n}\n"),
    "a new one of the same name in Rust": (
        "a.rs", "fn f(%: u8) -> u8 {\n    let size = % + 1;\n    let size = size * 2;\n    size\n}\n"),
    "what Rust prints": ("a.rs", 'fn f(%: u8) {\n    println!("{%} {}", %);\n}\n'),
    "a field of Java beside a parameter": (
        "a.java", "class A {\n  int size;\n  void set(int %) {\n    this.size = %;\n  }\n  int get() {\n    return size;\n  }\n}\n"),
    "a member of C": ("a.c", "int f(struct box *b, int %) {\n    return b->size + %;\n}\nint g(int size);\n"),
    "an argument's name in C#": (
        "a.cs", "class A {\n  void F(int %) { Use(%); }\n  void G() { F(%: 1); H(size: 2); }\n}\n"),
    "a block of Ruby": ("a.rb", "def f(%)\n  all.each { |size| use(size) }\n  %.size\nend\n\ndef size; end\n"),
    "a local of a shell's function": ("a.sh", 'f() {\n  local %=1\n  echo "$%" size\n}\nsize=2\necho $size\n'),
    "a language without a grammar (Elixir)": (
        "a.ex", "def f(%) do\n  use(%)\nend\n\ndef g(size) do\n  use(size)\nend\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_rename_is_of_one_binding(case: str) -> None:
    path, text = CASES[case]
    at = text.index("%")
    before = text.replace("%", "size")
    after = text[:at] + "amount" + text[at + 1 :].replace("%", "size")
    assert renamed(path, before, after) == text.replace("%", "amount")


# A change of a word that says nothing about its other places; and the path.
NOTHING = {
    "another method of another object": (
        "a.py", "def info(x):\n    pass\n\n\nlog.info(1)\ninfo(2)\nother.info(3)\n", "log.info", "log.debug"),
    "a method in a class that defines it": (
        "a.ts", "class A {\n  warn(x) {}\n  error(x) {}\n  run() {\n    this.warn(1);\n  }\n}\n", "this.warn", "this.error"),
    "a word of a string": ("a.py", "def f(size):\n    return q('size of it'), size\n", "size of", "width of"),
    "a column in a string beside a parameter": (
        "a.js", "function f(count) {\n  return sql(`count ${count}`, '{ count }');\n}\n", "`count", "`total"),
    "a link": ("a.md", "Our [size](https://x.org/size) page.\nSee https://x.org/size too.\n", "[size", "[width"),
    "where the tree has an error": ("a.py", "def f(size:\n    use(size)\n    return size\n", "use(size", "use(width"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOTHING)
def test_a_word_that_stands_for_something_else_stays(case: str) -> None:
    path, before, old, new = NOTHING[case]
    assert renamed(path, before, before.replace(old, new, 1)) == before.replace(old, new, 1)


def test_an_exchanged_method_is_exchanged_on_the_same_receiver() -> None:
    before = "def f(log, out):\n    log.info(1)\n    out.info(2)\n    log.info(3)\n"
    after = before.replace("log.info(1)", "log.debug(1)")
    assert renamed("a.py", before, after) == before.replace("log.info", "log.debug")


@pytest.mark.parametrize(
    ("path", "other", "text"),
    [
        ("one.py", "app/two.py", "x = total(1)\nprint(total(2))\n"),
        ("one.ts", "page.md", "The total of it.\nAnother total.\n"),
        ("one.py", "two.py", "from one import count\n\n\ndef show(total):\n    print(total)\n"),
    ],
    ids=["not_imported", "another_language", "its_own"],
)
def test_an_edit_of_another_file_says_nothing_here(path: str, other: str, text: str) -> None:
    before = "def total(x):\n    return x\n" if path.endswith("py") else "export function total() {}\n"
    hunks = text_hunks(path, before, before.replace("total", "amount"))
    assert drafts(text, hunks, 0, other) == ()


def test_a_deletion_is_repeated_in_another_file_after_three() -> None:
    text = "from one import f\n\n" + "\n".join(f"x{at} = f({at}) + base" for at in range(3)) + "\n"
    lines = [f"y{at} = f({at}) + base\n" for at in range(3)]
    hunks = [hunk for line in lines for hunk in text_hunks("one.py", line, line.replace(" + base", ""))]
    assert drafts(text, tuple(hunks[:2]), 0, "two.py") == ()
    assert drafts(text, tuple(hunks), 0, "two.py")
