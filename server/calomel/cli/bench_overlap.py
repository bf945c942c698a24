"""`calomel bench overlap`: long holes whose canvases begin before the last one is whole."""

from __future__ import annotations

from typing import Annotated

import typer

from calomel.cli.bench_options import Device, Json, Model, Quick, Results, Seed, Threads, bench_errors_reported


def overlap(
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    holes: Annotated[int | None, typer.Option(min=1, help="Held-out holes of several lines.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """Long holes with canvases one behind the other, and with the next begun beside the last."""
    with bench_errors_reported(device):
        from calomel.bench.overlap import OverlapOptions, run_overlap

        options = OverlapOptions(
            model=model,
            device=device,
            threads=threads,
            holes=holes,
            seed=seed,
            quick=quick,
            json=json,
            results=results,
        )
        print(run_overlap(options).to_markdown())
