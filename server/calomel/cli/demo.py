"""`calomel demo`: a recording is typed, and the shipped model suggests along with it."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from calomel.cli.device import check_device
from calomel.cli.errors import CommandError, engine_errors_reported

if TYPE_CHECKING:
    from rich.console import Console

    from calomel.cli.stage.pace import WallPace
    from calomel.cli.stage.scene import Tally
    from calomel.cli.stage.tour import View
    from calomel.cli.stage.watched_filler import WatchedFiller
    from calomel.replay.events import ReplayLog
    from calomel.replay.opportunity import ReplayOptions
    from calomel.suggest.completer import ModelInfo

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

    from calomel.cli.replay import aggressiveness_of
    from calomel.cli.stage.bundled import open_log
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
        from calomel.cli.stage.watched_filler import WatchedFiller
        from calomel.suggest.model_info import describe
        from calomel.suggest.opening import open_filler

        check_device(device)
        info = describe(model)
        with closing(WatchedFiller(open_filler(model, device), steps)) as watched:
            limit = _PLAIN_SECONDS if plain and seconds is None else seconds
            out.print(
                f"A person edits {_files(found)}; {info.id} suggests along. The text is the recording's in any case.\n"
                "By canvas: the model's own words. By any other name: a draft out of the last edits, found likely."
            )
            tally = _shown(found, watched, info, options, out, None if plain else speed, limit)
    silent = sum(tally.silent.values())
    out.print(
        f"Shown {tally.shown}: accepted {tally.accepted}, partly {tally.partly}, rejected {tally.rejected}; "
        f"silent {silent}. The model ran on this machine, and nothing left it."
    )


def _files(log: ReplayLog) -> str:
    from calomel.replay.events import Opened

    return ", ".join(dict.fromkeys(event.document for event in log.events if isinstance(event, Opened)))


def _shown(
    log: ReplayLog,
    watched: WatchedFiller,
    info: ModelInfo,
    options: ReplayOptions,
    out: Console,
    speed: float | None,
    seconds: float | None,
) -> Tally:
    """Play it until its end, the time's end, or Ctrl-C."""
    from rich.live import Live

    from calomel.cli.stage.pace import WallPace
    from calomel.cli.stage.plain import PlainView
    from calomel.cli.stage.terminal import TerminalView

    pace = WallPace(speed, None if seconds is None else time.monotonic() + seconds)
    if speed is None:
        return _played(log, watched, info, options, PlainView(lambda line: out.print(line, markup=False)), pace)
    with Live(console=out, auto_refresh=False) as live:
        return _played(log, watched, info, options, TerminalView(live, out), pace)


def _played(
    log: ReplayLog, watched: WatchedFiller, info: ModelInfo, options: ReplayOptions, view: View, pace: WallPace
) -> Tally:
    from calomel.cli.stage.tour import OverError, Tour
    from calomel.replay.log_time import StuckError, run
    from calomel.suggest.in_process import EngineCompleter

    tours: list[Tour] = []

    async def play() -> None:
        tour = Tour(log, EngineCompleter(watched, info), info, options, watched=watched, view=view, pace=pace)
        tours.append(tour)
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
    return tours[0].tally
