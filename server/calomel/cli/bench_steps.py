"""`calomel bench steps`: what a denoising step costs, by whom it is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from calomel.cli.device import check_device
from calomel.cli.errors import engine_errors_reported


def steps(
    shape: Annotated[
        Literal["0.5B", "1.5B", "8B"] | None, typer.Option(help="Random weights of this size. Default: the shipped.")
    ] = None,
    context: Annotated[
        list[int] | None, typer.Option(min=1, max=32_768, help="Tokens before the canvas; repeatable.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, max=64, help="Rows of the canvas.")] = 17,
    look: Annotated[int, typer.Option(min=1, help="Steps between two looks of the host.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="Repetitions.")] = 30,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="Also by torch.compile: minutes, and a compiler.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    threads: Annotated[int, typer.Option(min=1, help="Processor threads.")] = 1,
    json: Annotated[Path | None, typer.Option(help="Write the figures as JSON to this file.")] = None,
    results: Annotated[Path | None, typer.Option(help="Write page and figures into this folder.")] = None,
) -> None:
    """A denoising step: taken by the host, by the device, from a recording, beside what its memory allows."""
    check_device(device)
    with engine_errors_reported():
        from calomel.bench.steps import CONTEXTS, StepsOptions, run_steps

        options = StepsOptions(
            shape=shape,
            contexts=tuple(context or CONTEXTS),
            rows=rows,
            look=look,
            rounds=rounds,
            compiled=compiled,
            device=device,
            threads=threads,
            json=json,
            results=results,
        )
        report = run_steps(options)
    print(report.to_markdown())
