"""`calomel demo`: a recording is typed, and the shipped model suggests along with it, on a terminal or line by line."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from calomel.cli.errors import CommandError, InputError, check_device, engine_errors_reported
from calomel.cli.fill import visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.text import Text

    from calomel.cli.tour import Piece, Scene, Tally, View, WallPace, WatchedFiller
    from calomel.replay.events import ReplayLog
    from calomel.replay.opportunity import ReplayOptions
    from calomel.suggest.completer import CanvasText, ModelInfo


# On the log's clock, so that a slow machine shows what a fast one does: an answer, and a pause in the typing.
_LATENCY: Final = 0.1
_DEBOUNCE: Final = 0.15
# Where nobody looks on, only as much as somebody reads.
_PLAIN_SECONDS: Final = 10.0


def demo(
    log: Annotated[
        Path | None, typer.Argument(metavar="LOG", help="A log that `calomel replay` reads. Default: the bundled one.")
    ] = None,
    speed: Annotated[float, typer.Option(min=0.1, max=100, help="Times as fast as the recording.")] = 2.0,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="End after so long. Default: at the end; 10 without a terminal.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, max=64, help="Denoising steps of a canvas; editors take 2.")] = 8,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a picture, as without a terminal.")] = False,
    model: Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    aggressiveness: Annotated[
        str, typer.Option(metavar="quiet|balanced|eager|P", help="How sure the model must be.")
    ] = "balanced",
) -> None:
    """Play a recording of typing, and show what the model suggests and what the person does about it."""
    from rich.console import Console
    from rich.live import Live

    from calomel.cli.replay import aggressiveness_of
    from calomel.replay.events import Opened
    from calomel.replay.opportunity import ReplayOptions

    found = open_log(log)
    options = ReplayOptions(
        model=model,
        device=device,
        latency=_LATENCY,
        debounce_seconds=_DEBOUNCE,
        aggressiveness=aggressiveness_of(aggressiveness),
    )
    out = Console(highlight=False, soft_wrap=True)
    plain = plain or not out.is_terminal
    with engine_errors_reported():
        from calomel.cli.tour import WallPace, WatchedFiller
        from calomel.suggest.in_process import open_filler
        from calomel.suggest.launch import describe

        check_device(device)
        info = describe(model)
        with closing(WatchedFiller(open_filler(model, device), steps)) as watched:
            documents = ", ".join(dict.fromkeys(event.document for event in found.events if isinstance(event, Opened)))
            out.print(
                f"A person edits {documents}; {info.id} suggests along. The text is the recording's in any case.\n"
                "By canvas: the model's own words. By any other name: a draft out of the last edits, found likely."
            )
            limit = _PLAIN_SECONDS if plain and seconds is None else seconds
            pace = WallPace(None if plain else speed, None if limit is None else time.monotonic() + limit)
            if plain:
                lines = PlainView(lambda line: out.print(line, markup=False))
                tally = _played(found, watched, info, options, lines, pace)
            else:
                with Live(console=out, auto_refresh=False) as live:
                    tally = _played(found, watched, info, options, TerminalView(live, out), pace)
    silent = sum(tally.silent.values())
    out.print(
        f"Shown {tally.shown}: accepted {tally.accepted}, partly {tally.partly}, rejected {tally.rejected}; "
        f"silent {silent}. The model ran on this machine, and nothing left it."
    )


def _played(
    log: ReplayLog, watched: WatchedFiller, info: ModelInfo, options: ReplayOptions, view: View, pace: WallPace
) -> Tally:
    """Play it until its end, the time's end, or Ctrl-C."""
    from calomel.cli.tour import OverError, Tally, Tour
    from calomel.replay.log_time import StuckError, run
    from calomel.suggest.in_process import EngineCompleter

    tour: Tour | None = None

    async def play() -> None:
        nonlocal tour
        tour = Tour(log, EngineCompleter(watched, info), info, options, watched=watched, view=view, rest=pace.rest)
        try:
            await tour.play()
        except OverError:
            await tour.suggester.aclose()

    try:
        run(play())
    except KeyboardInterrupt:
        # Whoever has seen enough has done nothing wrong.
        pass
    except StuckError as error:
        raise CommandError(str(error)) from error
    return Tally() if tour is None else tour.tally


def open_log(path: Path | None) -> ReplayLog:
    """The log at `path`; None for the bundled one. Raises InputError when nothing of it can be read."""
    from calomel.replay.events import LogError
    from calomel.replay.logs import read_logs

    try:
        if path is None:
            with as_file(files("calomel.cli").joinpath("recordings", "inventory.recording.json")) as bundled:
                return read_logs(bundled)[0]
        found = read_logs(path)
    except LogError as error:
        raise InputError(str(error)) from error
    if not found:
        raise InputError(f"{path} holds no log")
    return found[0]


_BRACKETS: Final = {"new": "⟦{}⟧", "old": "⟨{}⟩"}


class PlainView:
    """Each suggestion with its lines, its canvases and what became of it.

    What is suggested stands in ⟦⟧, what it replaces in ⟨⟩.

    Args:
        write: takes lines.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._canvases: list[str] = []

    def show(self, scene: Scene, tally: Tally) -> None:  # noqa: ARG002 (what a terminal shows besides)
        """Keep the canvases until it is known what became of them."""
        if scene.canvas is None:
            self._canvases = []
        elif not scene.edits:
            self._canvases.append(scene.canvas.text)

    def tell(self, scene: Scene) -> None:
        """Write it down."""
        likely = "" if scene.likely is None else f"{scene.likely:.0%} likely · "
        self._write(f"{scene.place()}  {likely}by {scene.maker or 'the model'} in {scene.milliseconds:.0f} ms")
        for step, canvas in enumerate(self._canvases, 1):
            self._write(f"    step {step}  {_one_line(canvas)}")
        for line in suggested_lines(scene.pieces()):
            self._write(f"    {line}")
        self._write(f"    {scene.said}")
        self._canvases = []


def suggested_lines(pieces: Sequence[Piece]) -> Sequence[str]:
    """The lines that a suggestion touches, with its marks."""
    text = "".join(_BRACKETS.get(piece.mark, "{}").format(visible(piece.text)) for piece in pieces)
    lines = text.split("\n")
    touched: list[str] = []
    inside = False
    for line in lines:
        if inside or any(mark in line for mark in "⟦⟨"):
            touched.append(line.rstrip())
        opened, closed = max(line.rfind(mark) for mark in "⟦⟨"), max(line.rfind(mark) for mark in "⟧⟩")
        inside = opened > closed or (inside and closed < 0)
    return touched


def _one_line(canvas: str) -> str:
    return visible(canvas).replace("\n", "⏎")


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
