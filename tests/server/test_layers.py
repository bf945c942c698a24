from __future__ import annotations

from pathlib import Path

import pytest

from calomel.server.settings import Layered, SettingsError, load, named_path, shown


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


def test_without_a_file_there_are_defaults(home: Path) -> None:
    assert load({}).settings.port == 8017


def test_the_current_folder_configures_nothing(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "calomel.toml", "[serve]\nno_auth = true\n")
    monkeypatch.chdir(tmp_path)
    assert not load({}).settings.no_auth


def test_a_named_file_is_read_instead_and_must_be_there(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(home, "[serve]\nport = 1\n")
    other = written(tmp_path / "other.toml", "[serve]\nport = 2\n")
    assert load({}, other).settings.port == 2
    monkeypatch.setenv("CALOMEL_CONFIG", str(other))
    assert (load({}).settings.port, named_path()) == (2, other)
    assert load({}, use_config=False).settings.port == 8017
    with pytest.raises(SettingsError, match="no such file"):
        load({}, tmp_path / "nothing.toml")


def test_tables_of_the_editors_side_are_left_to_it(home: Path) -> None:
    written(home, "[suggest]\naggressiveness = 'quiet'\n[server]\nurl = 'http://x'\n[serve]\nport = 5\n")
    assert load({}).settings.port == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[serve]\nprot = 1\n", r"\[serve\] prot is no setting; did you mean port\?"),
        ("[serve]\nmax-requests = 1\n", r"max-requests is no setting; did you mean max_requests\?"),
        ("[serve]\nqqqq = 1\n", r"qqqq is no setting$"),
        ("[serv]\nport = 1\n", r"serv is no setting; did you mean serve\?"),
        ("port = 1\n", r"port belongs into the table \[serve\]"),
        ("serve = 1\n", "must be a table"),
        ("[serve]\nport = 99999\n", r"port \(.*calomel.toml\): "),
        ("[serve]\nport =\n", "is no TOML"),
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
    with pytest.raises(SettingsError, match="holds a token") as caught:
        load({})
    assert "secret-token" not in str(caught.value)
    home.chmod(0o600)
    assert origin(load({}), "token") == ("(hidden)", str(home))


def test_a_wrong_value_is_not_repeated(home: Path) -> None:
    written(home, "[serve]\ntoken = 'secret with spaces'\n")
    with pytest.raises(SettingsError) as caught:
        load({})
    assert "secret" not in str(caught.value)


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


def test_an_error_of_an_option_names_the_option(home: Path) -> None:
    with pytest.raises(SettingsError, match="--max-requests: "):
        load({"max_requests": 0})
