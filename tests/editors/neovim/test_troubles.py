"""What can be wrong is said in one sentence, once."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.lsp.program import REAL
from tests.other_program import NO_HTTP, REFUSED, listening


def told(neovim: Neovim, server: dict[str, Any]) -> list[str]:
    """What a user reads who opens a file and types, restarts nothing and types on."""
    neovim.setup(command=REAL, server={"server": server})
    neovim.open("\n", served=False)
    neovim.until(neovim.messages, "a message")
    neovim.type("ix = <CR>y = ")
    neovim.settle()
    assert neovim.lua("return require('calomel').statusline()") in {"Calomel: error", "Calomel: loading"}
    assert neovim.text() == "x = \ny = "
    return neovim.messages()


@pytest.mark.e2e
def test_a_server_that_is_stopped_is_named(bare: Neovim) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert told(bare, {"url": url}) == [f"Calomel: no server answers at {url}; `calomel doctor` says more."]


@pytest.mark.e2e
def test_a_model_that_is_missing_is_named(bare: Neovim) -> None:
    (said,) = told(bare, {"model": "/nowhere"})
    assert said == "Calomel: there is no model in /nowhere: its config.json is missing; `calomel doctor` says more."


@pytest.mark.e2e
def test_a_port_that_another_program_has_is_named(bare: Neovim) -> None:
    with listening(NO_HTTP) as url:
        (said,) = told(bare, {"url": url})
    assert said == f"Calomel: what listens at {url} is another program than Calomel; `calomel doctor` says more."


@pytest.mark.e2e
def test_a_wrong_token_is_named(bare: Neovim) -> None:
    with listening(REFUSED) as url:
        (said,) = told(bare, {"url": url, "token": "wrong"})
    assert said.startswith("Calomel: the server does not accept the token: check server.token or server.token_file;")


def test_a_file_that_is_ignored_is_named(bare: Neovim) -> None:
    bare.setup()
    for name in (".env", "secrets/.env"):
        (bare.folder / "secrets").mkdir(exist_ok=True)
        bare.open("A=1\n", name=name, filetype="sh")
        bare.type("oB=")
        bare.until(lambda: "(ignored_path)" in bare.status())
        bare.type("<Esc>")
    assert bare.messages() == [
        "Calomel: This file is excluded by an ignore rule, so no model sees it. (secret_file:.env)"
    ]


def test_a_language_that_is_off_is_named(bare: Neovim) -> None:
    bare.setup(server={"suggest": {"debounce_seconds": 0.0, "languages": {"python": False}}})
    for name in ("a.py", "b.py"):
        bare.open("\n", name=name)
        bare.type("ix = ")
        bare.until(lambda: "(off_language)" in bare.status())
        bare.type("<Esc>")
    assert bare.messages() == ["Calomel: Suggestions are turned off for this language."]


def test_a_machine_that_is_too_slow_is_named(bare: Neovim) -> None:
    bare.script(error="timeout")
    bare.setup()
    bare.open("\n")
    bare.type("i")
    for _ in range(8):
        bare.type("x = ")
        bare.settle()
    assert bare.messages() == ["Calomel: answers come too late on this machine; `calomel doctor` says what helps."]
