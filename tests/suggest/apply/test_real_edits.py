"""Edits turned into snippets: the merge gives the edit back, or says that it cannot, and hardly ever anything else."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.suggest.apply.made_snippets import by_definitions, by_hunks

from calomel.suggest.apply.merge import merge
from calomel.suggest.edit import split_lines

ROOT = Path(__file__).parents[3]
PACKAGES = ("starlette", "httpx", "fastapi", "rich")
HISTORY = 400
STYLES: dict[str, Callable[[str, str, str], str]] = {
    "hunks with 3 lines": lambda before, after, path: by_hunks(before, after, path, 3),
    "hunks with 1 line": lambda before, after, path: by_hunks(before, after, path, 1),
    "definitions": by_definitions,
}


def verdict(before: str, after: str, snippet: str) -> str:
    merged = merge(before, snippet)
    if merged.warning is None:
        return "exact" if merged.text == after else "other"
    assert merged.text == before
    return "among several" if after in merged.ambiguous else "refused"


def installed() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        for folder in spec.submodule_search_locations or []:
            for file in sorted(Path(folder).rglob("*.py")):
                text = file.read_text(encoding="utf-8")
                if 40 < text.count("\n") < 900:
                    yield file.name, text


def edited(text: str, rng: random.Random) -> str:
    """The text with some lines of code changed, added or removed, within their block."""
    lines = split_lines(text)
    places = [at for at in range(5, len(lines) - 5) if lines[at].strip() and lines[at].strip()[-1] not in ":([{,\"'"]
    for at in sorted(rng.sample(places, min(len(places), rng.randint(1, 3))), reverse=True):
        margin = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        kind = rng.choice(["change", "add", "add two", "remove"])
        if kind == "change":
            lines[at] = lines[at].rstrip("\n") + "  # changed\n"
        elif kind == "remove" and lines[at + 1].strip() and lines[at + 1].startswith(margin + lines[at + 1].strip()[0]):
            # Of a line at the end of a block, a snippet that ends there as well could not tell.
            lines[at : at + 1] = []
        else:
            new = [f"{margin}added_{rng.randint(0, 99)} = {number}\n" for number in range(len(kind.split()))]
            lines[at + 1 : at + 1] = new
    return "".join(lines)


def measured(edits: list[tuple[str, str, str]], style: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for path, before, after in edits:
        snippet = STYLES[style](before, after, path)
        if before != after and snippet.strip():
            found[verdict(before, after, snippet)] += 1
    print(style, dict(found))  # noqa: T201
    return found


@pytest.mark.parametrize("style", ["hunks with 3 lines", "definitions"])
def test_small_edits_of_packages_come_back_and_are_hardly_ever_anything_else(style: str) -> None:
    rng = random.Random(7)
    files = rng.sample(list(installed()), 40)
    found = measured([(path, text, edited(text, rng)) for path, text in files], style)
    assert found["exact"] >= 0.8 * found.total()
    assert found["other"] <= 0.05 * found.total()


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_commits_come_back_and_are_seldom_anything_else(style: str) -> None:
    found = measured(list(history()), style)
    assert found["exact"] >= 0.7 * found.total()
    # What a commit removed at the end of a file or of a function, a snippet of this kind does not tell.
    assert found["other"] <= 0.16 * found.total()


def history() -> Iterator[tuple[str, str, str]]:
    """What commits of this repository did to one file each."""
    command = ["git", "log", "--no-merges", "--diff-filter=M", "--raw", "--no-abbrev", "--format="]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    rows = [line.split("\t") for line in done.stdout.splitlines() if line.endswith((".py", ".ts", ".lua", ".md"))]
    if done.returncode or len(rows) < HISTORY:
        pytest.skip("no history of this repository here")
    rows.reverse()
    for about, path in random.Random(7).sample(rows, HISTORY):
        old, new = about.split()[2:4]
        yield path, blob(old), blob(new)


def blob(name: str) -> str:
    return subprocess.run(
        ["git", "cat-file", "blob", name], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
