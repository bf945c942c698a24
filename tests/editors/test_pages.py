"""The pages on other editors show what `calomel editor setup` prints and writes."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from calomel.cli.editor_plans import Here, emacs, helix, sublime

PAGE = (Path(__file__).parents[2] / "docs" / "other-editors.md").read_text(encoding="utf-8")


def shown(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path, tmp_path, False, "calomel", None, None, None)


def test_the_lines_for_emacs_are_those_that_are_printed(here: Here) -> None:
    assert sorted(shown("elisp")) == sorted(each.text for each in emacs(here).snippets)


def test_the_lines_for_helix_are_those_that_are_printed(here: Here) -> None:
    assert shown("toml") == [each.text for each in helix(here).snippets]
    tomllib.loads(shown("toml")[0])


def test_the_lines_for_sublime_text_are_those_that_are_written(here: Here) -> None:
    (change,) = sublime(here).changes
    assert [json.loads(each) for each in shown("json")] == [json.loads(change.after)]
