"""Plain HTTP to another machine: only to hosts that the user lists, and the refusal says the line to write."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import Editor
from tests.server._upstreams import Play, llama_cpp, resolved, served

from calomel.infer.completer import CompleterError
from calomel.infer.launch import connect
from calomel.infer.listener import owner
from calomel.workspace.settings import BackendSettings, load_settings

NAME = "desktop.lan"
LINE = f'allow_http = ["{NAME}"] under [backend] in your own calomel.toml'


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    resolved(monkeypatch, NAME)
    return Play(tokens=("return ", "a - b"))


@pytest.fixture
def desktop(play: Play) -> Iterator[str]:
    """A llama.cpp that is not of this machine by its address."""
    with served(llama_cpp(play)) as url:
        yield url.replace("127.0.0.1", NAME)


@pytest.fixture
async def window(tmp_path: Path, editor: Editor) -> Any:
    real = Editor(tmp_path / "real.log", editor.script, real=True)
    yield real
    await real.aclose()


async def test_a_server_of_another_machine_is_refused_until_its_host_is_listed(
    window: Editor, desktop: str, play: Play
) -> None:
    await window.begin(backend={"upstream": desktop})
    assert LINE in (await window.state("error"))["message"]
    assert play.asked == []


@pytest.mark.parametrize("listed", [NAME, NAME.upper()])
async def test_a_server_whose_host_is_listed_is_asked_and_gets_the_key(
    window: Editor, tmp_path: Path, desktop: str, play: Play, listed: str
) -> None:
    play.key, key = "k-1", tmp_path / "key"
    key.write_text("k-1")
    key.chmod(0o600)
    await window.begin(backend={"upstream": desktop, "upstream_key_file": str(key), "allow_http": [listed]})
    (item,) = (await window.inline(1, 4))["items"]
    assert item["insertText"].endswith("return a - b")


async def test_a_redirect_from_a_host_that_is_listed_is_not_followed(window: Editor, desktop: str, play: Play) -> None:
    with served(llama_cpp(other := Play())) as url:
        play.failing["/infill"] = 307, f"{url}/infill"
        await window.begin(backend={"upstream": desktop, "allow_http": [NAME]})
        assert "redirects elsewhere" in (await window.state("error"))["message"]
    assert other.asked == []


async def test_a_choice_in_an_editor_is_held_to_the_same_list(window: Editor, desktop: str, play: Play) -> None:
    with served(llama_cpp(Play())) as url:
        await window.begin(backend={"upstream": url}, configuration_filtered=True)
        await window.state("ready")
        answer = await window.command("calomel.useModel", {"upstream": desktop})
        assert LINE in answer["message"]
        assert play.asked == []
        both = {"settings": {"calomel": {"backend": {"upstream": url, "allow_http": [NAME]}}}}
        window.notify("workspace/didChangeConfiguration", both)
        answer = await window.command("calomel.useModel", {"upstream": desktop})
    assert f"It answers through llama.cpp at {desktop}" in answer["message"]


def test_whose_program_listens_is_asked_only_of_connections_within_this_machine() -> None:
    with socket.create_server(("0.0.0.0", 0)) as here:
        port = here.getsockname()[1]
        assert owner(("127.0.0.1", port), ("127.0.0.1", 1)) is not None
        assert owner(("192.0.2.77", port), ("192.0.2.66", 1)) is None


OTHERS = {
    "http://10.0.0.5:8080": ("10.0.0.0/8", "10.0.0.5", "10.0.0.77/24"),
    "http://[fd00::5]:8080": ("fd00::/64", "fd00::5", "FD00:0::5"),
    "http://desktop.lan:8080": ("desktop.lan",),
}
NOT = ("10.0.1.0/24", "10.0.0.6", "fd01::/64", "lan", "esktop.lan", "x.desktop.lan", "10.0.0", "10.0.0.0/99")


@pytest.mark.parametrize("url", OTHERS)
async def test_a_host_is_listed_by_its_name_its_address_or_its_network(url: str) -> None:
    for listed in OTHERS[url]:
        for place in ("url", "upstream"):
            await (await connect(BackendSettings(**{place: url}, allow_http=(listed,)))).aclose()  # type: ignore[arg-type]
    others = (*NOT, *(each for name, all_of in OTHERS.items() if name != url for each in all_of))
    for place in ("url", "upstream"):
        with pytest.raises(CompleterError, match=rf"backend.{place} would send your code unencrypted"):
            await connect(BackendSettings(**{place: url}, allow_http=others))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", ["*", "*.lan", "http://desktop.lan", "desktop.lan:8080", "10.0.0.5:8080", "", "a b", "desktop.lan/8"]
)
def test_what_is_no_host_is_named_and_lists_nothing(wrong: str) -> None:
    settings, (problem,) = load_settings(initialization_options={"backend": {"allow_http": [wrong]}})
    assert settings.backend.allow_http == ()
    assert "a list of names, addresses or networks such as 192.168.1.0/24" in str(problem)
