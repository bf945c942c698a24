"""`calomel bench recall`: what repeating what stands elsewhere is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.bench_options import Device, Json, Model, Quick, Results, Seed, Threads, bench_errors_reported


def recall(
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    holes_per_kind: Annotated[int | None, typer.Option("--holes", min=1, help="Holes of each kind.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    documents: Annotated[
        Path | None,
        typer.Option(help="Files to cut holes from, as `calomel corpus` writes them. Default: held-out ones."),
    ] = None,
    fit: Annotated[
        Path | None,
        typer.Option(help="Fit what recalled texts are worth on --documents, and write recall.json into this folder."),
    ] = None,
    json: Json = None,
    results: Results = None,
) -> None:
    """Held-out holes with and without text that stands elsewhere between the same neighbours."""
    with bench_errors_reported(device):
        from calomel.bench.recall.run import RecallOptions, run_recall

        options = RecallOptions(
            model=model,
            device=device,
            threads=threads,
            holes_per_kind=holes_per_kind,
            seed=seed,
            quick=quick,
            documents=documents,
            fit=fit,
            json=json,
            results=results,
        )
        print(run_recall(options).to_markdown())
