"""The whole of it: VS Code, the extension, the language server, the model's server and the shipped weights."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from tests.editors.neovim.test_model import end_model_servers
from tests.editors.vscode.workbench import START_SECONDS, Workbench
from tests.lsp.program import REAL

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# The shipped model is small and often silent, so there are several places; one that it fills is enough.
PLACES = (
    "import os\nimport sys\n\n\ndef main():\n    print(sys.argv",
    "for i in range(10):\n    print",
    "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return",
    "try:\n    run()\nexcept",
    "class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.y",
)
# A parameter was renamed by hand: of what the shipped model gets right, this is the plainest.
RENAMED = """\
def distance(points):
    total = 0
    for point in items:
        total += abs(point)
    return total / len(items)
"""
ANSWER_SECONDS = 8.0


def test_types_sees_ghost_text_and_a_next_edit_and_accepts_both(start: Callable[..., Workbench]) -> None:
    workbench = start(command=REAL, settings={"calomel.suggest.aggressiveness": "eager"})
    try:
        # Loading the weights on a busy machine.
        workbench.seconds = START_SECONDS
        workbench.until(lambda: workbench.status()[0] == "Calomel", "the model is ready")
        assert any(takes(workbench, text) for text in PLACES), workbench.report()
        workbench.until(lambda: workbench.outcomes().count("accepted") == 1, "the server knows of it")

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
        for _ in range(4):
            if workbench.saved() == RENAMED.replace("items", "points"):
                break
            workbench.until(workbench.decorations, "the next edit")
            workbench.press("Tab")
            time.sleep(1)
        workbench.until_saved(RENAMED.replace("items", "points"))
    finally:
        end_model_servers(workbench.folder / "runtime")


def takes(workbench: Workbench, text: str) -> bool:
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
