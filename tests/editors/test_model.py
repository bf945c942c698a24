"""The whole of it: an editor, the language server, the model's server and the shipped weights."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.shared import PLACES, no_server_stays
from tests.editors.vscode.workbench import Workbench
from tests.lsp.program import REAL

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_neovim_shows_ghost_text_accepts_it_and_the_buffer_holds_it(bare: Neovim) -> None:
    bare.setup(command=REAL, server={"suggest": {"aggressiveness": "eager"}, "server": {"idle_minutes": 1.0}})
    with no_server_stays(bare.folder):
        # Loading the weights on a busy machine.
        bare.seconds = 120.0
        bare.open("")
        with bare.learns("accepted"):
            assert any(neovim_takes(bare, before, behind) for before, behind in PLACES), bare.status()
        bare.holds(bare.text())


def neovim_takes(neovim: Neovim, before: str, behind: str) -> bool:
    """Type the end of `before`, and take what is suggested; False if that is nothing."""
    typed, rest = before[-3:], behind.rstrip("\n")
    neovim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, vim.split(..., '\\n'))", before[:-3] + rest)
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
    assert neovim.text() == before + ghost + rest
    return True


# A parameter was renamed by hand: of what the shipped model gets right, this is the plainest.
RENAMED = """\
def distance(points):
    total = 0
    for point in items:
        total += abs(point)
    return total / len(items)
"""
# Words that are typed to their ends.
TEXTS = (
    "import os\nimport sys\n\n\ndef main():\n    print(sys.argv",
    "for i in range(10):\n    print",
    "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return",
    "try:\n    run()\nexcept",
    "class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.y",
)
ANSWER_SECONDS = 8.0


def test_vs_code_shows_ghost_text_and_a_next_edit_and_accepts_both(start: Callable[..., Workbench]) -> None:
    workbench = start(command=REAL, settings={"calomel.suggest.aggressiveness": "eager"})
    with no_server_stays(workbench.folder):
        workbench.until_status("Calomel")
        with workbench.learns("accepted"):
            assert any(workbench_takes(workbench, text) for text in TEXTS), workbench.report()

        workbench.set({"calomel.suggest.aggressiveness": "balanced"})
        workbench.open(RENAMED.replace("(points)", "(items)"))
        workbench.go(1, 14)
        workbench.press("Control+Shift+ArrowRight")
        workbench.type("points")
        if workbench.is_ghostly(ANSWER_SECONDS):
            # Text for the cursor comes first; an edit is asked for where the cursor goes next.
            workbench.press("Escape", "ArrowDown")
        workbench.until(workbench.decorations, "a next edit")
        assert set(workbench.struck()) <= {"items", "itemsitems"}
        done = RENAMED.replace("items", "points")
        for _ in range(4):
            if workbench.saved() == done:
                break
            workbench.until(workbench.decorations, "the next edit")
            workbench.press("Tab")
            time.sleep(1)
        workbench.until_saved(done)


def workbench_takes(workbench: Workbench, text: str) -> bool:
    """Type the end of a text, and take what is suggested; False if that is nothing."""
    workbench.open(text[:-3] + "\n")
    lines = text.split("\n")
    workbench.go(len(lines), len(lines[-1]) - 2)
    workbench.type(text[-3:])
    if not workbench.is_ghostly(ANSWER_SECONDS):
        return False
    ghost = workbench.ghost()
    workbench.press("Tab")
    workbench.until_saved(f"{text}{ghost}\n")
    return True
