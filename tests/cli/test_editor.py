"""`calomel editor setup` prints what an editor's settings need; the doctor knows it when it is there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent
from urllib.parse import urlsplit

import pytest
from tests.cli.conftest import Runner, configured
from tests.editors.programs import REPOSITORY, find_neovim

from calomel.cli.editor import Here, emacs, helix, here, settings_of, sublime, zed
from calomel.cli.editor_checks import check_editors
from calomel.infer.runtime_file import ServerRecord, published
from calomel.server.settings import ServeSettings
from calomel.storage import start_of


@pytest.fixture(autouse=True)
def _linux(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")


def snippet(out: str) -> str:
    """The first text to put somewhere."""
    lines = out.split("\n\n", 1)[1].splitlines()
    count = next((at for at, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    return dedent("\n".join(lines[:count]))


def test_zeds_settings_are_printed_and_nothing_is_written(run: Runner, home: Path) -> None:
    path = configured(home, "zed/settings.json", '{"theme": "One"}')
    done = run("editor", "setup", "zed")

    assert done.status == 0
    assert f"Add this in {path}:" in done.out
    assert json.loads(snippet(done.out)) == {
        "edit_predictions": {
            "provider": "open_ai_compatible_api",
            "open_ai_compatible_api": {
                "api_url": "http://127.0.0.1:8017/v1/completions",
                "model": "zeta2.1",
                "prompt_format": "zeta2_1",
                "max_output_tokens": 512,
            },
        }
    }
    assert path.read_text() == '{"theme": "One"}'


def test_the_doctor_is_content_with_what_is_printed(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_PORT", "8123")
    for name, path in (("zed", "zed/settings.json"), ("vscode", "Code/User/settings.json")):
        printed = snippet(run("editor", "setup", name).out)
        configured(home, path, printed.replace("{", "{ // mine, with a comma at the end", 1).replace("}", ",}", 1))
    found = {each.subject: each.level for each in check_editors(here(ServeSettings(port=8123)))}

    assert (found["Zed"], found["VS Code"]) == ("ok", "ok")
    # What is there already is not asked for again.
    assert "calomel.path" not in run("editor", "setup", "vscode").out


@pytest.mark.parametrize("text", ["[]", "{", "{'a': 1}", '{"a":' * 3000, "{} {}", "/* "], ids=len)
def test_the_doctor_names_settings_that_cannot_be_read(home: Path, text: str) -> None:
    path = configured(home, "zed/settings.json", text)
    (found,) = [each for each in check_editors(here(ServeSettings())) if each.subject == "Zed"]

    assert found.level == "warn"
    assert str(path) in found.found


def test_the_token_is_never_printed(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_TOKEN", "secret-token")
    done = run("editor", "setup", "zed")

    assert "secret-token" not in done.out
    assert "ZED_OPEN_AI_COMPATIBLE_EDIT_PREDICTION_API_KEY" in done.out


@pytest.mark.parametrize("url", ["127.0.0.1:8017", "http://", "http://h:99999", "http://h/v1", "ftp://h", "http://h:0"])
def test_an_address_that_cannot_be_a_server_is_refused(run: Runner, url: str) -> None:
    assert run("editor", "setup", "zed", "--url", url).status == 2


@pytest.mark.parametrize(
    ("url", "names", "reached"),
    [
        ("http://0.0.0.0:8021", "", "http://127.0.0.1:8021"),
        ("http://[::]:8021", "", "http://[::1]:8021"),
        ("https://0.0.0.0:8021", "", "https://127.0.0.1:8021"),
        ("https://0.0.0.0:8021", "devbox.lan", "https://devbox.lan:8021"),
        ("https://10.0.0.2:8021", "devbox.lan", "https://10.0.0.2:8021"),
    ],
)
@pytest.mark.parametrize("runs", [True, False])
def test_a_server_that_listens_everywhere_is_reached_by_an_address_of_its_own(
    run: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, names: str, reached: str, *, runs: bool
) -> None:
    if names:
        monkeypatch.setenv("CALOMEL_ALLOWED_HOSTS", names)
    if runs:
        monkeypatch.setenv("CALOMEL_RUNTIME_FILE", str(tmp_path / "server.json"))
        record = ServerRecord(url, None, os.getpid(), start_of(os.getpid()), None, "", "cpu", "1", 1)
        with published(tmp_path / "server.json", record):
            done = run("editor", "setup", "zed")
    else:
        parts = urlsplit(url)
        monkeypatch.setenv("CALOMEL_HOST", str(parts.hostname))
        monkeypatch.setenv("CALOMEL_PORT", str(parts.port))
        monkeypatch.setenv("CALOMEL_ALLOW_REMOTE", "true")
        if parts.scheme == "https":
            monkeypatch.setenv("CALOMEL_TLS_CERT", "/c")
            monkeypatch.setenv("CALOMEL_TLS_KEY", "/k")
        done = run("editor", "setup", "zed")
    found = json.loads(snippet(done.out))["edit_predictions"]["open_ai_compatible_api"]["api_url"]
    assert found == f"{reached}/v1/completions"


def test_a_port_left_to_chance_must_be_named(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_PORT", "0")
    assert run("editor", "setup", "zed").status == 2
    done = run("editor", "setup", "zed", "--url", "https://devbox.lan")
    found = json.loads(snippet(done.out))["edit_predictions"]["open_ai_compatible_api"]["api_url"]
    assert found == "https://devbox.lan/v1/completions"


def test_vs_code_and_its_relatives_learn_where_the_program_is(run: Runner, home: Path) -> None:
    for name in ("Code", "VSCodium"):
        (home / ".config" / name).mkdir(parents=True)
    done = run("editor", "setup", "vscode")

    for name in ("Code", "VSCodium"):
        assert str(home / ".config" / name / "User" / "settings.json") in done.out
    assert Path(json.loads(snippet(done.out))["calomel.path"]).is_absolute()
    assert "codium --install-extension dist/calomel.vsix" in done.out


def test_helix_and_emacs_get_lines_in_their_own_languages(run: Runner, home: Path) -> None:
    helix, emacs = (run("editor", "setup", name, "--yes") for name in ("helix", "emacs"))

    assert (helix.status, emacs.status) == (0, 0)
    assert str(home / ".config" / "helix" / "languages.toml") in helix.out
    assert tomllib.loads(snippet(helix.out))["language-server"]["calomel"]["args"] == ["lsp"]
    assert "eglot-server-programs" in emacs.out
    assert "lsp-register-client" in emacs.out
    assert emacs.out.count("(") == emacs.out.count(")")
    assert not (home / ".config" / "helix").exists()


def test_neovim_gets_a_file_of_its_own_once(run: Runner, home: Path) -> None:
    path = home / ".config" / "nvim" / "plugin" / "calomel-setup.lua"
    done = run("editor", "setup", "neovim", "--yes")
    assert 'require("calomel").setup' in path.read_text()
    assert "if you use lazy.nvim" in done.out
    path.write_text("-- changed by me\n")
    run("editor", "setup", "neovim", "--yes")
    assert path.read_text() == "-- changed by me\n"
    path.unlink()
    init = configured(home, "nvim/init.lua", 'require("calomel").setup()\n')
    assert f"{init} already sets up Calomel" in run("editor", "setup", "neovim", "--yes").out
    assert not path.exists()


@pytest.mark.e2e
def test_neovim_starts_with_what_is_written(run: Runner, home: Path) -> None:
    program, reason = find_neovim()
    if program is None:
        pytest.skip(reason)
    run("editor", "setup", "neovim", "--yes")
    command = [
        str(program),
        "--headless",
        "+lua print(vim.fn.exists(':Calomel'), require('calomel.config').current.cmd[2])",
        "+qa",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert "2 lsp" in done.stderr + done.stdout, done.stderr


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("vscode", "Library/Application Support/Code/User/settings.json"),
        ("zed", ".config/zed/settings.json"),
        ("sublime", "Library/Application Support/Sublime Text/Packages/User/LSP.sublime-settings"),
        ("neovim", ".config/nvim/plugin"),
        ("helix", ".config/helix/languages.toml"),
        ("emacs", ".emacs.d/init.el"),
    ],
)
def test_every_editor_has_its_places_on_a_mac_too(
    run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert str(home / place) in run("editor", "setup", name).out


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("nvim", 1, "lazy.nvim"),
        ("Cursor", 0, "calomel.path"),
        ("jetbrains", 2, "no plugin for jetbrains"),
        ("cursor", 0, "cursor --install-extension"),
        ("vscodium", 0, "codium --install-extension"),
        ("ed", 2, "error: ed is not a known editor\ntry: vscode, cursor, vscodium, windsurf, neovim"),
    ],
)
def test_an_editor_by_another_name_is_understood_or_answered(run: Runner, name: str, status: int, words: str) -> None:
    done = run("editor", "setup", name)
    assert (done.status, words in done.out + done.err) == (status, True)


# The pages, samples and extensions of other editors say what `calomel editor setup` prints.
ZED = REPOSITORY / "editors" / "zed"


def shown(language: str, page: str) -> list[str]:
    text = (REPOSITORY / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def usual(tmp_path: Path) -> Here:
    return Here(tmp_path, tmp_path, False, "calomel", "http://127.0.0.1:8017", None, None)


def test_the_lines_for_emacs_and_helix_are_those_that_are_printed(usual: Here) -> None:
    assert sorted(shown("elisp", "emacs")) == sorted(each.text for each in emacs(usual).snippets)
    assert shown("toml", "helix") == [each.text for each in helix(usual).snippets]
    tomllib.loads(shown("toml", "helix")[0])


def test_the_settings_of_sublime_text_and_zed_are_those_that_are_printed(usual: Here) -> None:
    (snippet,) = sublime(usual).snippets
    assert [json.loads(each) for each in shown("json", "sublime")] == [json.loads(snippet.text)]
    (snippet,) = zed(usual).snippets
    written = json.loads(snippet.text)
    assert settings_of(ZED / "settings.json") == written
    assert json.loads(shown("json", "zed")[0]) == written
