from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from calomel.server.settings import ServerSettings


def test_by_default_only_this_machine_gets_in() -> None:
    settings = ServerSettings()
    assert (settings.host, settings.no_auth, settings.allow_remote) == ("127.0.0.1", False, False)
    assert settings.hosts() == ["127.0.0.1", "localhost", "[::1]"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.53", "localhost", "::1"])
def test_loopback_hosts_are_taken(host: str) -> None:
    assert ServerSettings(host=host).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.com", "", "localhost.example.com"])
def test_a_host_that_others_can_reach_must_be_asked_for_twice(host: str) -> None:
    with pytest.raises(ValidationError, match="allow-remote"):
        ServerSettings(host=host)
    assert ServerSettings(host=host, allow_remote=True).host == host


def test_a_remote_host_without_a_token_is_refused() -> None:
    with pytest.raises(ValidationError, match="needs a token"):
        ServerSettings(host="0.0.0.0", allow_remote=True, no_auth=True)


def test_an_empty_token_needs_no_auth_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_TOKEN", "")
    with pytest.raises(ValidationError, match="the token is empty"):
        ServerSettings()
    assert ServerSettings(no_auth=True).no_auth


def test_a_token_and_no_auth_contradict_each_other() -> None:
    with pytest.raises(ValidationError, match="drop one"):
        ServerSettings.model_validate({"token": "abc", "no_auth": True})


@pytest.mark.parametrize("token", ["with space", "tab\t", "line\n", "é"])
def test_a_token_that_no_header_can_carry_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ServerSettings.model_validate({"token": token})
    assert token not in str(caught.value)


@pytest.mark.parametrize("setting", [{"port": -1}, {"port": 65536}, {"threads": 0}, {"max_requests": 0}, {"prot": 1}])
def test_a_setting_out_of_range_or_unknown_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ServerSettings(**setting)


def test_a_pattern_is_no_host_name() -> None:
    with pytest.raises(ValidationError, match="exact names"):
        ServerSettings(allowed_hosts=("*",))


def test_the_environment_is_read_and_an_argument_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALOMEL_PORT", "9001")
    monkeypatch.setenv("CALOMEL_TOKEN", "from-the-environment")
    assert ServerSettings().port == 9001
    settings = ServerSettings.model_validate({"port": 9002})
    assert settings.port == 9002
    assert settings.token is not None
    assert settings.token.get_secret_value() == "from-the-environment"
    assert "from-the-environment" not in repr(settings)


def test_a_name_of_the_own_host_is_allowed() -> None:
    assert "[fd00::1]" in ServerSettings(host="fd00::1", allow_remote=True).hosts()
