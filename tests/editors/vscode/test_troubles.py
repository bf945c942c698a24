"""What can be wrong is said in one sentence, once."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
from tests.editors.vscode.workbench import START_SECONDS, Workbench
from tests.lsp.program import REAL
from tests.other_program import NO_HTTP, REFUSED, listening

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def told(workbench: Workbench, sentence: str) -> None:
    """The user is told, once, also when he types on."""
    workbench.until(lambda: f"Calomel: {sentence}" in workbench.toasts(), sentence)
    assert sentence in workbench.status()[1]
    workbench.open("\n")
    workbench.type("x = y")
    workbench.until_saved("x = y\n")
    assert workbench.toasts().count(f"Calomel: {sentence}") == 1
    workbench.command("Notifications: Clear All Notifications")
    workbench.until(lambda: not workbench.toasts(), "it is gone")


def test_a_server_a_port_a_token_and_a_model_that_are_wrong_are_named(start: Callable[..., Workbench]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    workbench = start(command=REAL, settings={"calomel.server.url": url})
    workbench.seconds = START_SECONDS
    told(workbench, f"no server answers at {url}")
    with listening(NO_HTTP) as other:
        workbench.set({"calomel.server.url": other})
        told(workbench, f"what listens at {other} is another program than Calomel")
    with listening(REFUSED) as other:
        workbench.set({"calomel.server.url": other})
        told(workbench, "the server does not accept the token: check server.token or server.token_file")
    workbench.set({"calomel.server.url": None, "calomel.server.model": "/nowhere"})
    told(workbench, "there is no model in /nowhere: its config.json is missing")


def test_a_file_that_is_ignored_is_named_in_the_status_bar(workbench: Workbench) -> None:
    workbench.open("A=1\n", ".env.local")
    workbench.press("End", "Enter")
    workbench.type("B=")
    workbench.until(lambda: "Calomel: This file is excluded by an ignore rule" in workbench.see("bar"), "the sentence")
    assert workbench.toasts() == []


def test_a_machine_that_is_too_slow_is_named(workbench: Workbench) -> None:
    workbench.script(error="timeout")
    workbench.open("\n")
    sentence = "Calomel: answers come too late on this machine; `calomel doctor` says what helps."

    def typed() -> bool:
        workbench.type("x ")
        return sentence in workbench.toasts()

    workbench.until(typed, "the sentence")
    workbench.until(lambda: workbench.status()[0] == "Calomel: slow", "slow")
    assert workbench.toasts() == [sentence]
    workbench.command("Notifications: Clear All Notifications")
    workbench.until(lambda: not workbench.toasts(), "it is gone")
