"""`calomel bench`: quality and speed of a model, measured on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.errors import CommandError, InputError, engine_errors_reported

bench = typer.Typer(help="Measure quality and speed on this machine.", no_args_is_help=True, rich_markup_mode=None)

Model = Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Processor threads of the engine.")]
Policy = Annotated[str | None, typer.Option(help="Reveal policy, also POLICY@STEPS. Default: the shipped one.")]
Json = Annotated[Path | None, typer.Option(help="Write the figures as JSON to this file.")]
Results = Annotated[Path | None, typer.Option(help="Write page and figures into this folder, such as docs/results.")]


@bench.command()
def infill(
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    policy: Policy = None,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Denoising steps a canvas, at most.")] = None,
    policies: Annotated[
        str | None, typer.Option(metavar="POLICY,POLICY…", help="Compare these policies instead of one.")
    ] = None,
    holes_per_kind: Annotated[int | None, typer.Option(min=4, help="Held-out holes of each kind.")] = None,
    seed: Annotated[int, typer.Option(help="Decides which holes are cut.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A subset, within three minutes.")] = False,
    oracle: Annotated[bool, typer.Option("--oracle", help="Check the bench itself, with the right answers.")] = False,
    human_eval: Annotated[bool, typer.Option(help="Include HumanEval-Infilling where its files are.")] = True,
    data: Annotated[Path | None, typer.Option(help="Folder of public data. Default: CALOMEL_DATA.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on where an interrupted run stopped.")] = True,
    json: Json = None,
    results: Results = None,
) -> None:
    """Quality: fill held-out holes, next to left-to-right decoding."""
    with engine_errors_reported():
        from calomel.bench.heldout import BenchDataError
        from calomel.bench.infill import InfillOptions, run_infill

        options = InfillOptions(
            model=model,
            device=device,
            threads=threads,
            policy=policy,
            max_steps=max_steps,
            policies=tuple(filter(None, (policies or "").split(","))),
            holes_per_kind=holes_per_kind,
            seed=seed,
            quick=quick,
            oracle=oracle,
            human_eval=human_eval,
            data=data,
            resume=resume,
            json=json,
            results=results,
        )
        try:
            print(run_infill(options).to_markdown())
        except BenchDataError as error:
            raise CommandError(str(error)) from error
        except ValueError as error:
            raise InputError(str(error)) from error
