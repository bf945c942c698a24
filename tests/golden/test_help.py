"""What every command prints with `--help`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.golden.transcript import Transcript

from calomel.cli.app import program
from calomel.cli.main import main


def commands(node: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, each in getattr(node, "commands", {}).items():
        yield from commands(each, (*words, name))


def test_help_is_what_it_was(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    transcript = Transcript("help", {})
    for words in commands(program()):
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        transcript.heading(" ".join(("calomel", *words)))
        transcript.says(" ", capsys.readouterr().out)
    transcript.check()
