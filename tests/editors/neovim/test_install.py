"""`:CalomelInstall`, and which program is started afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.editors.neovim.neovim import _SETUP, OPTIONS, PLUGIN, Neovim
from tests.editors.shared import FakeUv, planted
from tests.lsp.program import SCRIPTED

from calomel.infer.completer import version

OFFLINE = "this machine is offline"


@pytest.fixture
def uv(bare: Neovim) -> FakeUv:
    """On the PATH of a Neovim that finds nothing else there."""
    uv = FakeUv(bare.folder / "fake")
    bare.lua("vim.env.XDG_DATA_HOME = ...", str(bare.folder / "data"))
    bare.lua("vim.env.PATH = ...", str(uv.bin))
    return uv


@pytest.fixture
def wheel(bare: Neovim) -> Path:
    """One of this version."""
    path = bare.folder / f"calomel-{version()}-py3-none-any.whl"
    path.touch()
    return path


def storage(neovim: Neovim) -> Path:
    return Path(neovim.lua("return vim.fn.stdpath('data')")) / "calomel"


def setup(neovim: Neovim) -> None:
    neovim.widen()
    neovim.lua(_SETUP, str(PLUGIN), {"settings": OPTIONS})


def until_said(neovim: Neovim, sentence: str) -> str:
    def found() -> str:
        return next((message for message in neovim.messages() if sentence in message), "")

    return str(neovim.until(found, sentence))


def test_where_there_is_no_program_the_command_installs_one_which_then_suggests(
    bare: Neovim, uv: FakeUv, wheel: Path
) -> None:
    setup(bare)
    absent = 'calomel: "calomel" was not found; :CalomelInstall installs it, see :checkhealth calomel'
    assert bare.messages() == [absent]
    assert uv.asked() == []
    bare.open("\n", served=False)
    bare.command(f"CalomelInstall {wheel}")
    until_said(bare, f"installing the server with {uv.bin / 'uv'}")
    bare.until(lambda: "Resolved 70 packages" in bare.screen(23), "its progress")
    uv.installs(SCRIPTED)
    until_said(bare, f"version {version()} of the server is installed")
    bare.until(bare.is_served, "the file that is open is served")
    first, *_, last = uv.asked()
    assert first.startswith(f"venv --python >=3.11,<3.14 {storage(bare)}/")
    assert last.endswith(f"/bin/python {wheel}[engine,llama]")
    bare.script(fill={"x = ": "value_of(x)"})
    bare.type("ix = ")
    bare.until_ghost("value_of(x)")
    bare.type("<Esc>")
    assert f"program: {storage(bare)}/" in bare.health()
    assert "which :CalomelInstall installed" in bare.text()


def test_a_program_on_the_path_comes_first_and_an_installation_says_so(bare: Neovim, uv: FakeUv, wheel: Path) -> None:
    planted(storage(bare), "0.0.9", ["false"])
    program = planted(bare.folder / "elsewhere", "", SCRIPTED)
    bare.lua("vim.env.PATH = ...", f"{program.parent}:{uv.bin}")
    setup(bare)
    bare.open("\n")
    assert bare.messages() == []
    said = bare.health()
    assert f"program: {program}\n" in said
    assert "the server installed by :CalomelInstall is not used" in said
    uv.installs(SCRIPTED)
    bare.command(f"CalomelInstall {wheel}")
    until_said(bare, f"Neovim starts {program} instead; remove it, or set `cmd` to {storage(bare)}/")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["error: no space", "left on device"], "the installation failed: left on device"),
        (["Caused by: dns error: failed to lookup", "hint: try later"], OFFLINE),
    ],
    ids=["failed", "offline"],
)
def test_what_went_wrong_is_said_and_nothing_is_left(
    bare: Neovim, uv: FakeUv, lines: list[str], said: str, wheel: Path
) -> None:
    uv.fails(*lines)
    setup(bare)
    bare.command(f"CalomelInstall {wheel}")
    message = until_said(bare, said)
    log = Path(message.rpartition("(")[2].rstrip(")"))
    assert lines[-1] in log.read_text(encoding="utf-8")
    assert list(storage(bare).iterdir()) == []


def test_it_can_be_stopped(bare: Neovim, uv: FakeUv, wheel: Path) -> None:
    setup(bare)
    bare.command(f"CalomelInstall {wheel}")
    bare.until(uv.asked, "it is asked")
    bare.until(lambda: str(wheel) in uv.asked()[-1], "it installs")
    bare.command(f"CalomelInstall {wheel}")
    until_said(bare, "an installation is running")
    bare.command("CalomelInstall!")
    until_said(bare, "installation cancelled")
    assert list(storage(bare).iterdir()) == []


def test_another_version_is_named_and_updated_and_serves_until_then(bare: Neovim, uv: FakeUv, wheel: Path) -> None:
    old = planted(storage(bare), "0.0.9", SCRIPTED)
    setup(bare)
    until_said(bare, f"the server has version 0.0.9, this plugin {version()}; :CalomelInstall updates it")
    bare.open("\n")
    (before,) = bare.lua("return vim.api.nvim_get_proc_children(vim.fn.getpid())")
    uv.installs(SCRIPTED)
    bare.command(f"CalomelInstall {wheel}")
    bare.until(lambda: before not in bare.lua("return vim.api.nvim_get_proc_children(vim.fn.getpid())"), "it ends")
    bare.until(bare.is_served, "the new one serves")
    assert uv.asked()[-1].endswith(f" {wheel}[engine,llama]")
    assert bare.lua("return require('calomel.config').current.cmd[1]") != str(old)


def test_a_python_that_suits_will_do_and_without_one_a_sentence_says_what_to_get(
    bare: Neovim, uv: FakeUv, wheel: Path
) -> None:
    setup(bare)
    python = uv.bin / "python3"
    (uv.bin / "uv").rename(python)
    python.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    bare.command(f"CalomelInstall {wheel}")
    until_said(bare, "neither uv nor a Python from 3.11 to 3.13")
    log = bare.folder / "asked"
    python.write_text(
        f"#!/bin/sh\nPATH=/usr/bin:/bin\necho $* >> {log}\n"
        "[ $2 = venv ] && mkdir -p $3/bin && cp $0 $3/bin/python\n[ $2 = pip ] && cp $0 ${0%/*}/calomel\nexit 0\n",
        encoding="utf-8",
    )
    bare.command(f"CalomelInstall {wheel}")
    until_said(bare, "of the server is installed")
    _, venv, pip, *_ = log.read_text(encoding="utf-8").splitlines()
    assert venv.startswith("-m venv ")
    assert pip.startswith("-m pip install ")


@pytest.mark.parametrize("named", ["/gone/calomel-1-py3-none-any.whl", "http://example.org/calomel-1-py3-none-any.whl"])
def test_a_wheel_that_is_none_is_refused(bare: Neovim, uv: FakeUv, named: str) -> None:
    setup(bare)
    bare.command(f"CalomelInstall {named}")
    until_said(bare, f"{named} is not a Calomel wheel")
    assert uv.asked() == []
