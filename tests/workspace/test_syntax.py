from __future__ import annotations

import asyncio
import time
import tracemalloc

import pytest
import tree_sitter_python
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.shapes import SHAPES
from tests.workspace.editing import PROGRAMS, URI, Editor
from tree_sitter import Language, Node, Parser

from calomel.code.definitions import Definition, definitions_in
from calomel.code.languages import GRAMMARS, grammar_of, load, parser_for
from calomel.code.trees import Work, error_count, inside, parse_within, parsed, parser_text, way
from calomel.workspace.documents import Document
from calomel.workspace.syntax import LONGEST_TEXT, SyntaxTrees

PIECES = ["", "x", "(", ")", "{", "}", "\n", '"', "é", "😀", "\r", "\r\n", "    ", "def f():\n", "/*", "*/", "# c",
          "\ud800"]  # fmt: skip
EDITS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(0, 30), st.sampled_from(PIECES), st.booleans()), min_size=1, max_size=12
)


def patient() -> SyntaxTrees:
    return SyntaxTrees(lambda: 0.0)


def document(text: str, language_id: str = "python") -> Document:
    """`|` is where somebody asks."""
    return Document(URI, language_id, 1, text.replace("|", ""))


def nodes(root: Node) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    left = [root]
    while left:
        node = left.pop()
        found.append((node.type, node.byte_range, node.start_point, node.end_point, node.is_missing))
        left.extend(node.children)
    return found


def fresh_root(text: str, language_id: str) -> Node:
    grammar = grammar_of(language_id)
    assert grammar is not None
    parser = parser_for(grammar)
    assert parser is not None
    return parser.parse(parser_text(text), encoding="utf16le").root_node


@settings(max_examples=15, deadline=None)
@given(edits=EDITS)
@pytest.mark.parametrize("language_id", PROGRAMS)
def test_a_tree_after_any_edits_is_the_tree_of_the_text(
    language_id: str, edits: list[tuple[int, int, str, bool]]
) -> None:
    syntax = patient()
    editor = Editor(PROGRAMS[language_id], language_id, [syntax])
    assert syntax.tree(editor.document) is not None
    for start, length, text, ask in edits:
        first = min(start, len(editor.document))
        editor.replace(first, min(first + length, len(editor.document)), text)
        if ask:
            syntax.tree(editor.document)
    tree = syntax.tree(editor.document)
    assert tree is not None
    expected = fresh_root(editor.document.text, language_id)
    assert tree.root_node.has_error == expected.has_error
    # How tree-sitter recovers from an error depends on what it has read before.
    assert expected.has_error or nodes(tree.root_node) == nodes(expected)


async def test_a_parse_that_takes_too_long_goes_on_with_the_next_question_while_the_user_types() -> None:
    syntax = SyntaxTrees(parse_seconds=5e-5)
    editor = Editor(PROGRAMS["python"] * 100, "python", [syntax])
    asked = 0
    while (tree := syntax.tree(editor.document)) is None:
        asked += 1
        if asked < 20:
            editor.replace(0, 0, "a")
        else:
            await syntax.parse(editor.document, seconds=1e-4)
        assert asked < 1000
    assert asked > 5
    assert nodes(tree.root_node) == nodes(fresh_root(editor.document.text, "python"))


def test_the_queries_of_one_question_parse_for_the_time_of_one() -> None:
    clock = Work()
    syntax = SyntaxTrees(clock, parse_seconds=1e-3)
    editor = Editor(PROGRAMS["python"] * 2000, "python", [syntax])
    assert syntax.tree(editor.document) is None
    began = clock()
    for _ in range(20):
        assert syntax.tree(editor.document) is None
        syntax.scopes(editor.document, 100)
        syntax.identifiers_near(editor.document, 100)
    assert clock() - began < 1e-3


