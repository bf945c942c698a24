"""Neovim with the language server and the server as they ship, and a real llama.cpp behind them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.programs import find_neovim, wanted
from tests.editors.shared import no_server_stays
from tests.lsp.program import REAL
from tests.server._llama_cpp import Llama

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_one_setting_brings_the_suggestions_of_a_llama_cpp_that_runs_already(tmp_path: Path) -> None:
    program = wanted(find_neovim())
    llama = Llama(tmp_path)
    upstream = {"upstream": llama(says="count"), "idle_minutes": 1.0}
    try:
        with Neovim(program, tmp_path) as neovim, no_server_stays(tmp_path):
            neovim.seconds = 60.0
            neovim.setup(command=REAL, server={"server": upstream, "suggest": {"debounce_seconds": 0.0}})
            neovim.open("def f(count):\n    \n")
            neovim.type("jAreturn ")
            neovim.until_ghost("count")
            neovim.type("<Tab>")
            neovim.until_text("def f(count):\n    return count")
    finally:
        llama.end()
