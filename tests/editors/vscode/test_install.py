"""“Calomel: Install Server” in a VS Code that finds no server, one of another version, or another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.editors.shared import FakeUv, planted
from tests.editors.vscode.workbench import Starter, Workbench
from tests.lsp.program import SCRIPTED

from calomel.infer.completer import version

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

INSTALL = "Calomel: Install Server"


def storage(workbench: Workbench) -> Path:
    return workbench.data / "User" / "globalStorage" / "calomel.calomel" / "server"


def until_bar(workbench: Workbench, sentence: str) -> None:
    workbench.until(lambda: sentence in workbench.see("bar"), lambda: f"{sentence!r} in {workbench.see('bar')!r}")


def test_without_a_server_one_is_offered_and_a_click_installs_it(start: Starter, tmp_path: Path) -> None:
    uv = FakeUv(tmp_path / "fake")
    wheel = tmp_path / f"calomel-{version()}-py3-none-any.whl"
    wheel.touch()
    workbench = start(command=None, path=[uv.bin], settings={"calomel.wheel": str(wheel)})
    workbench.until_toast("The Calomel server is not installed", "up to 6 GB")
    assert uv.asked() == []
    workbench.click("Install Server")
    workbench.until_toast("installing the server", "Resolved 70 packages")
    first, *_, last = uv.asked()
    assert first.startswith(f"venv --python >=3.11,<3.14 {storage(workbench)}/")
    assert last.endswith(f"/bin/python {wheel}[engine,llama]")
    # Taken back.
    workbench.click("Cancel")
    until_bar(workbench, "Calomel: installation cancelled")
    assert list(storage(workbench).iterdir()) == []
    workbench.until(lambda: not workbench.toasts(), "its progress is gone")
    # It fails, and it fails without a network.
    uv.fails("error: no space", "left on device")
    workbench.command(INSTALL)
    workbench.until_toast("Calomel: It could not be installed: left on device")
    workbench.click("Show log")
    workbench.until(lambda: "left on device" in workbench.see("output"), "the log")
    uv.fails("Caused by: dns error: failed to lookup")
    workbench.command(INSTALL)
    workbench.until_toast("this machine is offline", "install calomel by hand")
    assert list(storage(workbench).iterdir()) == []
    workbench.clear_toasts()
    # It succeeds.
    uv.installs(SCRIPTED)
    workbench.command(INSTALL)
    workbench.until_status("Calomel")
    until_bar(workbench, f"Calomel: version {version()} of the server is installed")
    workbench.until(lambda: not workbench.toasts(), "its progress is gone")
    workbench.warm_up()


def test_one_on_the_path_is_taken_and_another_version_of_ours_is_offered_to_be_updated(
    start: Starter, tmp_path: Path
) -> None:
    uv = FakeUv(tmp_path / "fake")
    wheel = tmp_path / "calomel-7.0-py3-none-any.whl"
    wheel.touch()
    data = tmp_path / "data" / "User" / "globalStorage" / "calomel.calomel" / "server"
    old = planted(data, "0.0.9", SCRIPTED)
    onpath = planted(tmp_path / "elsewhere", "", SCRIPTED)
    settings = {"calomel.wheel": str(wheel)}
    workbench = start(command=None, path=[uv.bin, onpath.parent], settings=settings)
    workbench.until_status("Calomel")
    assert workbench.toasts() == []
    onpath.unlink()
    workbench.command("Calomel: Restart")
    workbench.until_toast("The Calomel server has version 0.0.9, but this extension needs 7.0.")
    workbench.until_status("Calomel")
    (before,) = workbench.server_pids()
    uv.installs(SCRIPTED)
    workbench.click("Update Server")
    until_bar(workbench, "Calomel: version 7.0 of the server is installed")
    workbench.until(lambda: workbench.server_pids() not in ([], [before]), "another server")
    workbench.until_status("Calomel")
    assert uv.asked()[-1].endswith(f" {wheel}[engine,llama]")
    workbench.until(lambda: not workbench.toasts(), "its progress is gone")
    assert old.exists()
