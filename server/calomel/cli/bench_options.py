"""What the commands of `calomel bench` have in common: options by one name, and errors in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.device import check_device
from calomel.cli.errors import CommandError, InputError, engine_errors_reported

Model = Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Processor threads of the engine.")]
Policy = Annotated[str | None, typer.Option(help="Reveal policy, also POLICY@STEPS. Default: the shipped one.")]
MaxSteps = Annotated[int | None, typer.Option(min=1, help="Denoising steps a canvas, at most.")]
Seed = Annotated[int, typer.Option(help="Decides which holes are cut.")]
Quick = Annotated[bool, typer.Option("--quick", help="A subset, within three minutes.")]
Quantize = Annotated[str | None, typer.Option(help="Weights in eight bits: int8 or fp8. Default: as they are.")]
Resume = Annotated[bool, typer.Option(help="Go on where an interrupted run stopped.")]
Json = Annotated[Path | None, typer.Option(help="Write the figures as JSON to this file.")]
Results = Annotated[Path | None, typer.Option(help="Write page and figures into this folder, such as docs/results.")]


@contextmanager
def bench_errors_reported(device: str) -> Iterator[None]:
    """Check `device`, and make what goes wrong in a bench an error of the command line."""
    check_device(device)
    with engine_errors_reported():
        from calomel.bench.heldout import BenchDataError

        try:
            yield
        except BenchDataError as error:
            raise CommandError(str(error)) from error
        except ValueError as error:
            raise InputError(str(error)) from error
