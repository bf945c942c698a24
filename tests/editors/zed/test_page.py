"""The page, the sample and the extension say what the program does."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from calomel.cli import jsonc
from calomel.cli.editor_plans import Here, zed
from calomel.server.settings import ServerSettings

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "editors" / "zed"
PAGE = (ROOT / "docs" / "zed.md").read_text()


@pytest.fixture
def written(tmp_path: Path) -> object:
    here = Here(tmp_path, tmp_path, False, "calomel", "http://127.0.0.1:8017", None, None)
    (change,) = zed(here).changes
    return jsonc.loads(change.after)


def test_the_sample_and_the_page_are_what_is_written(written: object) -> None:
    shown = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)

    assert jsonc.loads((FOLDER / "settings.json").read_text()) == written
    assert shown is not None
    assert json.loads(shown[1]) == written


def test_the_extension_names_its_server_everywhere_alike() -> None:
    manifest = tomllib.loads((FOLDER / "extension.toml").read_text())
    package = tomllib.loads((FOLDER / "Cargo.toml").read_text())
    source = (FOLDER / "src" / "lib.rs").read_text()

    assert list(manifest["language_servers"]) == ["calomel"]
    assert 'const SERVER: &str = "calomel"' in source
    assert "completion_item" in source
    assert package["lib"]["crate-type"] == ["cdylib"]
    assert manifest["version"] == package["package"]["version"]
    assert "Not compiled in CI" in source


def test_what_the_page_links_to_is_there() -> None:
    for page, folder in ((PAGE, ROOT / "docs"), ((FOLDER / "README.md").read_text(), FOLDER)):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page):
            assert (folder / target).exists(), target


def test_the_settings_that_the_page_names_are_there() -> None:
    assert {"workspace", "context_tokens", "aggressiveness", "no_auth"} <= set(ServerSettings.model_fields)
