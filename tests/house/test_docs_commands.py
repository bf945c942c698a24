"""Every command line in the documentation is one that `calomel` understands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tests.house.pages import blocks, name, spans, told

from calomel.cli.app import app

_END = re.compile(r"\s(?:\||&&|;|&|>|<|#)(?:\s|$)|\s\|\||\s#")


def command_lines(page: Path) -> Iterator[str]:
    """Of spans and blocks; what stands behind a pipe, or in brackets, is another one."""
    yield from (span for span in spans(page) if re.match(r"(\S*/)?calomel(\s|$)", span))
    for block in blocks(page):
        for line in block.text.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|\|\||;|\||\$\(", line):
                found = re.match(r"\s*(?:\$ )?(?:\w+=\S+ )*((?:\S*/)?calomel(?:\s.*)?)$", part)
                if found is not None and not part.lstrip().startswith("#"):
                    yield found[1]


@cache
def tree() -> Any:
    """The commands and their options."""
    return typer.main.get_command(app)


def problem(line: str) -> str | None:
    """What is wrong with a command line; None when nothing is."""
    line = _END.split(line + " ", maxsplit=1)[0]
    words = shlex.split(line.replace("…", "").replace("'", "").replace("...", ""))[1:]
    command = tree()
    while words and not words[0].startswith("-") and hasattr(command, "commands"):
        word = words.pop(0)
        if word not in command.commands:
            # A title, as in "`calomel COMMAND --help`".
            return None if word.isupper() else f"there is no command {word}"
        command = command.commands[word]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"-h", "--help"}
    wrong = [word for word in words if word.startswith("-") and word.partition("=")[0] not in known]
    return f"{command.name} has no {wrong[0]}" if wrong else None


@pytest.mark.parametrize("page", told(), ids=name)
def test_commands_and_options_are_there(page: Path) -> None:
    found = {line: problem(line) for line in command_lines(page)}
    assert {line: wrong for line, wrong in found.items() if wrong is not None} == {}


def test_a_wrong_command_line_would_be_noticed() -> None:
    assert problem("calomel fil x") == "there is no command fil"
    assert problem("calomel fill FILE --to 3:4 --nowhere | jq .text") == "fill has no --nowhere"
    assert problem("calomel bench edits --held-out && rm --all") is None


def test_commands_are_found_in_spans_and_blocks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`calomel try`\n\n    calomel fill F | jq\n\n```sh\n$ calomel doctor  # look\n```\n", encoding="utf-8"
    )
    assert [line.split()[1] for line in command_lines(page)] == ["try", "doctor", "fill"]


def test_every_command_stands_on_the_page_of_the_command_line() -> None:
    page = next(path for path in told() if name(path) == "docs/cli.md")
    text = page.read_text(encoding="utf-8")
    assert [word for word in tree().commands if f"calomel {word}" not in text] == []
