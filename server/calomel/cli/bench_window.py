"""`calomel bench window`: the dual cache of models that read in both directions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.device import check_device
from calomel.cli.errors import engine_errors_reported


def window(
    holes: Annotated[int, typer.Option(min=1, help="Holes for each window.")] = 2,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    threads: Annotated[int | None, typer.Option(min=1, help="Processor threads of the engine.")] = None,
    seed: Annotated[int, typer.Option(help="Decides where the holes are.")] = 1,
    json: Annotated[Path | None, typer.Option(help="Write the figures as JSON to this file.")] = None,
) -> None:
    """Models that read in both directions: the dual cache beside whole forwards, time and equal tokens."""
    check_device(device)
    with engine_errors_reported():
        from calomel.bench.window import WindowBenchOptions, run_window

        report = run_window(WindowBenchOptions(holes=holes, device=device, threads=threads, seed=seed))
    print(report.to_markdown())
    if json is not None:
        json.write_text(report.to_json(), encoding="utf-8")
