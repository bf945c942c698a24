"""A VS Code of one's own for what is wrong at the start: it is said in one sentence, once."""

from __future__ import annotations

import os
import signal

import pytest
from tests.cli.hub import hub_with
from tests.editors.shared import FAR, HEAD, RENAME
from tests.editors.vscode.workbench import Starter
from tests.lsp.program import SCRIPTED
from tests.server._upstreams import Play, llama_cpp, served

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ABSENT = "The Calomel server is not installed, or VS Code cannot find it."


def test_without_the_program_one_message_says_how_to_get_it_and_a_virtual_environment_will_do(start: Starter) -> None:
    workbench = start(command=None)
    workbench.until(workbench.toasts, "a message")
    (message,) = workbench.toasts()
    assert message.startswith(ABSENT)
    assert "Install it for this extension only?" in message
    workbench.until(lambda: ABSENT in workbench.status()[1], "the status says so, too")
    workbench.command("Calomel: Open the Guide")
    workbench.until(lambda: "Install the server" in workbench.see("guide"), "the guide says how, too")
    # The workspace gets a virtual environment with the program in it.
    workbench.program = workbench.files / ".venv" / "bin" / "calomel"
    workbench.install(SCRIPTED)
    workbench.command("Calomel: Restart")
    workbench.until_status("Calomel")


def test_a_program_that_is_wrong_or_ends_is_said_once(start: Starter) -> None:
    workbench = start(settings={"calomel.path": "/nowhere/calomel"})
    workbench.until(workbench.toasts, "a message")
    assert "The setting calomel.path names /nowhere/calomel, which is not a program." in workbench.toasts()[0]
    workbench.install(["/bin/false"])
    workbench.set({"calomel.path": str(workbench.program)})
    ended = "see the output channel"
    workbench.until(lambda: [each for each in workbench.toasts() if ended in each], "another message")
    assert len([each for each in workbench.toasts() if ended in each]) == 1
    assert ended in workbench.status()[1]


def test_a_server_that_dies_is_started_again(start: Starter) -> None:
    workbench = start(script={"fill": {"x": "warm"}})
    workbench.warm_up()
    (pid,) = workbench.server_pids()
    os.kill(pid, signal.SIGKILL)
    workbench.until(lambda: workbench.server_pids() not in ([], [pid]), "another server")
    workbench.until_status("Calomel")
    assert workbench.toasts() == []
    workbench.offered("\n", (1, 1), "x = ", "value_of(x)")


def test_another_model_is_chosen_of_those_that_run_here(start: Starter) -> None:
    with served(llama_cpp(Play(tokens=("value_of", "(x)")))) as url:
        workbench = start()
        workbench.warm_up()
        workbench.script(fill=None, ports=[["llama.cpp", int(url.rpartition(":")[2])]])
        assert "It runs on this machine's CPU." in workbench.status()[1]
        workbench.command("Calomel: Choose a Model")
        workbench.until(lambda: any(url in row for row in workbench.see("quickRows")), "the server is found")
        workbench.ask("insert", text="llama")
        workbench.until(lambda: url in workbench.see("focusedRow"), "its model can be picked")
        workbench.press("Enter")
        through = f"Qwen2.5-Coder-1.5B-Q8_0 is ready. It answers through llama.cpp at {url}."
        workbench.until(lambda: through in workbench.status()[1], "the model is there")
        settings = workbench.data / "Machine" / "settings.json"
        workbench.until(lambda: url in settings.read_text(), "it is kept")
        workbench.offered("\n", (1, 1), "x = ", "value_of(x)")
    # It is gone.
    workbench.command("Calomel: Choose a Model")
    workbench.until(lambda: "nano" in str(workbench.see("quickRows")), "nano is offered")
    workbench.ask("insert", text="nano")
    workbench.until(lambda: "nano" in workbench.see("focusedRow"), "it can be picked")
    workbench.press("Enter")
    workbench.until(lambda: "scripted is ready." in workbench.status()[1], "nano is there again")


