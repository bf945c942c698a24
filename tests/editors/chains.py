"""`python -m tests.editors.chains neovim --count 100`: chains of edits, each followed by two Tabs too many.

In a real editor with a scripted model: Tab until every edit is accepted, then two more, 0.1 s apart. Prints how often
the text stayed as it was, and how often a Tab half a second later indents.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.editors.neovim import test_tab as in_neovim
from tests.editors.neovim.neovim import Neovim
from tests.editors.programs import EXTENSION, find_neovim, find_programs
from tests.editors.shared import APART, PAUSE, Chain
from tests.editors.vscode import test_tab as in_vscode
from tests.editors.vscode.workbench import START_SECONDS, Workbench

# Plays a chain; what the editor's text is behind the two Tabs, and behind one more, later.
Play = Callable[[Chain], tuple[str, str]]


@contextmanager
def neovim(folder: Path) -> Iterator[Play]:
    program, reason = find_neovim()
    if program is None:
        raise SystemExit(reason)
    with Neovim(program, folder) as editor:
        editor.setup()

        def play(chain: Chain) -> tuple[str, str]:
            editor.files = Path(tempfile.mkdtemp(dir=folder))
            last = in_neovim.taken(editor, chain)
            for number in (1, 2):
                in_neovim.press(editor, "<Tab>", last + number * APART)
            after = editor.text() + "\n"
            in_neovim.press(editor, "<Tab>", last + 2 * APART + PAUSE)
            later = editor.text() + "\n"
            editor.clean_up()
            return after, later

        yield play


@contextmanager
def vscode(folder: Path) -> Iterator[Play]:
    programs, reason = find_programs()
    if programs is None:
        raise SystemExit(reason)
    vsix = folder / "calomel.vsix"
    subprocess.run([programs.node, EXTENSION / "scripts" / "package.mjs", vsix], check=True, capture_output=True)
    # Where the menu is open, Tab is the menu's.
    with Workbench(programs, vsix, folder, settings={"editor.quickSuggestions": False}) as editor:
        seconds, editor.seconds = editor.seconds, START_SECONDS
        editor.warm_up()
        editor.seconds = seconds

        def play(chain: Chain) -> tuple[str, str]:
            last = in_vscode.taken(editor, chain)
            for number in (1, 2):
                in_vscode.press(editor, "Tab", last + number * APART)
            # What was written by then is saved.
            time.sleep(PAUSE)
            after = editor.saved()
            editor.press("Tab")
            time.sleep(PAUSE)
            later = editor.saved()
            editor.close_all()
            return after, later

        yield play


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("editor", choices=("neovim", "vscode"))
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    opened = {"neovim": neovim, "vscode": vscode}[options.editor]
    same = indented = 0
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as play:
        for seed in range(options.count):
            chain = Chain.drawn(seed)
            after, later = play(chain)
            same += after == chain.done
            indented += later.replace(" ", "").replace("\t", "") == chain.done.replace(" ", "") and later != after
            if after != chain.done:
                print(f"{seed}: {after!r}, not {chain.done!r}")  # noqa: T201 (its output)
    print(f"unchanged {same} of {options.count}; a later Tab indents {indented} of {options.count}")  # noqa: T201


if __name__ == "__main__":
    main()
