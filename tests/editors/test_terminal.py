from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.editors.terminal import Screen, Terminal


def screen(text: str, lines: int = 3, columns: int = 8) -> list[str]:
    shown = Screen(lines, columns)
    # Pieces, however they arrive.
    for character in text:
        shown.feed(character)
    return shown.lines()


def test_text_stands_where_it_was_put() -> None:
    assert screen("ab\r\ncd\x1b[3;4Hef\x1b[1;1HA") == ["Ab", "cd", "   ef"]


def test_what_is_cleared_is_gone() -> None:
    assert screen("abcdef\x1b[1;3H\x1b[K") == ["ab", "", ""]
    assert screen("ab\r\ncd\r\nef\x1b[2;2H\x1b[J") == ["ab", "c", ""]
    assert screen("ab\r\ncd\x1b[2Jx") == ["", "  x", ""]


def test_colours_modes_and_titles_are_no_text() -> None:
    assert screen("\x1b[?1049h\x1b[38;2;1;2;3ma\x1b]0;title\x07b\x1b[0m\x1b(Bc\x1b=") == ["abc", "", ""]


def test_a_program_has_the_terminal_for_its_own(tmp_path: Path) -> None:
    code = "import os; print(open('/dev/tty').isatty(), os.get_terminal_size().lines); input(); print('read')"
    with Terminal([sys.executable, "-c", code], tmp_path, dict(os.environ)) as terminal:
        terminal.until(lambda: "True 40" in terminal.lines()[0], "what the program says")
        terminal.write("\r")
        terminal.until(lambda: "read" in terminal.lines(), "what it says then")
