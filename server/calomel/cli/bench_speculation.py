"""`calomel bench speculation`: what the engine does for what is accepted, with second steps guessed and without."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.device import check_device
from calomel.cli.errors import CommandError, InputError, engine_errors_reported


def speculation(
    logs: Annotated[list[Path] | None, typer.Argument(metavar="LOG...", help="Logs to be replayed both ways.")] = None,
    model: Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    threads: Annotated[int | None, typer.Option(min=1, help="Processor threads of the engine.")] = None,
    holes_per_kind: Annotated[int | None, typer.Option(min=4, help="Held-out holes of each kind.")] = None,
    limit_minutes: Annotated[float | None, typer.Option(min=0, help="Only so much of each log's time.")] = None,
    seed: Annotated[int, typer.Option(help="Decides which holes are cut.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A subset, within three minutes.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the figures as JSON to this file.")] = None,
    results: Annotated[
        Path | None, typer.Option(help="Write page and figures into this folder, such as docs/results.")
    ] = None,
) -> None:
    """Steps by what was accepted, with second steps guessed and without, on held-out holes and replays."""
    check_device(device)
    with engine_errors_reported():
        from calomel.bench.heldout import BenchDataError
        from calomel.bench.speculation import SpeculationOptions, run_speculation
        from calomel.replay.events import LogError

        options = SpeculationOptions(
            logs=tuple(logs or ()),
            model=model,
            device=device,
            threads=threads,
            holes_per_kind=holes_per_kind,
            limit_minutes=limit_minutes,
            seed=seed,
            quick=quick,
            json=json,
            results=results,
        )
        try:
            report = run_speculation(options)
        except LogError as error:
            raise InputError(str(error)) from error
        except BenchDataError as error:
            raise CommandError(str(error)) from error
    print(report.to_markdown())