def test_a_model_that_is_not_here_is_downloaded_once_the_user_agrees(start: Starter) -> None:
    with hub_with({"small-Q8_0.gguf": b"GGUF" + bytes(5_000_000)}) as hub:
        workbench = start()
        workbench.warm_up()
        workbench.script(hub=f"http://127.0.0.1:{hub.server_port}")
        workbench.command("Calomel: Choose a Model")
        offered = "download, 0.5 GB, MIT; for completions"
        workbench.until(lambda: offered in str(workbench.see("quickRows")), "it is offered")
        workbench.ask("insert", text="Small")
        workbench.until(lambda: offered in workbench.see("focusedRow"), "it can be picked")
        workbench.press("Enter")
        workbench.until_toast("Download small-Q8_0.gguf from the Hugging Face hub (0.01 GB, licence mit)?")
        workbench.click("Download")
        settings = workbench.data / "Machine" / "settings.json"
        workbench.until(lambda: '"calomel.backend.model": "me/small"' in settings.read_text(), "it is used")


def test_a_server_that_dies_is_told_nano_answers_meanwhile_and_it_is_back_by_itself(start: Starter) -> None:
    llama = llama_cpp(Play(tokens=("of_llama", "(x)")))
    workbench = start()
    workbench.warm_up()

    def give(address: str) -> None:
        workbench.command("Calomel: Choose a Model")
        workbench.until(lambda: "nano" in str(workbench.see("quickRows")), "models are listed")
        workbench.ask("insert", text="another address")
        workbench.until(lambda: "another address" in workbench.see("focusedRow"), "an address can be given")
        workbench.press("Enter")
        workbench.until(lambda: workbench.see("quickInput") == "localhost:8080", "the usual one is there")
        workbench.ask("insert", text=address)
        workbench.press("Enter")

    give("localhost:9")
    workbench.until_toast("scripted stays in use: no server answers at http://localhost:9: start it")
    assert "scripted is ready" in workbench.status()[1]
    workbench.clear_toasts()
    with served(llama) as url:
        address = f"localhost:{url.rpartition(':')[2]}"
        give(address)
        through = f"It answers through llama.cpp at http://{address}."
        workbench.until(lambda: through in workbench.status()[1], "the model is there")
        workbench.offered("\n", (1, 1), "x = ", "of_llama(x)")
    workbench.script(fill="of_nano(x)")
    workbench.open("\n")
    workbench.type("y = ")
    workbench.until_toast(f"llama.cpp at http://{address} stopped answering")
    workbench.click("Use nano meanwhile")
    workbench.until(lambda: "scripted answers until" in workbench.status()[1], "nano answers")
    workbench.offered("\n", (1, 1), "z = ", "of_nano(x)", fill="of_nano(x)")
    with served(llama, int(address.rpartition(":")[2])):
        workbench.until(lambda: through in workbench.status()[1], "it is back")
        workbench.offered("\n", (1, 1), "v = ", "of_llama(x)")


def test_the_model_reads_what_stands_around_a_resting_cursor_before_it_is_asked(start: Starter) -> None:
    workbench = start()
    workbench.script(fill="value", reads_ahead=True)
    workbench.open("first = 1\nsecond = 2\nthird = 3\n")
    workbench.until(lambda: {"kind": "ahead", "prefix": ""} in workbench.asked(), "the file that was opened is read")
    workbench.go(3, 1)
    there = {"kind": "ahead", "prefix": "first = 1\nsecond = 2\n"}
    workbench.until(lambda: there in workbench.asked(), "so is the line that the cursor rests in")


def test_a_sign_says_that_there_is_something_and_the_key_that_asks_shows_it(start: Starter) -> None:
    workbench = start(settings={"calomel.suggest.show": "hint"}, script={"fill": {"re": "turn a + b"}})
    workbench.until_status("Calomel")
    workbench.open(HEAD)
    workbench.go(2, 5)
    workbench.type("re")
    workbench.until(lambda: workbench.see("signs"), "the sign")
    assert workbench.ghost() == ""
    workbench.press("Alt+\\")
    workbench.until_ghost("turn a + b")
    workbench.until(lambda: not workbench.see("signs"), "the sign is gone")
    workbench.script(edit=RENAME)
    workbench.open(FAR)
    workbench.press("Control+Shift+ArrowRight")
    workbench.type("new")
    workbench.until(lambda: workbench.see("signs"), "the sign of an edit")
    assert workbench.decorations() == []
    workbench.press("Alt+\\")
    workbench.until(lambda: workbench.struck() == ["old"], "the edit")
