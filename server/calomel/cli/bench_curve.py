"""`calomel bench curve`: what a keystroke costs by size of context."""

from __future__ import annotations

from typing import Annotated

import typer

from calomel.cli.bench_options import Device, Json, Model, Quick, Results, bench_errors_reported

_LEAST, _MOST = 512, 32_768


def curve(
    model: Model = None,
    device: Device = "cpu",
    contexts: Annotated[
        list[int] | None, typer.Option("--context", min=_LEAST, max=_MOST, help="Tokens of context; repeatable.")
    ] = None,
    lines: Annotated[int | None, typer.Option(min=1, help="Lines that are typed.")] = None,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """A keystroke by size of context, from 2K to 32K tokens: what is computed, and where the time goes."""
    with bench_errors_reported(device):
        from calomel.bench.curve.run import SIZES, CurveOptions, run_curve

        options = CurveOptions(
            model=model,
            device=device,
            contexts=tuple(sorted(set(contexts or SIZES))),
            lines=lines,
            quick=quick,
            json=json,
            results=results,
        )
        print(run_curve(options).to_markdown())
