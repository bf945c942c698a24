"""What can be said of the extension without a VS Code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.editors.programs import EXTENSION, REPOSITORY, find_npm, wanted

from calomel.infer.completer import version

PAGE = REPOSITORY / "docs" / "vscode.md"
# The first two throw where a provider that merely has them is registered, the third where it is passed at all; the rest
# does nothing. The Marketplace refuses whatever names a proposal.
PROPOSED = re.compile(
    r"handleDidShowCompletionItem|handleDidPartiallyAcceptCompletionItem"
    r"|registerInlineCompletionItemProvider\([^)]*,[^)]*,"
    r"|handleEndOfLifetime|handleListEndOfLifetime|isInlineEdit|showInlineEditMenu|displayLocation"
)


def manifest() -> dict[str, Any]:
    return dict(json.loads((EXTENSION / "package.json").read_text(encoding="utf-8")))


def sources() -> list[Path]:
    return sorted((EXTENSION / "src").glob("*.ts"))


def test_every_setting_of_the_server_is_one_of_the_editor() -> None:
    script = EXTENSION / "scripts" / "write-settings"
    checked = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_descriptions_name_settings_as_the_editor_does() -> None:
    parts = manifest()["contributes"]["configuration"]
    properties = {name: each for part in parts for name, each in part["properties"].items()}
    known = {name.rpartition(".")[2] for name in properties}
    for each in properties.values():
        named = re.findall(r"`([^`]+)`", each["markdownDescription"])
        assert {name.strip("#") for name in named if name.startswith("#")} <= set(properties)
        assert known.isdisjoint(named)


def test_a_number_that_the_editor_marks_as_wrong_is_sent_to_the_file_that_takes_it() -> None:
    parts = manifest()["contributes"]["configuration"]
    levels = [each for part in parts for each in part["properties"].values() if "balanced" in json.dumps(each)]
    assert len(levels) == 2
    assert all("Set a number in `calomel.toml`." in each["markdownDescription"] for each in levels)


def test_nothing_is_used_that_is_only_proposed() -> None:
    assert len(sources()) > 10
    assert [path.name for path in sources() if PROPOSED.search(path.read_text(encoding="utf-8"))] == []
    assert "enabledApiProposals" not in manifest()


def test_every_command_has_code_and_every_key_a_command() -> None:
    contributed = {command["command"] for command in manifest()["contributes"]["commands"]}
    code = (EXTENSION / "src" / "commands.ts").read_text(encoding="utf-8")
    registered = set(re.findall(r'^    "(calomel\.\w+)":', code, re.MULTILINE))
    assert contributed == registered
    editors = {"tab", "noop", "editor.action.inlineSuggest.commit"}
    assert {key["command"] for key in manifest()["contributes"]["keybindings"]} <= contributed | editors


def test_keys_are_taken_only_while_something_is_shown_and_the_menu_has_its_own() -> None:
    with_menu = {"calomel.accept", "calomel.acceptAll", "editor.action.inlineSuggest.commit"}
    for key in manifest()["contributes"]["keybindings"]:
        if key["command"] != "calomel.suggest":
            assert re.match(r"calomel\.(nextEdit|ghost|awaits|took) && ", key["when"])
            anywhere = key["key"] in {"alt+l", "alt+a"} and key["command"] in with_menu
            assert ("!suggestWidgetVisible" in key["when"]) != anywhere


def test_the_page_names_every_command_key_and_setting_of_the_extension() -> None:
    page = PAGE.read_text(encoding="utf-8")
    contributes = manifest()["contributes"]
    for command in contributes["commands"]:
        assert f"Calomel: {command['title']}" in page
    for key in contributes["keybindings"]:
        assert f"`{key['key']}`" in page.lower()
    for name in contributes["configuration"][0]["properties"]:
        assert f"`{name}`" in page


def test_what_installs_the_program_is_the_same_everywhere() -> None:
    guide = (EXTENSION / "media" / "install.md").read_text(encoding="utf-8")
    lines = " && ".join(guide.partition("```sh\n")[2].partition("\n```")[0].splitlines())
    assert "pip install" in lines
    assert lines in PAGE.read_text(encoding="utf-8")
    assert lines in (EXTENSION / "README.md").read_text(encoding="utf-8")


PLACES = ("calomel.path", ".venv", "PATH", "~/.local/share/calomel/venv", "~/.local/bin/calomel", "storage")


@pytest.mark.parametrize(
    ("page", "start"),
    [(PAGE, "looks for `calomel` in this order"), (EXTENSION / "media/install.md", "looks for it in this order")],
    ids=lambda each: each.name if isinstance(each, Path) else "",
)
def test_the_page_lists_the_places_of_the_program_in_the_order_of_the_search(page: Path, start: str) -> None:
    text = page.read_text(encoding="utf-8").partition(start)[2]
    found = [text.find(place) for place in PLACES]
    assert -1 not in found
    assert found == sorted(found)


def test_the_editors_want_the_server_of_the_same_version() -> None:
    lua = (EXTENSION.parent / "neovim" / "lua" / "calomel" / "install.lua").read_text(encoding="utf-8")
    assert f'\nM.VERSION = "{version()}"\n' in lua
    assert manifest()["version"] == version()


@pytest.mark.slow
@pytest.mark.parametrize("script", ["lint", "test"])
def test_its_own_checks_pass(script: str) -> None:
    command = [wanted(find_npm()), "run", "--silent", script]
    done = subprocess.run(command, cwd=EXTENSION, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
