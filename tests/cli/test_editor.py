from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.editors.programs import find_neovim

from calomel.cli import jsonc
from calomel.cli.editor_checks import check_editors
from calomel.cli.editor_plans import configured, here
from calomel.server.settings import ServerSettings
from calomel.suggest import runtime_file
from calomel.suggest.process import started
from calomel.suggest.runtime_file import ServerRecord

ZED = '{\n  // mine\n  "theme": "One", // this\n  "edit_predictions": {"mode": "subtle"},\n}\n'
EDITORS = ("vscode", "neovim", "zed", "helix", "emacs", "sublime")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*ServerSettings.model_fields, "config"):
        monkeypatch.delenv(f"CALOMEL_{name.upper()}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("config", "state", "data"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / f".{name}"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(sys, "platform", "linux")
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path


@pytest.fixture
def settings(home: Path) -> Path:
    path = home / ".config" / "zed" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(ZED)
    return path


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.calomel-*"))


def test_zeds_settings_are_shown_and_written(run: Callable[..., Any], settings: Path) -> None:
    settings.chmod(0o600)
    done = run("editor", "setup", "zed", "--yes")

    assert done.status == 0
    assert '+  "edit_predictions": {"provider": "open_ai_compatible_api"' in done.out
    assert jsonc.loads(settings.read_text()) == {
        "theme": "One",
        "edit_predictions": {
            "mode": "subtle",
            "provider": "open_ai_compatible_api",
            "open_ai_compatible_api": {
                "api_url": "http://127.0.0.1:8017/v1/completions",
                "model": "zeta2.1",
                "prompt_format": "zeta2_1",
                "max_output_tokens": 512,
            },
        },
    }
    assert settings.read_text().startswith('{\n  // mine\n  "theme": "One", // this\n')
    assert settings.stat().st_mode & 0o777 == 0o600
    (backup,) = backups(settings)
    assert backup.read_text() == ZED
    assert f"it was: {backup}" in done.out


def test_the_doctor_is_content_with_what_is_written(
    run: Callable[..., Any], settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALOMEL_PORT", "8123")
    run("editor", "setup", "zed", "--yes")
    run("editor", "setup", "vscode", "--yes")
    found = {each.subject: each.level for each in check_editors(here(ServerSettings(port=8123)))}

    assert (found["Zed"], found["VS Code"]) == ("ok", "ok")


def test_the_token_is_never_written(run: Callable[..., Any], settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_TOKEN", "secret-token")
    done = run("editor", "setup", "zed", "--yes")

    assert "secret-token" not in done.out + settings.read_text()
    assert "ZED_OPEN_AI_COMPATIBLE_EDIT_PREDICTION_API_KEY" in done.out


def test_without_an_answer_nothing_is_written(run: Callable[..., Any], settings: Path) -> None:
    done = run("editor", "setup", "zed")

    assert done.status == 1
    assert "Nothing was written" in done.out
    assert '+  "edit_predictions"' in done.out
    assert settings.read_text() == ZED
    assert backups(settings) == []


def test_a_second_time_there_is_nothing_to_do(run: Callable[..., Any], settings: Path) -> None:
    run("editor", "setup", "zed", "--yes")
    text = settings.read_text()
    done = run("editor", "setup", "zed")

    assert done.status == 0
    assert "nothing to change" in done.out
    assert settings.read_text() == text
    assert len(backups(settings)) == 1


def test_what_was_written_can_be_taken_back(run: Callable[..., Any], settings: Path) -> None:
    run("editor", "setup", "zed", "--yes")
    run("editor", "setup", "zed", "--yes", "--url", "http://127.0.0.1:9")
    assert len(backups(settings)) == 2
    for left in (1, 0):
        assert run("editor", "setup", "zed", "--undo", "--yes").status == 0
        assert len(backups(settings)) == left

    assert settings.read_text() == ZED
    assert "nothing to take back" in run("editor", "setup", "zed", "--undo").out


def test_a_file_that_was_not_there_is_made_and_taken_away_again(run: Callable[..., Any], home: Path) -> None:
    path = home / ".config" / "zed" / "settings.json"
    run("editor", "setup", "zed", "--yes")
    assert json.loads(path.read_text())["edit_predictions"]["provider"] == "open_ai_compatible_api"
    run("editor", "setup", "zed", "--yes", "--undo")

    assert list(path.parent.iterdir()) == []


def test_a_link_stays_a_link(run: Callable[..., Any], settings: Path, home: Path) -> None:
    real = home / "dotfiles" / "zed.json"
    real.parent.mkdir()
    settings.rename(real)
    settings.symlink_to(real)
    run("editor", "setup", "zed", "--yes")

    assert settings.is_symlink()
    assert "open_ai_compatible_api" in real.read_text()
    assert len(backups(real)) == 1
    run("editor", "setup", "zed", "--yes", "--undo")
    assert (settings.is_symlink(), real.read_text()) == (True, ZED)


@pytest.mark.parametrize("text", ["{", "[]", '{"a" 1}', "{'a': 1}"])
def test_settings_that_cannot_be_read_are_not_touched(run: Callable[..., Any], settings: Path, text: str) -> None:
    settings.write_text(text)
    done = run("editor", "setup", "zed", "--yes")

    assert (done.status, settings.read_text(), backups(settings)) == (2, text, [])
    assert str(settings) in done.err


def test_bytes_and_sizes_that_are_no_settings_are_not_touched(run: Callable[..., Any], settings: Path) -> None:
    for data in (b'{"a": "\xff"}', b"{" + b" " * 2**20 + b"}"):
        settings.write_bytes(data)
        assert run("editor", "setup", "zed", "--yes").status == 2
        assert settings.read_bytes() == data


def test_a_folder_that_cannot_be_written_is_named(run: Callable[..., Any], home: Path) -> None:
    (home / ".config").mkdir()
    (home / ".config" / "zed").write_text("a file")
    done = run("editor", "setup", "zed", "--yes")

    assert done.status in {1, 2}
    assert "zed" in done.err


@pytest.mark.parametrize("url", ["127.0.0.1:8017", "http://", "http://h:99999", "http://h/v1", "ftp://h", "http://h:0"])
def test_an_address_that_is_none_is_refused(run: Callable[..., Any], settings: Path, url: str) -> None:
    done = run("editor", "setup", "zed", "--yes", "--url", url)

    assert (done.status, settings.read_text()) == (2, ZED)


def test_a_port_left_to_chance_must_be_told(
    run: Callable[..., Any], settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALOMEL_PORT", "0")
    assert run("editor", "setup", "zed", "--yes").status == 2
    assert run("editor", "setup", "zed", "--yes", "--url", "https://devbox.lan").status == 0
    found = jsonc.loads(settings.read_text())["edit_predictions"]["open_ai_compatible_api"]["api_url"]
    assert found == "https://devbox.lan/v1/completions"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "http://127.0.0.1:8017"),
        ("0.0.0.0", "http://127.0.0.1:8017"),
        ("fd00::1", "http://[fd00::1]:8017"),
    ],
)
def test_the_address_is_one_that_clients_can_use(host: str, expected: str) -> None:
    remote = host != "127.0.0.1"
    assert configured(ServerSettings(host=host, allow_remote=remote)) == expected


def test_vs_code_and_its_relatives_learn_where_the_program_is(run: Callable[..., Any], home: Path) -> None:
    for name in ("Code", "VSCodium"):
        (home / ".config" / name).mkdir(parents=True)
    done = run("editor", "setup", "vscode", "--yes")

    for name in ("Code", "VSCodium"):
        found = json.loads((home / ".config" / name / "User" / "settings.json").read_text())
        assert Path(found["calomel.path"]).is_absolute()
    assert "codium --install-extension dist/calomel.vsix" in done.out


def test_an_extension_that_is_installed_is_not_asked_for(run: Callable[..., Any], home: Path) -> None:
    for name in ("Code", "VSCodium"):
        (home / ".config" / name).mkdir(parents=True)
    installed = home / ".vscode" / "extensions" / "calomel.calomel-0.1.0" / "package.json"
    installed.parent.mkdir(parents=True)
    installed.write_text("{}")
    done = run("editor", "setup", "vscode", "--yes")

    assert "code --install-extension" not in done.out
    assert "codium --install-extension" in done.out
    (home / ".config" / "VSCodium").rename(home / "elsewhere")
    assert "install" not in run("editor", "setup", "vscode", "--yes").out


def test_sublimes_client_is_merged_with_others(run: Callable[..., Any], home: Path) -> None:
    path = home / ".config" / "sublime-text" / "Packages" / "User" / "LSP.sublime-settings"
    path.parent.mkdir(parents=True)
    path.write_text('{\n\t"clients": {\n\t\t"pylsp": {"enabled": true}, // mine\n\t},\n}\n')
    run("editor", "setup", "sublime", "--yes")

    clients = jsonc.loads(path.read_text())["clients"]
    assert clients["pylsp"] == {"enabled": True}
    assert clients["calomel"]["command"][1:] == ["lsp"]
    assert "// mine" in path.read_text()


def test_what_is_a_program_or_a_list_is_printed_not_written(run: Callable[..., Any], home: Path) -> None:
    helix, emacs = (run("editor", "setup", name, "--yes") for name in ("helix", "emacs"))

    assert (helix.status, emacs.status) == (0, 0)
    assert str(home / ".config" / "helix" / "languages.toml") in helix.out
    snippet = helix.out.split("\n\n", 1)[1].rsplit("\n", 2)[0]
    assert tomllib.loads(snippet)["language-server"]["calomel"]["args"] == ["lsp"]
    assert "eglot-server-programs" in emacs.out
    assert "lsp-register-client" in emacs.out
    assert emacs.out.count("(") == emacs.out.count(")")
    assert not (home / ".config" / "helix").exists()


def test_neovim_gets_a_file_of_its_own_once(run: Callable[..., Any], home: Path) -> None:
    path = home / ".config" / "nvim" / "plugin" / "calomel-setup.lua"
    done = run("editor", "setup", "neovim", "--yes")
    assert 'require("calomel").setup' in path.read_text()
    assert "with lazy.nvim" in done.out
    path.write_text("-- changed by me\n")
    run("editor", "setup", "neovim", "--yes")
    assert path.read_text() == "-- changed by me\n"


def test_neovim_that_is_set_up_already_is_left_alone(run: Callable[..., Any], home: Path) -> None:
    init = home / ".config" / "nvim" / "init.lua"
    init.parent.mkdir(parents=True)
    init.write_text('require("calomel").setup()\n')
    done = run("editor", "setup", "neovim", "--yes")

    assert f"{init} sets Calomel up already" in done.out
    assert not (init.parent / "plugin").exists()


@pytest.mark.e2e
def test_neovim_starts_with_what_is_written(run: Callable[..., Any], home: Path) -> None:
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


@pytest.mark.parametrize("name", EDITORS)
def test_every_editor_has_its_places_on_a_mac_too(
    run: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    done = run("editor", "setup", name)
    place = {"vscode": "Library/Application Support/Code/User/settings.json", "zed": ".config/zed/settings.json",
             "sublime": "Library/Application Support/Sublime Text/Packages/User/LSP.sublime-settings",
             "neovim": ".config/nvim/plugin", "helix": ".config/helix/languages.toml",
             "emacs": ".emacs.d/init.el"}  # fmt: skip

    assert str(home / place[name]) in done.out


def test_a_running_server_is_the_one_that_is_meant(home: Path) -> None:
    path = home / "run" / "server.json"
    pid = os.getpid()
    record = ServerRecord("http://127.0.0.1:4242", None, pid, started(pid), None, "", "cpu", "0", 1)
    with runtime_file.published(path, record):
        found = here(ServerSettings(runtime_file=path, no_auth=True))

    assert (found.url, found.token) == ("http://127.0.0.1:4242", None)
