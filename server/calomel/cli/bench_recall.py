"""`calomel bench recall`: what repeating what stands elsewhere is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.device import check_device
from calomel.cli.errors import CommandError, engine_errors_reported


def recall(
    model: Annotated[
        Path | None, typer.Option(help="Checkpoint folder of our own. Default: the shipped model.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the engine.")] = None,
    holes_per_kind: Annotated[int | None, typer.Option("--holes", min=1, help="Holes of each kind.")] = None,
    seed: Annotated[int, typer.Option(help="Of the choice of holes.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A subset, within three minutes.")] = False,
    documents: Annotated[
        Path | None,
        typer.Option(help="Files to cut holes from, as `calomel corpus` writes them. Default: held-out ones."),
    ] = None,
    fit: Annotated[
        Path | None,
        typer.Option(help="Fit what recalled texts are worth on --documents, and write recall.json into this folder."),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the figures as JSON to this file.")] = None,
    results: Annotated[
        Path | None, typer.Option(help="Write page and figures into this folder, such as docs/results.")
    ] = None,
) -> None:
    """Held-out holes with and without text that stands elsewhere between the same neighbours."""
    check_device(device)
    with engine_errors_reported():
        from calomel.bench.heldout import BenchDataError
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
        try:
            report = run_recall(options)
        except BenchDataError as error:
            raise CommandError(str(error)) from error
    print(report.to_markdown())
