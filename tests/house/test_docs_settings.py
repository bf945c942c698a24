"""Every setting in the documentation is one, and the page of all settings is current."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from tests.house.pages import ROOT, blocks, name, pages, spans, told

from calomel.cli.config import reference_page
from calomel.server.settings import TABLE, ServerSettings
from calomel.workspace.settings import Settings

_SECTIONS = {
    section.name: {each.name for each in fields(getattr(Settings(), section.name))} for section in fields(Settings)
}
_NAMED = re.compile(rf"(?<![\w.])({'|'.join(_SECTIONS)})\.([a-z_]+)\b(?![.(/])")
# Variables that are no settings of the server: the file that holds them, and where tests find data and editors.
_OTHER = {"CALOMEL_CONFIG", "CALOMEL_DATA", "CALOMEL_VSCODE", "CALOMEL_CLIENTS", "CALOMEL_NEOVIM"}
# `server.json` and its like are files.
_ENDINGS = {"json", "py", "log", "toml", "md", "lua", "jsonl", "lock"}


def test_page_of_all_settings_is_what_the_settings_say() -> None:
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert reference_page() == page, "calomel config reference > docs/reference.md"


@pytest.mark.parametrize("page", told(), ids=name)
def test_settings_that_are_named_are_there(page: Path) -> None:
    wrong = [
        f"{section}.{key}"
        for span in spans(page)
        for section, key in _NAMED.findall(span)
        if key not in _SECTIONS[section] and key not in _ENDINGS
    ]
    assert wrong == []


@pytest.mark.parametrize("page", pages(), ids=name)
def test_variables_that_are_named_are_there(page: Path) -> None:
    known = {f"CALOMEL_{setting.upper()}" for setting in ServerSettings.model_fields} | _OTHER
    assert set(re.findall(r"\bCALOMEL_[A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8"))) - known == set()


@pytest.mark.parametrize("page", told(), ids=name)
def test_settings_in_examples_are_there(page: Path) -> None:
    for block in blocks(page):
        if block.language == "toml" or re.match(
            r"\[(?:serve|workspace|privacy|suggest|server|log)\]", block.text.lstrip("# ")
        ):
            tables: dict[str, Any] = tomllib.loads(block.text)
            for table, values in tables.items():
                known = set(ServerSettings.model_fields) if table == TABLE else _SECTIONS.get(table)
                if known is not None:
                    assert set(values) - known == set()
