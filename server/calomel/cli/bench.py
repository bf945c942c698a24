"""`calomel bench`: quality and speed of a model, measured on this machine."""

from __future__ import annotations

import typer

bench = typer.Typer(help="Measure quality and speed on this machine.", no_args_is_help=True, rich_markup_mode=None)


@bench.command()
def infill() -> None:
    """Quality."""


@bench.command()
def speed() -> None:
    """Speed."""
