"""`calomel bench failures` and `calomel bench decoding`: what goes wrong, and what other ways to decode change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.bench_options import (
    Device,
    Json,
    Model,
    Quick,
    Results,
    Resume,
    Seed,
    Threads,
    bench_errors_reported,
)
from calomel.cli.errors import CommandError, InputError


def failures(
    samples: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE...", help="What `calomel replay --samples --prompts` wrote.")
    ] = None,
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    holes_per_kind: Annotated[int | None, typer.Option(min=0, help="Held-out holes of each kind; 0: none.")] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Moments of held-out edits; 0: none.")] = None,
    listing: Annotated[
        Path | None, typer.Option("--list", help="Write the hundred most valuable failures, with texts, to this file.")
    ] = None,
    seed: Seed = 1,
    quick: Quick = False,
    resume: Resume = True,
    json: Json = None,
    results: Results = None,
) -> None:
    """What goes wrong: failures on held-out holes and edits, and in replays, by kind and by what they cost."""
    with bench_errors_reported(device):
        from calomel.bench.cases import SuiteError
        from calomel.bench.failures.run import FailuresOptions, listed, run_failures

        options = FailuresOptions(
            model=model,
            device=device,
            threads=threads,
            holes_per_kind=holes_per_kind,
            edits=limit,
            samples=tuple(samples or ()),
            seed=seed,
            quick=quick,
            resume=resume,
            listing=listing,
            json=json,
            results=results,
        )
        try:
            report = run_failures(options)
        except OSError as error:
            raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error
        except SuiteError as error:
            raise CommandError(str(error)) from error
        print(report.to_markdown())
        print(listed(report))


def decoding(
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    holes: Annotated[int | None, typer.Option(min=8, help="Held-out holes, most of them rests of lines.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    resume: Resume = True,
    json: Json = None,
    results: Results = None,
) -> None:
    """The same weights decoded in many ways: canvases, steps, ends, orders of the prompt."""
    with bench_errors_reported(device):
        from calomel.bench.decoding.run import DecodingOptions, run_decoding

        options = DecodingOptions(
            model=model,
            device=device,
            threads=threads,
            holes=holes,
            seed=seed,
            quick=quick,
            resume=resume,
            json=json,
            results=results,
        )
        print(run_decoding(options).to_markdown())
