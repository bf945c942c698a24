"""`calomel bench curve`: what a keystroke costs by size of context."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.device import check_device
from calomel.cli.errors import CommandError, engine_errors_reported

_LEAST, _MOST = 512, 32_768


def curve(
    model: Annotated[
        Path | None, typer.Option(help="Checkpoint folder of our own. Default: the shipped model.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    contexts: Annotated[
        list[int] | None, typer.Option("--context", min=_LEAST, max=_MOST, help="Tokens of context; repeatable.")
    ] = None,
    lines: Annotated[int | None, typer.Option(min=1, help="Lines that are typed.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A subset, within three minutes.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the figures as JSON to this file.")] = None,
    results: Annotated[
        Path | None, typer.Option(help="Write page and figures into this folder, such as docs/results.")
    ] = None,
) -> None:
    """A keystroke by size of context, from 2K to 32K tokens: what is computed, and where the time goes."""
    check_device(device)
    with engine_errors_reported():
        from calomel.bench.curve.run import SIZES, CurveOptions, run_curve
        from calomel.bench.heldout import BenchDataError

        options = CurveOptions(
            model=model,
            device=device,
            contexts=tuple(sorted(set(contexts or SIZES))),
            lines=lines,
            quick=quick,
            json=json,
            results=results,
        )
        try:
            report = run_curve(options)
        except BenchDataError as error:
            raise CommandError(str(error)) from error
    print(report.to_markdown())
