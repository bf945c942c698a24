"""A filled hole with a few lines around it, for a terminal or for a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # rich takes a third of the time of `calomel --help` to import.
    from rich.console import Console
    from rich.text import Text

FILL_STYLE = "bold green"
HOLE_STYLE = "bold yellow"

# A model can write any byte, and an escape sequence would reach the terminal: control characters become pictures.
_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_VISIBLE = {code: picture for code, picture in _PICTURES.items() if chr(code) not in "\n\t"}


def excerpt(
    console: Console, prefix: str, middle: str, suffix: str, *, style: str = FILL_STYLE, before: int = 6, after: int = 4
) -> Text:
    """`middle` between the last `before` lines of `prefix` and the first `after` lines of `suffix`, numbered.

    The middle is coloured, and stands in ⟦⟧ where the console has no colours or there is nothing to colour.
    """
    from rich.text import Text

    prefix, middle, suffix = map(visible, (prefix, middle, suffix))
    head, tail = prefix.split("\n"), suffix.split("\n")
    shown_head, shown_tail = "\n".join(head[-before - 1 :]), "\n".join(tail[: after + 1])
    marked = middle if console.color_system and middle.strip() else f"⟦{middle}⟧"
    text = Text(shown_head)
    text.append(marked, style)
    text.append(shown_tail)
    text.rstrip()
    text.expand_tabs(4)
    first = max(1, len(head) - before)
    lines = text.split("\n", allow_blank=True)
    width = len(str(first + len(lines) - 1))
    out = Text()
    for number, line in enumerate(lines, first):
        out.append(f"{number:>{width}} │ ", "dim")
        out.append_text(line)
        out.append("\n")
    out.rstrip()
    return out


def visible(text: str) -> str:
    """The text with control characters as pictures and plain line ends."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)
