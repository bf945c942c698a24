"""Settings, where they come from, and those that are shipped for a service."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from calomel.server.settings import NAMES, Layered, ServeSettings, SettingsError, load, named_path, shown
from calomel.workspace.settings import Settings, load_settings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.53", "localhost", "::1"])
def test_loopback_hosts_are_taken(host: str) -> None:
    assert ServeSettings(host=host).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.com", "", "localhost.example.com"])
def test_a_host_that_others_can_reach_must_be_asked_for_twice(host: str) -> None:
    with pytest.raises(ValueError, match="allow-remote"):
        ServeSettings(host=host)
    assert ServeSettings(host=host, allow_remote=True).host == host


def test_an_empty_token_needs_no_auth_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_TOKEN", "")
    with pytest.raises(SettingsError, match="the token is empty"):
        load({}, use_config=False)
    assert load({"no_auth": True}, use_config=False).settings.no_auth


@pytest.mark.parametrize("token", ["with space", "tab\t", "line\n", "é"])
def test_a_token_that_no_header_can_carry_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({"token": token}, use_config=False)
    assert token not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"port": -1}, "--port: must be a whole number from 0 to 65535"),
        ({"max_requests": 0}, "--max-requests: must be a whole number from 1 to 65536"),
        ({"client_share": 0.0}, "--client-share: must be a number from 0.01 to 1"),
        ({"prot": 1}, "--prot: unknown; did you mean port?"),
        ({"allowed_hosts": ("*",)}, "exact names"),
        ({"allowed_origins": ("https://x/path",)}, "without patterns or a path"),
        ({"tls_cert": "a.pem"}, "set both --tls-cert and --tls-key"),
        ({"host": "0.0.0.0", "allow_remote": True, "no_auth": True}, "needs a token"),
        (
            {"host": "0.0.0.0", "allow_remote": True, "token": "abc"},
            "a host that other machines can reach needs tokens of at least 16 characters",
        ),
        ({"token": "abc", "no_auth": True}, "remove one"),
        ({"token": "abc", "token_file": "tokens"}, "remove one"),
    ],
)
def test_what_makes_no_sense_or_leaves_the_door_open_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        load(given, use_config=False)


def test_by_default_only_this_machine_gets_in() -> None:
    settings = ServeSettings()
    assert (settings.host, settings.no_auth, settings.allow_remote) == ("127.0.0.1", False, False)
    assert settings.hosts() == ["127.0.0.1", "localhost", "[::1]"]
    assert "[fd00::1]" in ServeSettings(host="fd00::1", allow_remote=True).hosts()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's own file would be."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CALOMEL_CONFIG", raising=False)
    (tmp_path / "config" / "calomel").mkdir(parents=True)
    return tmp_path / "config" / "calomel" / "calomel.toml"


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def origin(layered: Layered, name: str) -> tuple[str, str]:
    return shown(layered, name), layered.origins[name]


def test_an_option_is_stronger_than_the_environment_which_is_stronger_than_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(home, "[serve]\nport = 1\nhost = '127.0.0.2'\nmax_requests = 9\n")
    monkeypatch.setenv("CALOMEL_PORT", "2")
    monkeypatch.setenv("CALOMEL_HOST", "127.0.0.3")
    layered = load({"port": 3})

    assert origin(layered, "port") == ("3", "--port")
    assert origin(layered, "host") == ("127.0.0.3", "CALOMEL_HOST")
    assert origin(layered, "max_requests") == ("9", str(home))
    assert origin(layered, "device") == ("cpu", "default")
    assert layered.settings.port == 3


def test_a_named_file_is_read_instead_and_must_be_there(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(home, "[serve]\nport = 1\n")
    other = written(tmp_path / "other.toml", "[serve]\nport = 2\n")
    assert load({}, other).settings.port == 2
    monkeypatch.setenv("CALOMEL_CONFIG", str(other))
    assert (load({}).settings.port, named_path()) == (2, other)
    assert load({}, use_config=False).settings.port == 8017
    with pytest.raises(SettingsError, match="this file does not exist"):
        load({}, tmp_path / "nothing.toml")


def test_tables_of_the_editors_side_are_left_to_it(home: Path) -> None:
    written(home, "[suggest]\naggressiveness = 'quiet'\n[backend]\nurl = 'http://x'\n[serve]\nport = 5\n")
    assert load({}).settings.port == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[serve]\nprot = 1\n", "serve.prot: unknown; did you mean port?"),
        ("[serve]\nmax-requests = 1\n", "serve.max-requests: unknown; did you mean max_requests?"),
        ("[serve]\nqqqq = 1\n", "serve.qqqq: unknown; `calomel config reference` lists all settings"),
        ('[serve]\n"a\\u001b[2J" = 1\n', r"serve.a\x1b[2J: unknown; "),
        ("[serv]\nport = 1\n", "serv: unknown; did you mean serve?"),
        ("port = 1\n", "port: belongs in the table [serve]"),
        ("model = 'nano'\n", "model: belongs in the table [backend] or [serve]"),
        ("serve = 1\n", "serve: must be a table of settings"),
        ("[serve]\nport = 99999\n", "serve.port: must be a whole number from 0 to 65535"),
        ("[serve]\nport = '8017'\n", "serve.port: must be a whole number from 0 to 65535"),
        ("[serve]\nport =\n", "is not valid TOML: "),
        ("[serve]\nallow_remote = 'perhaps'\n", "serve.allow_remote: must be true or false"),
    ],
)
def test_a_wrong_file_is_refused_by_name(home: Path, text: str, message: str) -> None:
    written(home, text)
    with pytest.raises(SettingsError, match="^" + re.escape(f"{home}: {message}")):
        load({})


def test_a_file_that_others_could_have_written_is_not_believed(home: Path) -> None:
    written(home, "[serve]\nport = 1\n", 0o666)
    with pytest.raises(SettingsError, match="other users can change it"):
        load({})


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a file to a group of others")
def test_a_group_may_write_the_file_only_if_nobody_else_is_in_it(home: Path) -> None:
    written(home, "[serve]\nport = 1\n", 0o664)
    assert load({}).settings.port == 1
    os.chown(home, -1, os.getgid() + 100)
    with pytest.raises(SettingsError, match="other users can change it"):
        load({})


def test_mistakes_in_other_tables_are_left_to_the_editors_side(home: Path) -> None:
    written(home, "suggest = 3\n[backend]\nurrl = 1\ntoken = 't'\n[serve]\nport = 5\n", 0o644)
    assert load({}).settings.port == 5
    settings, problems = load_settings(user_toml=home)
    assert (settings, len(problems)) == (Settings(), 2)


def test_all_mistakes_are_told_at_once_except_in_what_is_replaced(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(home, "[serve]\nport = 'x'\nthreads = 0\nexact = 3\n")
    monkeypatch.setenv("CALOMEL_OFFLINE", "perhaps")
    with pytest.raises(SettingsError) as caught:
        load({"port": 1})
    assert [each.split(": ")[1] for each in str(caught.value).split("; ")] == [
        "serve.threads",
        "serve.exact",
        "must be true or false",
    ]


def test_a_token_in_a_file_that_others_can_read_is_refused_and_never_shown(home: Path) -> None:
    written(home, "[serve]\ntoken = 'secret-token'\n", 0o644)
    with pytest.raises(SettingsError, match=r"serve.token: other users can read it, .* serve.token_file") as caught:
        load({})
    assert "secret-token" not in str(caught.value)
    home.chmod(0o600)
    assert origin(load({}), "token") == ("(hidden)", str(home))


def test_paths_in_a_file_are_relative_to_it(home: Path) -> None:
    (home.parent / "models" / "mine").mkdir(parents=True)
    (home.parent / "a-name").mkdir()
    written(home, "[serve]\ntoken_file = 'tokens'\nmodel = 'a-name'\n[backend]\nupstream_key_file = '../key'\n")
    settings, editors = load({}).settings, load_settings(user_toml=home)[0]
    assert settings.token_file == home.parent / "tokens"
    assert settings.model == Path("a-name")
    assert editors.backend.upstream_key_file == home.parent / "../key"


@pytest.mark.parametrize(
    ("given", "wanted"), [("models/mine", "{home}/models/mine"), ("owner/name", "owner/name"), ("/x", "/x")]
)
def test_a_model_is_a_name_unless_there_is_such_a_path_beside_the_file(home: Path, given: str, wanted: str) -> None:
    (home.parent / "models" / "mine").mkdir(parents=True)
    written(home, f"[serve]\nmodel = '{given}'\n[backend]\nmodel = '{given}'\n")
    found = {load({}).settings.model, load_settings(user_toml=home)[0].backend.model}
    assert found == {Path(wanted.format(home=home.parent))}


def test_several_names_in_a_variable_stand_between_commas(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_ALLOWED_HOSTS", "devbox.lan, devbox")
    monkeypatch.setenv("CALOMEL_ALLOWED_ORIGINS", "https://devbox.lan:8443")
    settings = load({}).settings
    assert settings.allowed_hosts == ("devbox.lan", "devbox")
    assert settings.allowed_origins == ("https://devbox.lan:8443",)


def test_the_current_folder_configures_nothing(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "calomel.toml", "[serve]\nno_auth = true\n")
    monkeypatch.chdir(tmp_path)
    assert (load({}).settings.no_auth, load({}).settings.port) == (False, 8017)


def test_an_error_names_the_option_and_repeats_no_secret(home: Path) -> None:
    with pytest.raises(SettingsError, match="--max-requests: "):
        load({"max_requests": 0})
    written(home, "[serve]\ntoken = 'secret with spaces'\n")
    with pytest.raises(SettingsError) as caught:
        load({})
    assert "secret" not in str(caught.value)


DEPLOY = Path(__file__).parents[2] / "server" / "deploy"


ANALYZE = shutil.which("systemd-analyze")


# Of systemd's scale from 0 (closed) to 10 (open); what is left is the network and the compiler of kernels.
MOST_EXPOSED = 2.0


@pytest.mark.skipif(ANALYZE is None, reason="no systemd-analyze")
def test_the_unit_is_one_and_a_closed_one(tmp_path: Path) -> None:
    assert ANALYZE is not None
    # The program that it names is not installed here.
    unit = tmp_path / "calomel.service"
    unit.write_text(re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", (DEPLOY / "calomel.service").read_text()))
    verified = subprocess.run([ANALYZE, "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    said = [line for line in verified.stderr.splitlines() if "calomel" in line]
    rated = subprocess.run(
        [ANALYZE, "security", "--offline=true", "--no-pager", unit], capture_output=True, text=True, check=False
    )
    exposure = re.search(r"exposure level for calomel\.service: ([0-9.]+)", rated.stdout)

    assert (verified.returncode, said) == (0, [])
    assert exposure is not None
    assert float(exposure[1]) <= MOST_EXPOSED


def test_the_settings_beside_it_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "calomel.toml"
    shutil.copy(DEPLOY / "calomel.toml", path)
    path.chmod(0o644)
    assert load({}, path).settings.offline


def test_every_variable_that_is_set_is_a_setting() -> None:
    found = set()
    for name in ("calomel.service", "Dockerfile", "compose.yaml"):
        found |= set(re.findall(r"CALOMEL_([A-Z_]+)(?:[=:])", (DEPLOY / name).read_text()))
    assert found
    assert {name.lower() for name in found} <= set(NAMES)


def test_the_image_gets_what_the_package_is_built_from() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    build = tomllib.loads((DEPLOY.parents[1] / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    for folder in build["dev-mode-dirs"]:
        assert f"COPY {folder} {folder}\n" in text
    assert "\nUSER " in text
