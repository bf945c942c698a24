from __future__ import annotations

import time
import tracemalloc

import tree_sitter_python
from tree_sitter import Language, Parser

from calomel.workspace.lazy_tree import parse_within, parser_text

PARSER = Parser(Language(tree_sitter_python.language()))


def parse(text: str) -> str:
    tree = parse_within(PARSER, parser_text(text), None, time.monotonic() + 30, time.monotonic)
    assert tree is not None
    assert tree.root_node.end_byte == 2 * len(text)
    return str(tree.root_node)


def test_a_text_of_any_length_is_read_to_its_end() -> None:
    for length in (0, 1, 8191, 8192, 8193, 40_000):
        assert parse("x" * length).count("identifier") == (1 if length else 0)
    assert parse("a = '😀é'\r\nb = 2\r") == parse("a = 'xy'\r\nb = 2\r")


def test_parsing_keeps_nothing_of_the_texts() -> None:
    text = "value = compute(1, 2)\n" * 2000
    parse(text)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(40):
            parse(text + "x" * number)
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # One text in the parser's form has 88,000 bytes.
    assert kept < 88_000
