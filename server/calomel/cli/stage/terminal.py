"""Shows a demonstration on a terminal: the file on the left, what is known about the suggestion beside or below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from calomel.cli.excerpt import visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.text import Text

    from calomel.cli.stage.scene import Scene, Tally
    from calomel.suggest.canvas_text import CanvasText

_STYLES: Final = {"new": "italic green", "old": "strike red", "caret": "reverse"}
_OUTCOME_STYLES: Final = {"accepted": "bold green", "partly": "green", "rejected": "yellow", "too_short": "dim"}
# Beside the file where a line of it still has room there, else below.
_BESIDE: Final = 100
_SIDE: Final = 38
_SIDE_LINES: Final = 13
_MOST_LINES: Final = 26
_BAR: Final = 20


class TerminalView:
    """Draws each scene in the place of the one before.

    Args:
        live: of rich; started and stopped by whoever made it.
        console: that it draws on.
    """

    def __init__(self, live: Live, console: Console) -> None:
        self._live = live
        self._console = console

    def show(self, scene: Scene, tally: Tally) -> None:
        """Draw a moment."""
        self._live.update(picture(scene, tally, self._console.width, self._console.height), refresh=True)

    def tell(self, scene: Scene) -> None:
        """Nothing: it was seen."""


def picture(scene: Scene, tally: Tally, width: int, height: int) -> RenderableType:
    """A scene for a terminal of so many columns and lines."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.panel import Panel

    beside = width >= _BESIDE
    room = max(6, min(_MOST_LINES, height - (4 if beside else _SIDE_LINES + 6)))
    file = Panel(
        _file(scene, room),
        title=scene.path,
        title_align="left",
        width=width - _SIDE - 1 if beside else width,
        height=room + 2,
        border_style="dim",
    )
    side = Panel(
        _side(scene, tally),
        title="calomel",
        title_align="left",
        width=_SIDE if beside else width,
        height=room + 2 if beside else _SIDE_LINES + 2,
        border_style="dim",
    )
    return Columns([file, side], padding=(0, 1, 0, 0)) if beside else Group(file, side)


def _file(scene: Scene, room: int) -> Text:
    """As many lines as there is room for, the caret's and the suggestion's among them, numbered."""
    from rich.text import Text

    text = Text(no_wrap=True, overflow="ellipsis")
    for piece in scene.pieces():
        # A caret between two characters, or at a line's end, has to have a width to be seen.
        shown = visible(piece.text) or (" " if piece.mark == "caret" else "")
        text.append(shown, _STYLES.get(piece.mark, ""))
    text.expand_tabs(4)
    lines = text.split("\n", allow_blank=True)
    first, last = scene.focus()
    begin = max(0, min((first + last) // 2 - room // 2, len(lines) - room))
    # What is far below the caret comes into sight from above.
    if last - begin >= room:
        begin = max(0, last - room + 1)
    width = len(str(len(lines)))
    out = Text(no_wrap=True, overflow="ellipsis")
    for number, line in enumerate(lines[begin : begin + room], begin + 1):
        out.append(f"{number:>{width}} ", "dim")
        out.append_text(line)
        out.append("\n")
    out.rstrip()
    return out


def _side(scene: Scene, tally: Tally) -> Text:
    from rich.text import Text

    out = Text()
    out.append(
        f"{visible(scene.said)}\n" if scene.said else "the person types\n", _OUTCOME_STYLES.get(scene.outcome, "")
    )
    out.append("\n")
    if scene.canvas is not None:
        out.append(f"canvas, step {scene.canvas.step} of {scene.steps}\n", "dim")
        out.append_text(_canvas(scene.canvas))
        out.append("\n")
    if scene.likely is not None:
        filled = round(_BAR * scene.likely)
        out.append("█" * filled, "green")
        out.append("░" * (_BAR - filled), "dim")
        out.append(f" {scene.likely:.0%} likely\n")
    if scene.edits:
        out.append(f"by {scene.maker or 'the model'}, {scene.milliseconds:.0f} ms, at {scene.place()}\n", "dim")
    out.append("\n")
    out.append(
        f"shown {tally.shown}: accepted {tally.accepted}, partly {tally.partly}, rejected {tally.rejected}\n", "dim"
    )
    silent = sum(tally.silent.values())
    if silent:
        reason, count = max(tally.silent.items(), key=lambda pair: pair[1])
        out.append(f"silent {silent}, mostly {reason} ({count})\n", "dim")
    out.append("Ctrl-C ends", "dim")
    return out


def _canvas(canvas: CanvasText) -> Text:
    """Token by token: what is fixed, and what may still change."""
    from rich.text import Text

    out = Text()
    for piece, revealed in zip(canvas.pieces, canvas.revealed, strict=True):
        out.append(visible(piece).replace("\n", "⏎"), "green" if revealed else "dim")
    return out
