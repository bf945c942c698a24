"""The pages, samples and extensions of other editors say what `calomel editor setup` prints."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from tests.editors.programs import REPOSITORY

from calomel.cli.editor import Here, emacs, helix, settings_of, sublime, zed

ZED = REPOSITORY / "editors" / "zed"


def shown(language: str, page: str) -> list[str]:
    text = (REPOSITORY / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path, tmp_path, False, "calomel", "http://127.0.0.1:8017", None, None)


def test_the_lines_for_emacs_and_helix_are_those_that_are_printed(here: Here) -> None:
    assert sorted(shown("elisp", "emacs")) == sorted(each.text for each in emacs(here).snippets)
    assert shown("toml", "helix") == [each.text for each in helix(here).snippets]
    tomllib.loads(shown("toml", "helix")[0])


def test_the_settings_of_sublime_text_and_zed_are_those_that_are_printed(here: Here) -> None:
    (snippet,) = sublime(here).snippets
    assert [json.loads(each) for each in shown("json", "sublime")] == [json.loads(snippet.text)]
    (snippet,) = zed(here).snippets
    written = json.loads(snippet.text)
    assert settings_of(ZED / "settings.json") == written
    assert json.loads(shown("json", "zed")[0]) == written
