"""`calomel editor setup`, and the settings files that it changes without losing a comment."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import Runner, configured
from tests.editors.programs import find_neovim

from calomel.cli import jsonc
from calomel.cli.editor_checks import check_editors
from calomel.cli.editor_plans import here
from calomel.cli.jsonc import with_values
from calomel.server.settings import ServerSettings

ZED = '{\n  // mine\n  "theme": "One", // this\n  "edit_predictions": {"mode": "subtle"},\n}\n'


@pytest.fixture
def settings(home: Path) -> Path:
    return configured(home, "zed/settings.json", ZED)


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.calomel-*"))


def test_zeds_settings_are_shown_and_written_once(run: Runner, settings: Path) -> None:
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
    text, again = settings.read_text(), run("editor", "setup", "zed")
    assert (again.status, settings.read_text(), backups(settings)) == (0, text, [backup])
    assert "nothing to change" in again.out


def test_the_doctor_is_content_with_what_is_written(
    run: Runner, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALOMEL_PORT", "8123")
    run("editor", "setup", "zed", "--yes")
    run("editor", "setup", "vscode", "--yes")
    found = {each.subject: each.level for each in check_editors(here(ServerSettings(port=8123)))}

    assert (found["Zed"], found["VS Code"]) == ("ok", "ok")


def test_the_token_is_never_written(run: Runner, settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_TOKEN", "secret-token")
    done = run("editor", "setup", "zed", "--yes")

    assert "secret-token" not in done.out + settings.read_text()
    assert "ZED_OPEN_AI_COMPATIBLE_EDIT_PREDICTION_API_KEY" in done.out


def test_without_an_answer_nothing_is_written(run: Runner, settings: Path) -> None:
    done = run("editor", "setup", "zed")

    assert done.status == 1
    assert "Nothing was written" in done.out
    assert '+  "edit_predictions"' in done.out
    assert settings.read_text() == ZED
    assert backups(settings) == []


def test_what_was_written_can_be_taken_back(run: Runner, settings: Path) -> None:
    run("editor", "setup", "zed", "--yes")
    run("editor", "setup", "zed", "--yes", "--url", "http://127.0.0.1:9")
    assert len(backups(settings)) == 2
    for left in (1, 0):
        assert run("editor", "setup", "zed", "--undo", "--yes").status == 0
        assert len(backups(settings)) == left

    assert settings.read_text() == ZED
    assert "nothing to undo" in run("editor", "setup", "zed", "--undo").out


def test_a_file_that_was_not_there_is_made_and_taken_away_again(run: Runner, home: Path) -> None:
    path = home / ".config" / "zed" / "settings.json"
    run("editor", "setup", "zed", "--yes")
    assert json.loads(path.read_text())["edit_predictions"]["provider"] == "open_ai_compatible_api"
    run("editor", "setup", "zed", "--yes", "--undo")

    assert list(path.parent.iterdir()) == []


def test_a_link_stays_a_link(run: Runner, settings: Path, home: Path) -> None:
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


@pytest.mark.parametrize("data", [b"[]", b"{'a': 1}", b'{"a": "\xff"}', b"{" + b" " * 2**20 + b"}"], ids=len)
def test_settings_that_cannot_be_read_are_not_touched(run: Runner, settings: Path, data: bytes) -> None:
    settings.write_bytes(data)
    done = run("editor", "setup", "zed", "--yes")

    assert (done.status, settings.read_bytes(), backups(settings)) == (2, data, [])
    assert str(settings) in done.err


def test_a_folder_that_cannot_be_written_is_named(run: Runner, home: Path) -> None:
    configured(home, "zed", "a file")
    done = run("editor", "setup", "zed", "--yes")

    assert done.status in {1, 2}
    assert "zed" in done.err


@pytest.mark.parametrize("url", ["127.0.0.1:8017", "http://", "http://h:99999", "http://h/v1", "ftp://h", "http://h:0"])
def test_an_address_that_is_none_is_refused(run: Runner, settings: Path, url: str) -> None:
    done = run("editor", "setup", "zed", "--yes", "--url", url)

    assert (done.status, settings.read_text()) == (2, ZED)


def test_a_port_left_to_chance_must_be_told(run: Runner, settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_PORT", "0")
    assert run("editor", "setup", "zed", "--yes").status == 2
    assert run("editor", "setup", "zed", "--yes", "--url", "https://devbox.lan").status == 0
    found = jsonc.loads(settings.read_text())["edit_predictions"]["open_ai_compatible_api"]["api_url"]
    assert found == "https://devbox.lan/v1/completions"


def test_vs_code_and_its_relatives_learn_where_the_program_is(run: Runner, home: Path) -> None:
    for name in ("Code", "VSCodium"):
        (home / ".config" / name).mkdir(parents=True)
    done = run("editor", "setup", "vscode", "--yes")

    for name in ("Code", "VSCodium"):
        found = json.loads((home / ".config" / name / "User" / "settings.json").read_text())
        assert Path(found["calomel.path"]).is_absolute()
    assert "codium --install-extension dist/calomel.vsix" in done.out


def test_sublimes_client_is_merged_with_others(run: Runner, home: Path) -> None:
    text = '{\n\t"clients": {\n\t\t"pylsp": {"enabled": true}, // mine\n\t},\n}\n'
    path = configured(home, "sublime-text/Packages/User/LSP.sublime-settings", text)
    run("editor", "setup", "sublime", "--yes")

    clients = jsonc.loads(path.read_text())["clients"]
    assert clients["pylsp"] == {"enabled": True}
    assert clients["calomel"]["command"][1:] == ["lsp"]
    assert "// mine" in path.read_text()


def test_what_is_a_program_or_a_list_is_printed_not_written(run: Runner, home: Path) -> None:
    helix, emacs = (run("editor", "setup", name, "--yes") for name in ("helix", "emacs"))

    assert (helix.status, emacs.status) == (0, 0)
    assert str(home / ".config" / "helix" / "languages.toml") in helix.out
    snippet = helix.out.split("\n\n", 1)[1].rsplit("\n", 2)[0]
    assert tomllib.loads(snippet)["language-server"]["calomel"]["args"] == ["lsp"]
    assert "eglot-server-programs" in emacs.out
    assert "lsp-register-client" in emacs.out
    assert emacs.out.count("(") == emacs.out.count(")")
    assert not (home / ".config" / "helix").exists()


def test_neovim_gets_a_file_of_its_own_once(run: Runner, home: Path) -> None:
    path = home / ".config" / "nvim" / "plugin" / "calomel-setup.lua"
    done = run("editor", "setup", "neovim", "--yes")
    assert 'require("calomel").setup' in path.read_text()
    assert "with lazy.nvim" in done.out
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


@pytest.fixture(autouse=True)
def _linux(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("// mine\n", '// mine\n{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ("{\n}\n", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{ // nothing\n}\n", '{\n  "a": {\n    "b": 1\n  } // nothing\n}\n'),
        ('{"x": 1}', '{"a": {"b": 1}, "x": 1}'),
        ('{ /* one */ "x": 1 }', '{ /* one */ "a": {"b": 1}, "x": 1 }'),
        ('{"x": 1,}', '{"a": {"b": 1}, "x": 1,}'),
        ('{ // one\n\t"x": 1\n}\n', '{\n\t"a": {\n\t\t"b": 1\n\t}, // one\n\t"x": 1\n}\n'),
        ('{\r\n    "x": 1\r\n}\r\n', '{\r\n    "a": {\r\n        "b": 1\r\n    },\r\n    "x": 1\r\n}\r\n'),
        ('{\n    "a": {}\n}\n', '{\n    "a": {\n        "b": 1\n    }\n}\n'),
        ('{"a": null}', '{"a": {\n  "b": 1\n}}'),
        ('{"a": {"b": 2}, "a": {"b": 3}}', '{"a": {"b": 2}, "a": {"b": 1}}'),
        ('\ufeff{"a": {"b": 2}}', '\ufeff{"a": {"b": 1}}'),
        ('{"a": {"b": /* was */ 2}}', '{"a": {"b": /* was */ 1}}'),
        ('{\n  "a": {\n    "c": 2, // mine\n  },\n}\n', '{\n  "a": {\n    "b": 1,\n    "c": 2, // mine\n  },\n}\n'),
    ],
)
def test_what_is_not_there_is_added_in_the_files_own_style(before: str, after: str) -> None:
    assert with_values(before, {"a": {"b": 1}}) == after


@pytest.mark.parametrize(
    "text",
    ["[]", "1", '"x"', "{", "{]", '{"a" 1}', '{"a": }', '{"a": 1 "b": 2}', "{,}", "{'a': 1}", '{"a": 01}', '{"a": x}',
     "{} {}", '{"a": "\n"}', '{"a": 1}}', "/* ", '{"a": [1 2]}', '{"a":' * 300, "{\x00}"],
)  # fmt: skip
def test_what_is_no_settings_file_is_left_alone(text: str) -> None:
    with pytest.raises(ValueError, match=r"line \d"):
        with_values(text, {"a": {"b": 1}})


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from(["// no", "/* no */", ",}"])


keys = st.sampled_from(["a", "b", "c", "é", "//", "}"])


values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)


objects = st.dictionaries(keys, values, max_size=4)


nested = st.recursive(scalars, lambda inner: st.dictionaries(keys, inner, min_size=1, max_size=2), max_leaves=3)


changes = st.dictionaries(keys, nested, max_size=2)


_COMMENT = re.compile(r"<<\d+>>")


def written(value: Any, chance: random.Random) -> str:
    """A value as somebody may write it: with blanks, comments, commas."""
    count = 0

    def gap() -> str:
        nonlocal count
        count += 1
        mark = f"<<{count}>>"
        return chance.choice(["", "", " ", "\n  ", "\t", f"/*{mark}*/", f" // {mark}, }}\n", f"\n/* {mark}\n*/"])

    def told(value: Any) -> str:
        if not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=chance.random() < 0.5)
        named = isinstance(value, dict)
        keys = [f"{json.dumps(key)}{gap()}:{gap()}" for key in value] if named else [""] * len(value)
        values = value.values() if isinstance(value, dict) else value
        pieces = [f"{gap()}{key}{told(each)}{gap()}" for key, each in zip(keys, values, strict=True)]
        inner = ",".join(pieces) + ("," if pieces and chance.random() < 0.5 else "") + gap()
        return f"{{{inner}}}" if named else f"[{inner}]"

    text = gap() + told(value) + gap()
    return text.replace("\n", "\r\n") if chance.random() < 0.3 else text


def merged(old: Any, new: dict[str, Any]) -> dict[str, Any]:
    into = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        into[key] = merged(into.get(key), value) if isinstance(value, dict) and value else value
    return into


@given(objects, st.integers(0, 2**32), changes)
def test_the_values_are_set_and_everything_else_stays(value: dict[str, Any], seed: int, wanted: dict[str, Any]) -> None:
    text = written(value, random.Random(seed))
    made = with_values(text, wanted)

    assert jsonc.loads(made) == merged(value, wanted)
    assert with_values(made, wanted) == made
    kept = iter(_COMMENT.findall(text))
    # Comments are lost with a value that is replaced, and with no other; none moves.
    assert all(mark in kept for mark in _COMMENT.findall(made))


@given(st.text(alphabet='{}[]:,"/*ab1 \n', max_size=40))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        made = with_values(text, {"a": 1})
    except ValueError:
        return
    assert jsonc.loads(made)["a"] == 1
