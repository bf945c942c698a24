"""The whole of it: Neovim, the language server, the model's server and the shipped weights."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.lsp.program import REAL

from calomel.suggest.runtime_file import read

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# The shipped model is small and often silent, so there are several places; one that it fills is enough.
PLACES = (
    ("import os\nimport sys\n\n\ndef main():\n    print(sys.ar", "\n\n\nif __name__ == '__main__':\n    main()\n"),
    ("def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    ret", "\n\n\ndef mul(a, b):\n    return a * b\n"),
    ("class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.", "\n"),
    ("for i in range(10):\n    pri", "\n"),
    ("import jso", "\n\ndata = json.loads(text)\n"),
    ("try:\n    run()\nexc", "\n    pass\n"),
)


def test_types_sees_ghost_text_accepts_it_and_the_buffer_holds_it(bare: Neovim) -> None:
    bare.setup(command=REAL, server={"suggest": {"aggressiveness": "eager"}, "server": {"idle_minutes": 1.0}})
    try:
        # Loading the weights on a busy machine.
        bare.seconds = 120.0
        bare.open("")
        assert any(takes(bare, before, behind) for before, behind in PLACES), bare.status()
        assert bare.server_text() == bare.text() + "\n"
        bare.until(lambda: bare.outcomes().get("accepted") == 1)
    finally:
        end_model_servers(bare.folder / "runtime")


def end_model_servers(runtime: Path) -> None:
    """A server that was started for the test is not for later."""
    for path in runtime.rglob("*.json"):
        record = read(path)
        if record is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(record.pid, signal.SIGTERM)


def takes(neovim: Neovim, before: str, behind: str) -> bool:
    """Type the end of `before`, and take what is suggested; False if that is nothing."""
    typed = before[-3:]
    neovim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, vim.split(..., '\\n'))", before[:-3] + behind.rstrip("\n"))
    neovim.command(f"{len(before.splitlines())}")
    neovim.type("A" + typed)
    neovim.settle()
    if not neovim.ghost():
        neovim.type("<M-\\>")
        neovim.settle()
    ghost = neovim.ghost()
    if not ghost or neovim.struck():
        neovim.type("<Esc>")
        return False
    neovim.type("<Tab>")
    assert neovim.text() == before + ghost + behind.rstrip("\n")
    return True