def test_a_huge_document_has_no_tree_and_still_answers() -> None:
    syntax = patient()
    editor = Editor("def f():\n    return 1\n" * (LONGEST_TEXT // 20), "python", [syntax])
    assert syntax.tree(editor.document) is None
    assert [scope.signature for scope in syntax.scopes(editor.document, 20)] == ["def f():"]


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_way_down_ends_at_the_node_that_the_library_finds(name: str) -> None:
    """A naive way is quadratic, so the texts are short."""
    for language_id in ("python", "c", "javascript", "json"):
        text = SHAPES[name](1_000)
        tree = parsed(text, grammar_of(language_id))
        assert tree is not None
        for offset in range(0, len(text), 7):
            steps = [step.node for step in way(tree, offset)]
            assert steps[-1] == tree.root_node.descendant_for_byte_range(2 * offset, 2 * offset + 2)
            assert [node.parent for node in steps] == [None, *steps[:-1]]


def test_nobody_knows_what_is_at_the_bottom_of_a_tree_that_is_as_deep_as_its_text_is_long() -> None:
    text = "[" * 100_000 + "]" * 100_000
    tree = parsed(text, grammar_of("json"))
    assert tree is not None
    assert way(tree, 100_000) == ()
    assert inside(tree, text, 100_000) == "unknown"


def outline(language_id: str) -> tuple[Definition, ...]:
    tree, grammar = patient().tree(document(PROGRAMS[language_id], language_id)), grammar_of(language_id)
    assert tree is not None
    assert grammar is not None
    return definitions_in(tree, grammar, PROGRAMS[language_id])


@pytest.mark.parametrize(
    ("language_id", "names"),
    [
        ("python", ["LIMIT", "area", "Box", "sides", "grow"]),
        ("typescript", ["area", "Shape", "sides", "Box", "grow"]),
        ("typescriptreact", ["App"]),
        ("go", ["Limit", "Box", "Grow"]),
        ("rust", ["Box", "Box", "grow"]),
        ("c", ["LIMIT", "box", "grow"]),
        ("ruby", ["M", "Box", "grow"]),
        ("json", []),
    ],
)
def test_an_outline_names_what_a_file_defines(language_id: str, names: list[str]) -> None:
    found = outline(language_id)
    assert [item.name for item in found] == names
    if language_id == "python":
        area = found[1]
        assert area.signature == "def area(width,\n         height):"
        assert (area.start_line, area.body_line, area.end_line, area.depth) == (5, 8, 10, 0)


@pytest.mark.parametrize("language_id", ["python", "brainfuck"])
def test_scopes_enclose_the_cursor_with_and_without_a_grammar(language_id: str) -> None:
    text = "class Box:\n    def grow(self, by):\n        \n\ndef other():\n    pass\n"
    scopes = patient().scopes(document(text, language_id), text.index("\n\ndef"))
    assert [(scope.kind, scope.name) for scope in scopes] == [("class", "Box"), ("function", "grow")]
    assert scopes[-1].signature == "def grow(self, by):"


BOX = "class Box:\n    def grow(self):\n        return 1\n"
BLOCKS: dict[int, list[str]] = {8: ["Box", "grow"], 4: ["Box"], 0: []}


@pytest.mark.parametrize(
    ("language_id", "text", "names"),
    [
        (
            "python",
            "class Box:\n    def grow(self, by):\n        x = call(|\n\n    def other(self): pass\n",
            ["Box", "grow"],
        ),
        # The column on an empty line says which block goes on.
        *(("python", BOX + " " * column + "|", names) for column, names in BLOCKS.items()),
        ("javascript", "class Box {\n  grow(by) {}\n}\nfunction later(x) {\n  if (x) {\n    call(|\n", ["later"]),
        ("javascript", "function one() {\n  a();\n}\n\nfunction two() {\n  b();|\n}\n", ["two"]),
        ("javascript", "function one() {\n  a();\n}\n|\nfunction two() {\n  b();\n}\n", []),
    ],
)
def test_scopes_are_known_while_a_statement_is_unfinished(language_id: str, text: str, names: list[str]) -> None:
    assert [scope.name for scope in patient().scopes(document(text, language_id), text.index("|"))] == names


def test_identifiers_come_nearest_first_without_keywords_comments_and_strings() -> None:
    text = 'far = 1\n\ndef outer(argument):\n    # remark\n    if alpha and "text":\n        return beta(|)\n'
    found = patient().identifiers_near(document(text), text.index("|"))
    assert found == ("beta", "alpha", "argument", "outer", "far")
    without_grammar = document("function alpha() return beta end\n", "lua")
    assert patient().identifiers_near(without_grammar, 0) == ("alpha", "beta")


@pytest.mark.parametrize(
    ("language_id", "text", "expected"),
    [
        ("python", "x = 1  # why|", "comment"),
        ("python", "x = 'te|xt'", "string"),
        ("python", "x = f'te{va|lue}xt'", None),
        ("python", "x = 'open|\ny = 1\n", "string"),
        ("python", '"""doc\n\nmore|\n"""\n', "string"),
        ("typescript", "/* a\n | */ let x;", "comment"),
        ("typescript", "const x = `a${b|}c`;", None),
        ("typescript", "const x = `a${b}c|`;", "string"),
        ("lua", "x = 1 -- why|", "comment"),
        ("plaintext", "don't stop|", None),
        ("zig", "/* a\n |", "comment"),
    ],
)
def test_comments_and_strings_are_known_from_code(language_id: str, text: str, expected: str | None) -> None:
    assert patient().in_comment_or_string(document(text, language_id), text.index("|")) == expected


def test_blocks_begin_at_definitions_members_and_runs_of_statements() -> None:
    text = (
        "import a\nimport b\n\nx = 1\n\n\n# about f\ndef f():\n    pass\n\n\nclass C:\n    y = 1\n\n"
        "    @decorated\n    def m(self):\n        pass\n"
    )
    assert patient().block_starts(document(text)) == (0, 3, 6, 11, 12, 14)
    without_grammar = document("a\nb\n\nc\n    d\n\n        deep\n\n                    deeper\n", "unknown")
    assert patient().block_starts(without_grammar) == (0, 3, 6)


def test_errors_are_counted_before_and_after_an_edit() -> None:
    syntax = patient()
    editor = Editor("x = (1)\ny = 2\n", "python", [syntax])
    assert error_count("x = (1)\n", "python", 60.0) == 0
    assert error_count("x = (\n\n", "python", 60.0) == 1
    assert error_count("x = (", "cobol", 60.0) is None
    code = syntax.snapshot(editor.document)
    before, after = code.errors(6, 7, "") or (-1, -1)
    assert before == 0
    assert after > 0
    assert code.errors(12, 13, "3") == (0, 0)


@pytest.mark.parametrize("text", ["return def f():\n", "return import os\n", "return for i in x:\n    pass\n"])
def test_a_statement_within_another_is_an_error(text: str) -> None:
    assert error_count(text, "python", 60.0)


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_grammars_know_the_kinds_of_nodes_that_are_asked_for(grammar: object) -> None:
    found = next(each for each in GRAMMARS if each is grammar)
    language = load(found)
    assert language is not None
    assert [kind for kind in found.definitions if language.id_for_node_kind(kind, True) is None] == []


@pytest.mark.parametrize(
    ("language_id", "text", "count"),
    [
        ("go", "package a\n\nfunc f() error {\n\treturn nil\n}\n", 0),
        ("go", "package a\n\nfunc f() {\n}\n\nreturn nil\n", 1),
        ("rust", "thread_local! {}\nfn f() -> i32 {\n    1\n}\n", 0),
        ("c", "MODULE(x);\nint f(void) { return 1; }\n", 0),
    ],
)
def test_a_statement_where_the_language_has_none_is_an_error(language_id: str, text: str, count: int) -> None:
    assert error_count(text, language_id, 60.0) == count


async def test_a_tree_is_made_ready_in_turns_with_others_and_for_no_longer_than_that() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    for seconds, found in ((10.0, True), (1.5e-4, False)):
        syntax = SyntaxTrees(parse_seconds=5e-5)
        editor = Editor(PROGRAMS["python"] * 100, "python", [syntax])
        beside = asyncio.ensure_future(other())
        turns = 0
        await syntax.parse(editor.document, seconds=seconds)
        beside.cancel()
        assert turns > 0
        assert (syntax.tree(editor.document) is not None) is found


PARSER = Parser(Language(tree_sitter_python.language()))


def parse(text: str) -> str:
    tree = parse_within(PARSER, parser_text(text), None, time.monotonic() + 30, time.monotonic)
    assert tree is not None
    assert tree.root_node.end_byte == 2 * len(text)
    return str(tree.root_node)


def test_parsing_keeps_nothing_of_the_texts() -> None:
    text = "value = compute(1, 2)\n" * 500
    parse(text)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(40):
            parse(text + "x" * number)
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # Each of the 40 texts has 22,000 bytes in the parser's form.
    assert kept < 10 * 22_000
