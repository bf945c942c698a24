"""Prompts for Sweep's second models beside those of their makers' own server, `sweep-autocomplete` of PyPI.

Fetched by the test, into the cache; skipped where that is impossible. What differs: docs/developers/formats.md.
"""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from tests.server._llama_cpp import packages

from calomel.prompts.next_edit import CURSOR, FILE, write_sweep
from calomel.prompts.parts import EditRegion, Excerpt, Hunk, PromptParts, text_hunks

pytestmark = pytest.mark.slow

# The server with a model that says nothing: the prompts that it gets, and the lines that it may rewrite.
SERVER = """
import json, sys, types
shown = []
def generate_completion(prompt, **_):
    shown.append(prompt)
    return "", 0, [], "stop"
local = types.ModuleType("sweep_autocomplete.autocomplete.llm_local")
local.generate_completion, local.RequestCancelled = generate_completion, type("RequestCancelled", (Exception,), {})
sys.modules[local.__name__] = local
from loguru import logger
logger.remove()
from sweep_autocomplete.autocomplete.next_edit_autocomplete import fetch_next_edits, get_block_at_cursor
from sweep_autocomplete.dataclasses.file_chunk_data import FileChunkData
text, before, changes, cursor, files = json.load(sys.stdin)
chunks = [FileChunkData(path, 1, 2, text) for path, text in files]
next(fetch_next_edits("a.py", text, changes, cursor, before, chunks, [], []))
print(json.dumps([shown[0], get_block_at_cursor(text, cursor)[0]]))
"""
OLD = "".join(f"def f{number}(size):\n    total = {number}\n    return total\n\n\n" for number in range(8))
RENAMED = OLD.replace("def f3(size)", "def f3(width)")
# The texts of a file after each edit, where the cursor is, and other files.
SITUATIONS: dict[str, tuple[list[str], str, list[tuple[str, str]]]] = {
    "the cursor in a line": ([OLD, RENAMED], "return total", []),
    "a deletion": ([OLD, OLD.replace("    total = 3\n", "")], "return total", []),
    "an insertion": ([OLD, OLD.replace("    total = 3\n", "    total = 3\n    total += size\n")], "return total", []),
    "two edits": ([OLD, RENAMED, RENAMED.replace("total = 3", "total = 3 * size")], "return total", []),
    "another file": ([OLD, RENAMED], "return total", [("b.py", "LIMIT = 1\nOTHER = 2\n")]),
    "no edit": ([OLD], "return total", []),
}


def sections(prompt: str) -> Iterator[tuple[str, Any]]:
    """Its parts, without line numbers, blank lines at the edges, and unchanged lines of diffs."""
    for number, section in enumerate(prompt.split(FILE)[1:]):
        head, _, text = section.partition("\n")
        path = re.sub(r":\d+:\d+$", "", head)
        diff = re.fullmatch(r"original:\n(.*?)\n?updated:\n(.*?)\n*", text, re.DOTALL)
        if diff is not None:
            yield path, [(each.before, each.after) for each in text_hunks(path, line(diff[1]), line(diff[2]))]
        # How much of the answer is given differs: a maker's other program gives all above the cursor's line.
        elif not path.startswith("updated/"):
            yield f"{path} {number}" if "/" not in path else path, text.strip("\n")


def line(text: str) -> str:
    return f"{text}\n" if text else ""


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_makers_own_server_shows_the_same(name: str) -> None:
    texts, at, files = SITUATIONS[name]
    text = texts[-1]
    cursor = text.index(at, text.index("def f3"))
    pairs = [(one.splitlines(keepends=True), other.splitlines(keepends=True)) for one, other in pairwise(texts)]
    changes = "".join("File: a.py\n" + "".join([*difflib.unified_diff(*pair, n=1)][2:]) for pair in pairs)
    surroundings = packages("sweep", "sweep-autocomplete==0.1.1", "loguru", "regex", "requests", "scipy")
    asked = json.dumps([text, texts[0], changes, cursor, files])
    ran = subprocess.run(
        [sys.executable, "-c", SERVER], input=asked, capture_output=True, text=True, env=surroundings, check=True
    )
    theirs, region = json.loads(ran.stdout)
    edits: list[Hunk] = [hunk for one, other in pairwise(texts) for hunk in text_hunks("a.py", one, other)]
    start = text.index(region)
    parts = PromptParts(
        related=tuple(Excerpt(path, 0, content) for path, content in files),
        edits=tuple(edits),
        path="a.py",
        prefix=text[:start],
        suffix=text[start + len(region) :],
        region=EditRegion(region, cursor - start),
    )

    ours, _ = write_sweep(parts, second=True)

    assert CURSOR in theirs
    assert list(sections(ours)) == list(sections(theirs))
