"""`calomel bench load` and `calomel bench soak`: a real server under many clients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.device import check_device
from calomel.cli.errors import CommandError, engine_errors_reported

Model = Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Processor threads of the engine.")]
Json = Annotated[Path | None, typer.Option(help="Write the figures as JSON to this file.")]
Results = Annotated[Path | None, typer.Option(help="Write page and figures into this folder, such as docs/results.")]


def load(
    clients: Annotated[int, typer.Option(min=2, max=4096, help="Clients that ask at once.")] = 64,
    context: Annotated[int, typer.Option(min=256, max=32_768, help="Tokens around each cursor, about.")] = 2048,
    max_requests: Annotated[int | None, typer.Option(min=1, help="Places of the server. Default: its own.")] = None,
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    seed: Annotated[int, typer.Option(help="Decides where the clients type.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="One short round.")] = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """The server under load: one client, many at once, and more than it takes, beside bare forwards."""
    check_device(device)
    with engine_errors_reported():
        from calomel.bench.heldout import BenchDataError
        from calomel.bench.served import ServedError
        from calomel.bench.throughput import LoadOptions, run_load

        options = LoadOptions(
            model=model,
            device=device,
            threads=threads,
            clients=clients,
            context=context,
            max_requests=max_requests,
            seed=seed,
            quick=quick,
            json=json,
            results=results,
        )
        try:
            print(run_load(options).to_markdown())
        except (BenchDataError, ServedError) as error:
            raise CommandError(str(error)) from error


def soak(
    minutes: Annotated[float, typer.Option(min=0.1, max=1440, help="How long.")] = 30,
    clients: Annotated[int, typer.Option(min=1, max=256, help="Clients at once.")] = 8,
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    seed: Annotated[int, typer.Option(help="Decides who asks what.")] = 1,
    json: Json = None,
    results: Results = None,
) -> None:
    """The server over time: mixed traffic, clients that leave, bad requests; memory, files and places over time."""
    check_device(device)
    from calomel.bench.heldout import BenchDataError
    from calomel.bench.served import ServedError
    from calomel.bench.soak import SoakOptions, run_soak

    options = SoakOptions(minutes, clients, model, device, threads, seed, json, results)
    try:
        print(run_soak(options).to_markdown())
    except (BenchDataError, ServedError) as error:
        raise CommandError(str(error)) from error


def replicas(
    count: Annotated[int, typer.Option("--replicas", min=1, max=64, help="Replicas of the server.")] = 2,
    clients: Annotated[int, typer.Option(min=2, max=1024, help="Clients that ask at once.")] = 16,
    context: Annotated[int, typer.Option(min=256, max=32_768, help="Tokens around each cursor, about.")] = 1024,
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    seed: Annotated[int, typer.Option(help="Decides where the clients type.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter phases.")] = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """A server with replicas under load, one of which is killed: what that costs, and whether anything is lost."""
    check_device(device)
    with engine_errors_reported():
        from calomel.bench.heldout import BenchDataError
        from calomel.bench.replicas import ReplicasOptions, run_replicas
        from calomel.bench.served import ServedError

        options = ReplicasOptions(
            model=model,
            device=device,
            threads=threads,
            replicas=count,
            clients=clients,
            context=context,
            seed=seed,
            quick=quick,
            json=json,
            results=results,
        )
        try:
            print(run_replicas(options).to_markdown())
        except (BenchDataError, ServedError) as error:
            raise CommandError(str(error)) from error
