"""`calomel demo`: a recording is typed, and the shipped model suggests along with it, on a terminal or line by line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from calomel.cli.errors import InputError
from calomel.cli.options import Aggressiveness, Device, Model
from calomel.cli.output import console, numbered, visible

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from calomel.cli.tour import Piece, Scene, Tally
    from calomel.replay.events import ReplayLog


# On the log's clock, so that a slow machine shows what a fast one does: an answer, and a pause in the typing.
_LATENCY: Final = 0.1
_DEBOUNCE: Final = 0.15
# Where nobody looks on, only as much as somebody reads.
_PLAIN_SECONDS: Final = 10.0


def demo(
    log: Annotated[Path | None, typer.Argument(help="A log for `calomel replay`. Default: a bundled one.")] = None,
    speed: Annotated[float, typer.Option(min=0.1, max=100, help="Times as fast as the recording.")] = 2.0,
    seconds: Annotated[float | None, typer.Option(min=0, help="End after so long; 10 without a terminal.")] = None,
    steps: Annotated[int, typer.Option(min=1, max=64, help="Denoising steps of a canvas; editors take 2.")] = 8,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a picture, as without a terminal.")] = False,
    model: Model = None,
    device: Device = "cpu",
    aggressiveness: Aggressiveness = "balanced",
) -> None:
    """Play a recording of typing, and show what the model suggests and what the person does about it."""
    from rich.live import Live

    from calomel.cli.tour import Tally, Tour, WatchedFiller, resting
    from calomel.replay.events import Opened
    from calomel.replay.log_time import run
    from calomel.replay.opportunity import ReplayOptions
    from calomel.suggest.in_process import EngineCompleter, open_filler
    from calomel.suggest.launch import describe

    found = open_log(log)
    options = ReplayOptions(
        model=model, device=device, latency=_LATENCY, debounce_seconds=_DEBOUNCE, aggressiveness=aggressiveness
    )
    out = console()
    plain = plain or not out.is_terminal
    info = describe(model)
    with closing(WatchedFiller(open_filler(model, device), steps)) as watched, ExitStack() as stack:
        documents = ", ".join(dict.fromkeys(event.document for event in found.events if isinstance(event, Opened)))
        out.print(
            f"A person edits {documents}; {info.id} suggests along. The text is the recording's in any case.\n"
            "By canvas: the model's own words. By any other name: a draft out of the last edits, found likely."
        )
        live = None if plain else stack.enter_context(Live(console=out, auto_refresh=False))

        def show(scene: Scene, tally: Tally) -> None:
            if live is not None:
                live.update(picture(scene, tally, out.width, out.height), refresh=True)
            elif scene.outcome:
                out.print("\n".join(told(scene)))

        limit = _PLAIN_SECONDS if plain and seconds is None else seconds
        rest = resting(None if plain else speed, None if limit is None else time.monotonic() + limit)
        tally = Tally()

        async def play() -> None:
            completer = EngineCompleter(watched, info)
            tour = Tour(found, completer, info, options, tally, watched=watched, show=show, rest=rest)
            await tour.watch()

        # Whoever has seen enough has done nothing wrong.
        with suppress(KeyboardInterrupt):
            run(play())
    out.print(f"{str(tally).capitalize()}; silent {tally.silent.total()}. The model ran here, and nothing left it.")


def open_log(path: Path | None) -> ReplayLog:
    """The log at `path`; None for the bundled one. Raises LogError or InputError when nothing of it can be read."""
    from calomel.replay.logs import read_logs

    if path is None:
        with as_file(files("calomel.cli").joinpath("recordings", "inventory.recording.json")) as bundled:
            return read_logs(bundled)[0]
    found = read_logs(path)
    if not found:
        raise InputError(f"{path} holds no log")
    return found[0]


_BRACKETS: Final = {"new": "⟦{}⟧", "old": "⟨{}⟩"}


def told(scene: Scene) -> list[str]:
    """A suggestion in lines: who made it, its canvases, the lines that it touches, and what became of it.

    What is suggested stands in ⟦⟧, what it replaces in ⟨⟩.
    """
    likely = "" if scene.likely is None else f"{scene.likely:.0%} likely · "
    lines = [f"{scene.place()}  {likely}by {scene.maker or 'the model'} in {scene.milliseconds:.0f} ms"]
    lines += [f"    step {step}  {_one_line(each.text)}" for step, each in enumerate(scene.canvases, 1)]
    lines += [f"    {line}" for line in suggested_lines(scene.pieces())]
    return [*lines, f"    {scene.said}"]


def suggested_lines(pieces: Sequence[Piece]) -> Sequence[str]:
    """The lines that a suggestion touches, with its marks."""
    text = ""
    touched: set[int] = set()
    for piece in pieces:
        first = text.count("\n")
        text += _BRACKETS.get(piece.mark, "{}").format(visible(piece.text))
        if piece.mark in _BRACKETS:
            touched.update(range(first, text.count("\n") + 1))
    return [line.rstrip() for number, line in enumerate(text.split("\n")) if number in touched]


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


def picture(scene: Scene, tally: Tally, width: int, height: int) -> RenderableType:
    """A scene for a terminal of so many columns and lines."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.panel import Panel

    beside = width >= _BESIDE
    room = max(6, min(_MOST_LINES, height - (4 if beside else _SIDE_LINES + 6)))
    frame = partial(Panel, title_align="left", border_style="dim")
    wide, high = (width - _SIDE - 1, room) if beside else (width, _SIDE_LINES)
    file = frame(_file(scene, room), title=scene.path, width=wide, height=room + 2)
    side = frame(_side(scene, tally), title="calomel", width=_SIDE if beside else width, height=high + 2)
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
    out = numbered(Text("\n").join(lines[begin : begin + room]), begin + 1, " ")
    out.no_wrap, out.overflow = True, "ellipsis"
    return out


def _side(scene: Scene, tally: Tally) -> Text:
    from rich.text import Text

    out = Text()
    out.append(
        f"{visible(scene.said)}\n" if scene.said else "the person types\n", _OUTCOME_STYLES.get(scene.outcome, "")
    )
    out.append("\n")
    for canvas in scene.canvases[-1:]:
        out.append(f"canvas, step {canvas.step} of {scene.steps}\n", "dim")
        # Token by token: what is fixed, and what may still change.
        for piece, revealed in zip(canvas.pieces, canvas.revealed, strict=True):
            out.append(_one_line(piece), "green" if revealed else "dim")
        out.append("\n")
    if scene.likely is not None:
        filled = round(_BAR * scene.likely)
        out.append("█" * filled, "green")
        out.append("░" * (_BAR - filled), "dim")
        out.append(f" {scene.likely:.0%} likely\n")
    if scene.edits:
        out.append(f"by {scene.maker or 'the model'}, {scene.milliseconds:.0f} ms, at {scene.place()}\n", "dim")
    out.append("\n")
    out.append(f"{tally}\n", "dim")
    for reason, count in tally.silent.most_common(1):
        out.append(f"silent {tally.silent.total()}, mostly {reason} ({count})\n", "dim")
    out.append("Ctrl-C ends", "dim")
    return out
