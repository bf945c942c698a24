"""`calomel bench speculation`: what the engine does for what is accepted, with second steps guessed and without."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.bench_options import Device, Json, Model, Quick, Results, Seed, Threads, bench_errors_reported
from calomel.cli.errors import InputError


def speculation(
    logs: Annotated[list[Path] | None, typer.Argument(metavar="LOG...", help="Logs to be replayed both ways.")] = None,
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    holes_per_kind: Annotated[int | None, typer.Option(min=4, help="Held-out holes of each kind.")] = None,
    limit_minutes: Annotated[float | None, typer.Option(min=0, help="Only so much of each log's time.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """Steps by what was accepted, with second steps guessed and without, on held-out holes and replays."""
    with bench_errors_reported(device):
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
        print(report.to_markdown())
