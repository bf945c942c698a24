"""What commands print and write: consoles, text without terminal escape sequences, and a file's excerpts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from calomel.cli.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

FILL_STYLE: Final = "bold green"

# A model can write any byte, and an escape sequence would control the terminal: control characters become pictures.
_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_VISIBLE = {code: picture for code, picture in _PICTURES.items() if chr(code) not in "\n\t"}


def console(*, stderr: bool = False, wrap: bool = False) -> Console:
    """A console that takes text literally; without `wrap`, long lines, such as those of a file, are not broken."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=not wrap)


def visible(text: str) -> str:
    """The text with control characters as pictures and plain line ends."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def columns(rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells, each column as wide as its widest cell."""
    rows = list(rows)
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return "\n".join("  ".join(row).rstrip() for row in padded)


def markdown(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    cells = [titles, ["---"] * len(titles), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def excerpt(
    out: Console, prefix: str, middle: str, suffix: str, *, style: str = FILL_STYLE, before: int = 6, after: int = 4
) -> Text:
    """`middle` between the last `before` lines of `prefix` and the first `after` lines of `suffix`, numbered.

    The middle is coloured, or in ⟦⟧ if the console has no colours or there is nothing to colour.
    """
    from rich.text import Text

    prefix, middle, suffix = map(visible, (prefix, middle, suffix))
    head, tail = prefix.split("\n"), suffix.split("\n")
    marked = middle if out.color_system and middle.strip() else f"⟦{middle}⟧"
    text = Text("\n".join(head[-before - 1 :])).append(marked, style).append("\n".join(tail[: after + 1]))
    text.rstrip()
    text.expand_tabs(4)
    return numbered(text, max(1, len(head) - before))


def numbered(text: Text, first: int, rule: str = " │ ") -> Text:
    """The lines of a text, each after its number."""
    from rich.text import Text

    lines = text.split("\n", allow_blank=True)
    width = len(str(first + len(lines) - 1))
    rows = (Text.assemble((f"{number:>{width}}{rule}", "dim"), line) for number, line in enumerate(lines, first))
    return Text("\n").join(rows)


def check_folders(*paths: Path | None) -> None:
    """Raise InputError for a file whose folder does not exist, before any work is done for it."""
    for path in paths:
        if path is not None and not path.resolve().parent.is_dir():
            raise InputError(f"cannot write {path}: its folder does not exist")
