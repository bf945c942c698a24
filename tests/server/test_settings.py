"""Settings, where they come from, and those that are shipped for a service."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from calomel.server.settings import Layered, ServeSettings, SettingsError, load, named_path, shown


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.53", "localhost", "::1"])
def test_loopback_hosts_are_taken(host: str) -> None:
    assert ServeSettings(host=host).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.com", "", "localhost.example.com"])
def test_a_host_that_others_can_reach_must_be_asked_for_twice(host: str) -> None:
    with pytest.raises(ValidationError, match="allow-remote"):
        ServeSettings(host=host)
    assert ServeSettings(host=host, allow_remote=True).host == host


def test_an_empty_token_needs_no_auth_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_TOKEN", "")
    with pytest.raises(ValidationError, match="the token is empty"):
        ServeSettings()
    assert ServeSettings(no_auth=True).no_auth


@pytest.mark.parametrize("token", ["with space", "tab\t", "line\n", "é"])
def test_a_token_that_no_header_can_carry_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ServeSettings.model_validate({"token": token})
    assert token not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"port": -1}, "greater than"),
        ({"max_requests": 0}, "greater than"),
        ({"prot": 1}, "Extra inputs"),
        ({"allowed_hosts": ("*",)}, "exact names"),
        ({"allowed_origins": ("https://x/path",)}, "without patterns or a path"),
        ({"tls_cert": "a.pem"}, "set both tls-cert and tls-key"),
        ({"host": "0.0.0.0", "allow_remote": True, "no_auth": True}, "needs a token"),
        ({"token": "abc", "no_auth": True}, "remove one"),
        ({"token": "abc", "token_file": "tokens"}, "remove one"),
    ],
)
def test_what_makes_no_sense_or_leaves_the_door_open_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ServeSettings.model_validate(given)


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
    written(home, "[suggest]\naggressiveness = 'quiet'\n[server]\nurl = 'http://x'\n[serve]\nport = 5\n")
    assert load({}).settings.port == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[serve]\nprot = 1\n", r"\[serve\] prot is not a setting; did you mean port\?"),
        ("[serve]\nmax-requests = 1\n", r"max-requests is not a setting; did you mean max_requests\?"),
        ("[serve]\nqqqq = 1\n", r"qqqq is not a setting$"),
        ("[serv]\nport = 1\n", r"serv is not a setting; did you mean serve\?"),
        ("port = 1\n", r"port belongs in the table \[serve\]"),
        ("serve = 1\n", "must be a table"),
        ("[serve]\nport = 99999\n", r"port \(.*calomel.toml\): "),
        ("[serve]\nport =\n", "is not valid TOML"),
        ("[serve]\nallow_remote = 'perhaps'\n", "allow_remote"),
    ],
)
def test_a_wrong_file_is_refused_by_name(home: Path, text: str, message: str) -> None:
    written(home, text)
    with pytest.raises(SettingsError, match=message):
        load({})


def test_a_file_that_others_could_have_written_is_not_believed(home: Path) -> None:
    written(home, "[serve]\nport = 1\n", 0o666)
    with pytest.raises(SettingsError, match="other users can write"):
        load({})


def test_a_token_in_a_file_that_others_can_read_is_refused_and_never_shown(home: Path) -> None:
    written(home, "[serve]\ntoken = 'secret-token'\n", 0o644)
    with pytest.raises(SettingsError, match="contains a token") as caught:
        load({})
    assert "secret-token" not in str(caught.value)
    home.chmod(0o600)
    assert origin(load({}), "token") == ("(hidden)", str(home))


def test_paths_in_a_file_are_relative_to_it(home: Path) -> None:
    written(home, "[serve]\ntoken_file = 'tokens'\nmodel = 'a-name'\n")
    settings = load({}).settings
    assert settings.token_file == home.parent / "tokens"
    assert settings.model == Path("a-name")


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
    assert {name.lower() for name in found} <= set(ServeSettings.model_fields)


def test_the_image_gets_what_the_package_is_built_from() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    build = tomllib.loads((DEPLOY.parents[1] / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    for folder in build["dev-mode-dirs"]:
        assert f"COPY {folder} {folder}\n" in text
    assert "\nUSER " in text
