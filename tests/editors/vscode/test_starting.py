from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from tests.editors.vscode.workbench import START_SECONDS, Workbench
from tests.lsp.program import SCRIPTED

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ABSENT = "The program calomel is not installed, or VS Code does not find it."


def test_without_the_program_one_message_says_how_to_get_it_and_a_virtual_environment_will_do(
    start: Callable[..., Workbench],
) -> None:
    workbench = start(command=None)
    workbench.seconds = START_SECONDS
    workbench.until(workbench.toasts, "a message")
    (message,) = workbench.toasts()
    assert message.startswith(ABSENT)
    assert "pip install ./calomel" in message
    assert ABSENT in workbench.status()[1]
    # The workspace gets a virtual environment with the program in it.
    workbench.program = workbench.files / ".venv" / "bin" / "calomel"
    workbench.install(SCRIPTED)
    workbench.command("Calomel: Restart")
    workbench.until(lambda: workbench.status()[0] == "Calomel", "the server is ready")


def test_a_program_that_is_wrong_or_ends_is_said_once(start: Callable[..., Workbench]) -> None:
    workbench = start(settings={"calomel.path": "/nowhere/calomel"})
    workbench.seconds = START_SECONDS
    workbench.until(workbench.toasts, "a message")
    assert "The setting calomel.path names /nowhere/calomel, which is no program." in workbench.toasts()[0]
    workbench.install(["/bin/false"])
    workbench.set({"calomel.path": str(workbench.program)})
    ended = "the log says more"
    workbench.until(lambda: [each for each in workbench.toasts() if ended in each], "another message")
    assert len([each for each in workbench.toasts() if ended in each]) == 1
    assert ended in workbench.status()[1]


def test_a_model_that_does_not_load_is_said_once(start: Callable[..., Workbench]) -> None:
    workbench = start(script={"broken": True})
    workbench.seconds = START_SECONDS
    workbench.until(workbench.toasts, "a message")
    assert workbench.toasts() == ["Calomel: The weights are damaged."]
    assert "The weights are damaged." in workbench.status()[1]


def test_a_server_that_dies_is_started_again(start: Callable[..., Workbench]) -> None:
    workbench = start(script={"fill": {"x": "warm"}})
    workbench.seconds = START_SECONDS
    workbench.warm_up()
    (pid,) = workbench.server_pids()
    os.kill(pid, signal.SIGKILL)
    workbench.until(lambda: workbench.server_pids() not in ([], [pid]), "another server")
    workbench.until(lambda: workbench.status()[0] == "Calomel", "the server is ready")
    assert workbench.toasts() == []
    workbench.script(fill={"x = ": "value_of(x)"})
    workbench.open("\n")
    workbench.type("x = ")
    workbench.until_ghost("value_of(x)")
