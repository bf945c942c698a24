"""Where prompts may be sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from calomel.server.settings import ServerSettings, SettingsError, load
from calomel.suggest.upstream.target import TargetError, Upstream, checked_url, read_token


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("https://gpu.example:8000", "https://gpu.example:8000"),
        ("https://gpu.example/team/v1/", "https://gpu.example/team"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://localhost:8000/", "http://localhost:8000"),
    ],
)
def test_encrypted_addresses_and_this_machine_are_taken(written: str, url: str) -> None:
    assert checked_url(written, plain=False) == url


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("http://gpu.example:8000", "unencrypted"),
        ("http://10.0.0.5:8000", "unencrypted"),
        ("http://localhost.example", "unencrypted"),
        ("https://name:secret@gpu.example", "upstream_token_file"),
        ("https://gpu.example?key=secret", "before"),
        ("ftp://gpu.example", "no address"),
        ("gpu.example:8000", "no address"),
        ("https://", "no address"),
        ("https://gpu.example:port", "no address"),
        ("https://gpu.example/\nx", "no address"),
    ],
)
def test_others_are_refused_and_no_secret_is_repeated(written: str, words: str) -> None:
    with pytest.raises(TargetError, match=words) as raised:
        checked_url(written, plain=False)
    assert "secret" not in str(raised.value)


def test_plain_http_over_a_network_must_be_asked_for_twice(tmp_path: Path) -> None:
    fields = {"no_auth": True, "model": tmp_path, "upstream": "http://gpu.example:8000"}
    with pytest.raises(ValidationError, match="upstream-unencrypted"):
        ServerSettings.model_validate(fields)

    settings = ServerSettings.model_validate({**fields, "upstream_unencrypted": True})

    assert settings.upstream_host == "gpu.example:8000"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"model": None}, "needs a model"),
        ({"offline": True}, "offline"),
        ({"upstream": None, "upstream_model": "m"}, "need an upstream"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    tmp_path: Path, changed: dict[str, object], words: str
) -> None:
    fields = {"no_auth": True, "model": tmp_path, "upstream": "https://gpu.example"} | changed
    with pytest.raises(ValidationError, match=words):
        ServerSettings.model_validate(fields)


def test_a_token_is_shown_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("s3cret\n")

    upstream = Upstream("https://gpu.example:8000", None, read_token(path))

    assert upstream.token == "s3cret"
    assert "s3cret" not in repr(upstream)


@pytest.mark.parametrize("text", ["", "\n", "two words", "x" * 9000, "tok\u00e9n"])
def test_a_file_that_holds_something_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    with pytest.raises(TargetError, match="does not hold one token"):
        read_token(path)
    with pytest.raises(TargetError, match="cannot be read"):
        read_token(tmp_path / "none")


def test_a_token_file_of_the_settings_lies_beside_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALOMEL_UPSTREAM", raising=False)
    file = tmp_path / "calomel.toml"
    file.write_text(f'[serve]\nmodel = "{tmp_path}"\nupstream = "https://gpu.example"\nupstream_token_file = "token"\n')

    assert load({}, file).settings.upstream_token_file == tmp_path / "token"
    with pytest.raises(SettingsError, match="unencrypted"):
        load({"upstream": "http://gpu.example"}, file)
