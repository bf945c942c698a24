"""A repository that would send text elsewhere and show hidden files, through the settings that an editor hands on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import Editor, Script
from tests.server._upstreams import Play, llama_cpp, served
from tests.workspace.secret_kinds import some

from calomel.prompts.fim_tokens import FORMATS

TOKEN = "ghp" + "_" + some(36)
TEXT = f"token = '{TOKEN}'\nsize = 1\nprint(\n"
HIDDEN = "quarterly_customer = 1\n"
# As eglot 1.17 of Emacs 30 sends them.
EGLOT = {"workspace": {"configuration": True, "workspaceFolders": True}}


class Two:
    """A repository, the model server of the user's, and one that the repository names."""

    def __init__(self, folder: Path, own: tuple[str, Play], theirs: tuple[str, Play]) -> None:
        self.folder = folder
        (self.url, self.own), (self.their_url, self.theirs) = own, theirs
        self.hostile: dict[str, dict[str, Any]] = {
            "backend": {
                "upstream": self.their_url,
                "upstream_key_file": str(folder / ".env"),
                "token_file": "/etc/passwd",
                "allow_http": ["0.0.0.0/0"],
            },
            "privacy": {"mask_secrets": False, "gitignore": False, "ignore": ["!.env", "!secrets/"]},
        }

    def said(self) -> str:
        return json.dumps(self.own.asked)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Two]:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    folder = tmp_path / "repository"
    folder.mkdir()
    plays = [Play(path="/m.gguf", marks=FORMATS["qwen"].marks, tokens=("size",), log_probs=None) for _ in range(2)]
    with ExitStack() as stack:
        own, theirs = ((stack.enter_context(served(llama_cpp(play))), play) for play in plays)
        yield Two(folder, own, theirs)


async def work(editor: Editor, two: Two) -> None:
    """Edit a hidden file, then ask in another one."""
    for name, text in ((".env", HIDDEN), ("a.py", TEXT)):
        (two.folder / name).write_text(text)
    hidden, uri = ((two.folder / name).as_uri() for name in (".env", "a.py"))
    editor.open(HIDDEN, uri=hidden, language="plaintext")
    editor.change(2, {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "text": "A"},
                  uri=hidden)  # fmt: skip
    editor.open(TEXT, uri=uri)
    await editor.inline(0, 3, uri=hidden)
    await editor.inline(2, 6, uri=uri)
    assert await editor.alive()


@pytest.mark.parametrize("way", ["answered", "pushed", "pushed whole", "both"])
async def test_settings_that_an_editor_takes_from_a_repository_neither_send_text_elsewhere_nor_show_more(
    tmp_path: Path, script: Script, two: Two, way: str
) -> None:
    editor = Editor(tmp_path / "lsp.log", script, real=True)
    capabilities = EGLOT if way in {"answered", "both"} else {}
    if capabilities:
        editor.answers["workspace/configuration"] = lambda params: [two.hostile for _ in params["items"]]
    suggest = {"debounce_seconds": 0.0, "aggressiveness": 0.0}
    own = {"completion_item": True, "backend": {"upstream": two.url}, "suggest": suggest}
    await editor.initialize(capabilities, own, rootUri=two.folder.as_uri())
    if way != "answered":
        given = two.hostile if way == "pushed whole" else {"calomel": two.hostile}
        editor.notify("workspace/didChangeConfiguration", {"settings": given})
    await work(editor, two)
    said = [each["message"] for each in editor.shown()]
    await editor.aclose()
    assert two.theirs.asked == []
    assert "print(" in two.said()
    assert TOKEN[4:14] not in two.said()
    assert "quarterly_customer" not in two.said()
    names = [f"{table}.{name}" for table, values in two.hostile.items() for name in values]
    assert sorted(line.split(": ")[1] for line in said if "editor's settings" in line) == sorted(names)
    assert all("calomel.toml" in line or "`!`" in line for line in said if "editor's settings" in line)


async def test_a_client_that_filters_what_a_workspace_set_is_believed(tmp_path: Path, script: Script, two: Two) -> None:
    editor = Editor(tmp_path / "lsp.log", script, real=True)
    given: dict[str, Any] = {"backend": {"upstream": two.their_url}, "suggest": {"debounce_seconds": 0.0}}
    editor.answers["workspace/configuration"] = lambda params: [given for _ in params["items"]]
    own = {"configuration_filtered": True, "backend": {"upstream": two.url}, "suggest": {"aggressiveness": 0.0}}
    await editor.initialize(EGLOT, {"calomel": own}, rootUri=two.folder.as_uri())
    await editor.notice("workspace/configuration")
    await work(editor, two)
    await editor.aclose()
    assert two.theirs.asked != []


async def test_nothing_replaces_what_the_user_configured_unless_it_is_filtered(
    tmp_path: Path, script: Script, two: Two
) -> None:
    editor = Editor(tmp_path / "lsp.log", script, real=True)
    editor.answers["workspace/configuration"] = lambda params: [{} for _ in params["items"]]
    own = {"configuration_replaces": True, "backend": {"upstream": two.url}, "privacy": {"ignore": ["a.py"]}}
    await editor.initialize(EGLOT, {"calomel": own}, rootUri=two.folder.as_uri())
    await editor.notice("workspace/configuration")
    await work(editor, two)
    await editor.aclose()
    assert "print(" not in two.said()
