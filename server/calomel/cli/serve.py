"""`calomel serve`: answer editors and scripts over HTTP on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.errors import CommandError, InputError


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one. Default: 8017.")] = None,
    model: Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:N. Default: cpu.")] = None,
    threads: Annotated[int | None, typer.Option(help="Processor threads of the engine.")] = None,
    token: Annotated[
        str | None,
        typer.Option(help="What clients must send. Default: random. Safer as CALOMEL_TOKEN: others see command lines."),
    ] = None,
    no_auth: Annotated[bool | None, typer.Option("--no-auth", help="Let every program of this machine in.")] = None,
    allow_remote: Annotated[
        bool | None, typer.Option("--allow-remote", help="Needed with a --host that other machines can reach.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="Further name for the Host header; repeatable.")
    ] = None,
    runtime_file: Annotated[Path | None, typer.Option(help="Where editors find address and token.")] = None,
    idle_minutes: Annotated[
        float | None, typer.Option(help="End after so long without a request. Default: stay.")
    ] = None,
    max_requests: Annotated[int | None, typer.Option(help="Requests running or waiting at once. Default: 32.")] = None,
) -> None:
    """Serve fill-in-the-middle over HTTP.

    Every option can also be set in the environment, as CALOMEL_ and its name (CALOMEL_PORT=8018).
    """
    from pydantic import ValidationError

    from calomel.server.errors import StartError
    from calomel.server.run import serve as run
    from calomel.server.settings import ServerSettings

    chosen = {
        "host": host,
        "port": port,
        "model": model,
        "device": device,
        "threads": threads,
        "token": token,
        "no_auth": no_auth,
        "allow_remote": allow_remote,
        "allowed_hosts": tuple(allowed_host) if allowed_host else None,
        "runtime_file": runtime_file,
        "idle_minutes": idle_minutes,
        "max_requests": max_requests,
    }
    try:
        settings = ServerSettings.model_validate({name: value for name, value in chosen.items() if value is not None})
    except ValidationError as error:
        raise InputError("; ".join(_sentence(entry["loc"], entry["msg"]) for entry in error.errors())) from error
    try:
        run(settings)
    except StartError as error:
        raise CommandError(str(error)) from error


def _sentence(location: tuple[int | str, ...], message: str) -> str:
    option = "".join(f"--{str(part).replace('_', '-')}: " for part in location[:1])
    return option + message.removeprefix("Value error, ")
