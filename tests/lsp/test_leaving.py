"""What an upstream is sent, from the editor's first key to the last byte: no secret, and nothing of a hidden file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import Editor, Script, span
from tests.server._upstreams import Play, llama_cpp, served
from tests.workspace.secret_kinds import Kind, kinds, mask

from calomel.infer.launch import log_path
from calomel.infer.runtime_file import runtime_folder
from calomel.prompts.fim_tokens import FORMATS

TOP = "def count(items):\n    return len(items)\n\n\n"
# Every value of these is found once it is whole.
FOUND = [kind for kind in kinds() if kind.text.count("\n") == 1 and len(kind.parts) == 1]
FOUND = [kind for kind in FOUND if kind.parts[0] not in mask(kind.text) and len(kind.parts[0]) > 7][::2][:21]


def written(folder: Path) -> str:
    """All files below a folder: log, outcomes, settings."""
    return "".join(file.read_text(errors="replace") for file in folder.rglob("*") if file.is_file())


class Typist:
    """Types into one of two files of a folder, and asks for everything."""

    def __init__(self, editor: Editor, folder: Path) -> None:
        self.editor, self.version = editor, 1
        self.uris = [(folder / name).as_uri() for name in ("a.py", "b.py")]
        self.line = ""

    async def begin(self, url: str, folder: Path) -> None:
        options = {
            "backend": {"upstream": url},
            "suggest": {"debounce_seconds": 0.0, "aggressiveness": 0.0},
            "log": {"level": "debug"},
        }
        folders = [{"uri": folder.as_uri(), "name": "w"}]
        await self.editor.initialize(None, {"calomel": options}, rootUri=folder.as_uri(), workspaceFolders=folders)
        for uri in self.uris:
            self.editor.open(TOP, uri)
        await self.editor.inline(1, 4, uri=self.uris[1])

    def type(self, text: str) -> None:
        for letter in text:
            self.version += 1
            row, column = TOP.count("\n"), len(self.line)
            change = {"range": span(row, column, column), "text": letter}
            self.editor.change(self.version, change, uri=self.uris[0])
            self.line += letter

    def pause(self) -> None:
        self.editor.later += 3.0

    async def ask(self) -> None:
        row, column = TOP.count("\n"), len(self.line)
        await self.editor.inline(row, column, uri=self.uris[0])
        await self.editor.next_edit(row, column, None, uri=self.uris[0])
        self.editor.notify("textDocument/didFocus", {"textDocument": {"uri": self.uris[1]}})
        for at in (0, 2):
            await self.editor.inline(at, 0, uri=self.uris[1])


@pytest.mark.parametrize("kind", FOUND, ids=lambda kind: kind.name)
async def test_what_was_typed_around_a_pause_leaves_in_no_later_request(
    tmp_path: Path, script: Script, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    folder = tmp_path / "work"
    folder.mkdir()
    value = kind.parts[0]
    head, _, tail = kind.text.rstrip("\n").partition(value)
    play = Play(path="/models/mine.gguf", marks=FORMATS["qwen"].marks, tokens=("pass",), log_probs=None)
    with served(llama_cpp(play)) as url:
        editor = Editor(tmp_path / "lsp.log", script, real=True)
        typist = Typist(editor, folder)
        await typist.begin(url, folder)
        typist.type(head + value[: len(value) // 2])
        typist.pause()
        await typist.ask()
        typist.type(value[len(value) // 2 :] + tail)
        before = len(play.asked)
        typist.pause()
        await typist.ask()
        typist.pause()
        await typist.ask()
        assert await editor.alive()
        await editor.aclose()
    later = json.dumps([body for _, body in play.asked[before:]])
    assert "return len(items)" in later
    pieces = [value[at : at + 6] for at in range(len(value) - 5)]
    assert not [piece for piece in pieces if piece in later and piece not in head + tail + TOP]
    assert not [piece for piece in pieces if piece in written(tmp_path)]


async def test_nothing_of_a_file_that_becomes_hidden_leaves(
    tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    folder = tmp_path / "work"
    (folder / ".git").mkdir(parents=True)
    play = Play(path="/models/mine.gguf", marks=FORMATS["qwen"].marks, tokens=("pass",), log_probs=None)
    with served(llama_cpp(play)) as url:
        editor = Editor(tmp_path / "lsp.log", script, real=True)
        typist = Typist(editor, folder)
        await typist.begin(url, folder)
        typist.type("abracadabra = 1")
        typist.pause()
        await typist.ask()
        assert "abracadabra" in json.dumps(play.asked)
        (folder / ".gitignore").write_text("a.py\n")
        before = len(play.asked)
        await typist.ask()
        await editor.aclose()
    later: Any = play.asked[before:]
    assert later
    assert "abracadabra" not in json.dumps(later)


def _move(old: Path, new: Path) -> None:
    new.parent.mkdir(parents=True, exist_ok=True)
    old.rename(new)


def _git_mv(folder: Path, old: str, new: str) -> None:
    (folder / new).parent.mkdir(parents=True, exist_ok=True)
    for arguments in (["init", "-q"], ["add", "src"], ["mv", old, new]):
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def _linked(folder: Path) -> None:
    _move(folder / "src", folder / "private" / "src")
    (folder / "src").symlink_to(folder / "private" / "src")


# What happens to `src/deep/a.py` below a folder in which `private/` is ignored.
MOVES: dict[str, Callable[[Path], None]] = {
    "its folder": lambda folder: _move(folder / "src" / "deep", folder / "private" / "deep"),
    "a folder above it": lambda folder: _move(folder / "src", folder / "private" / "src"),
    "a folder above it is renamed": lambda folder: _move(folder / "src", folder / "private"),
    "the file": lambda folder: _move(folder / "src" / "deep" / "a.py", folder / "private" / "a.py"),
    "out of the workspace": lambda folder: _move(folder / "src", folder.parent / "elsewhere"),
    "git mv": lambda folder: _git_mv(folder, "src", "private"),
    "a link in its place": _linked,
}


@pytest.mark.parametrize("how", MOVES)
@pytest.mark.parametrize("told", ["closed before", "still open", "renamed in the editor"])
async def test_nothing_of_a_file_that_moves_to_a_hidden_place_leaves(
    tmp_path: Path, script: Script, how: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    folder = tmp_path / "work"
    (folder / ".git").mkdir(parents=True)
    (folder / ".gitignore").write_text("private/\n")
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "deep" / "a.py").write_text(TOP)
    (folder / "b.py").write_text(TOP)
    play = Play(path="/models/mine.gguf", marks=FORMATS["qwen"].marks, tokens=("pass",), log_probs=None)
    with served(llama_cpp(play)) as url:
        editor = Editor(tmp_path / "lsp.log", script, real=True)
        typist = Typist(editor, folder)
        typist.uris[0] = (folder / "src" / "deep" / "a.py").as_uri()
        await typist.begin(url, folder)
        typist.type("abracadabra = 1")
        typist.pause()
        await typist.ask()
        assert "abracadabra" in json.dumps(play.asked)
        if told == "closed before":
            editor.notify("textDocument/didClose", {"textDocument": {"uri": typist.uris[0]}})
            assert await editor.alive()
        MOVES[how](folder)
        if told == "renamed in the editor":
            new = (folder / "private" / "a.py").as_uri()
            editor.notify("textDocument/didClose", {"textDocument": {"uri": typist.uris[0]}})
            editor.open(TOP + typist.line, new)
        before = len(play.asked)
        await typist.ask()
        assert await editor.alive()
        await editor.aclose()
    later: Any = play.asked[before:]
    assert later
    assert "abracadabra" not in json.dumps(later)


@pytest.mark.parametrize(("opened", "named"), [("link", "work"), ("work", "link"), ("link", "link")])
async def test_nothing_of_a_hidden_folder_leaves_whichever_link_leads_there(
    tmp_path: Path, script: Script, opened: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    (tmp_path / "work" / "config" / "private").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "work")
    (tmp_path / "work" / "calomel.toml").write_text('[privacy]\nignore = ["config/private/"]\n')
    for name in ("config/private/a.py", "b.py"):
        (tmp_path / "work" / name).write_text(TOP)
    play = Play(path="/models/mine.gguf", marks=FORMATS["qwen"].marks, tokens=("pass",), log_probs=None)
    with served(llama_cpp(play)) as url:
        editor = Editor(tmp_path / "lsp.log", script, real=True)
        typist = Typist(editor, tmp_path / named)
        typist.uris[0] = (tmp_path / named / "config" / "private" / "a.py").as_uri()
        await typist.begin(url, tmp_path / opened)
        typist.type("abracadabra = 1")
        typist.pause()
        await typist.ask()
        assert await editor.alive()
        await editor.aclose()
    assert "return len(items)" in json.dumps(play.asked)
    assert "abracadabra" not in json.dumps(play.asked)


async def test_no_server_is_started_beside_an_upstream(
    tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    editor = Editor(tmp_path / "lsp.log", script, real=True)
    with served(llama_cpp(Play(tokens=("pass",), log_probs=None))) as url:
        suggest = {"debounce_seconds": 0.0, "aggressiveness": 0.0}
        await editor.begin("def f():\n    \n", backend={"upstream": url}, suggest=suggest)
        assert (await editor.inline(1, 4))["items"]
        await editor.aclose()
    assert [*runtime_folder().glob("*")] == []
    assert not log_path().exists()


async def test_an_upstream_that_stops_is_reported_and_found_again(
    tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    play = Play(path="/models/mine.gguf", marks=FORMATS["qwen"].marks, tokens=("pass",), log_probs=None)
    editor = Editor(tmp_path / "lsp.log", script, real=True)
    with served(llama_cpp(play)) as url:
        suggest = {"debounce_seconds": 0.0, "aggressiveness": 0.0}
        await editor.begin("def f():\n    \n", backend={"upstream": url}, suggest=suggest)
        assert (await editor.inline(1, 4))["items"]
    editor.change(2, {"range": span(1, 4, 4), "text": "q"})
    assert await editor.inline(1, 5) is None  # nothing known goes on with it
    assert f"llama.cpp at {url} stopped answering" in (await editor.state("error"))["message"]
    with served(llama_cpp(play), port=int(url.rpartition(":")[2])):
        editor.later += 6.0
        editor.change(3, {"range": span(1, 5, 5), "text": "a"})
        assert (await editor.inline(1, 6))["items"]
        assert (await editor.command("calomel.status"))["state"] == "ready"
    await editor.aclose()
