"""`calomel serve`: answer editors and scripts over HTTP on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.errors import CommandError, InputError


def serve(
    config: Annotated[
        Path | None, typer.Option(help="Settings file. Default: calomel.toml in your configuration folder.")
    ] = None,
    no_config: Annotated[bool, typer.Option("--no-config", help="Read no settings file.")] = False,
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one. Default: 8017.")] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Checkpoint folder, or a name of `calomel models list`. Default: the shipped model."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:N. Default: cpu.")] = None,
    threads: Annotated[int | None, typer.Option(help="Processor threads of the engine.")] = None,
    quantize: Annotated[
        str | None, typer.Option(help="Weights in eight bits: int8 or fp8. Default: as they are.")
    ] = None,
    exact: Annotated[
        bool | None,
        typer.Option("--exact", help="No approximate cache where a family has one: slower, whole forwards."),
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(help="Address of a server of the model's weights (vLLM): prompts go there. Default: nowhere."),
    ] = None,
    upstream_model: Annotated[str | None, typer.Option(help="The model's name there. Default: the only one.")] = None,
    upstream_token_file: Annotated[Path | None, typer.Option(help="Holds the token for that server.")] = None,
    upstream_unencrypted: Annotated[
        bool | None, typer.Option("--upstream-unencrypted", help="Send prompts to another machine over plain HTTP.")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option(help="Processes with the model, on Ray Serve. Default: it is in this one.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="What clients must send. Safer as CALOMEL_TOKEN or --token-file: others see command lines."),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="Holds the token, or NAME TOKEN lines; made if it is not there.")
    ] = None,
    fresh_token: Annotated[
        bool | None, typer.Option("--fresh-token", help="A random token, in the runtime file alone.")
    ] = None,
    no_auth: Annotated[bool | None, typer.Option("--no-auth", help="Let every program of this machine in.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate chain (PEM): serve HTTPS.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
    allow_remote: Annotated[
        bool | None, typer.Option("--allow-remote", help="Needed with a --host that other machines can reach.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="Further name for the Host header; repeatable.")
    ] = None,
    allowed_origin: Annotated[
        list[str] | None, typer.Option(help="Web page that may ask, as https://name:port; repeatable.")
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option(help="Folder that clients edit in: prompts are completed from its files.")
    ] = None,
    runtime_file: Annotated[Path | None, typer.Option(help="Where editors find address and token.")] = None,
    idle_minutes: Annotated[
        float | None, typer.Option(help="End after so long without a request. Default: stay.")
    ] = None,
    idle_unload: Annotated[
        float | None, typer.Option(help="Minutes without a request after which the model's memory is given back.")
    ] = None,
    offline: Annotated[
        bool | None, typer.Option("--offline", help="Refuse every connection to another machine, by any library.")
    ] = None,
    max_requests: Annotated[int | None, typer.Option(help="Requests running or waiting at once. Default: 128.")] = None,
    cache_tokens: Annotated[
        int | None,
        typer.Option(
            help="Tokens of contexts that stay encoded. Default: 32,768 on a CPU, 163,840 on a GPU, or what fits."
        ),
    ] = None,
    requests_per_minute: Annotated[int | None, typer.Option(help="Of one client. Default: no limit.")] = None,
    record_denoising: Annotated[
        bool | None, typer.Option("--record-denoising", help="Keep recent answers in memory, to replay on the page.")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error. Default: info.")] = None,
    log_format: Annotated[str | None, typer.Option(help="text or json. Default: text.")] = None,
) -> None:
    """Serve suggestions over HTTP.

    Every option can also be set in the environment, as CALOMEL_ and its name (CALOMEL_PORT=8018), and in the table
    [serve] of calomel.toml. An option is stronger than the environment, which is stronger than the file.
    `calomel config show` lists all settings and where each came from.
    """
    from calomel.server.errors import StartError
    from calomel.server.layers import SettingsError, load
    from calomel.server.model_folders import ModelNameError
    from calomel.server.run import serve as run

    chosen = {
        "host": host,
        "port": port,
        "model": model,
        "device": device,
        "threads": threads,
        "quantize": quantize,
        "exact": exact,
        "upstream": upstream,
        "upstream_model": upstream_model,
        "upstream_token_file": upstream_token_file,
        "upstream_unencrypted": upstream_unencrypted,
        "replicas": replicas,
        "token": token,
        "token_file": token_file,
        "fresh_token": fresh_token,
        "no_auth": no_auth,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "allow_remote": allow_remote,
        "allowed_hosts": tuple(allowed_host) if allowed_host else None,
        "allowed_origins": tuple(allowed_origin) if allowed_origin else None,
        "workspace": workspace,
        "runtime_file": runtime_file,
        "idle_minutes": idle_minutes,
        "idle_unload": idle_unload,
        "offline": offline,
        "max_requests": max_requests,
        "cache_tokens": cache_tokens,
        "requests_per_minute": requests_per_minute,
        "record_denoising": record_denoising,
        "log_level": log_level,
        "log_format": log_format,
    }
    try:
        given = {name: value for name, value in chosen.items() if value is not None}
        run(load(given, config, use_config=not no_config).settings)
    except (SettingsError, ModelNameError) as error:
        raise InputError(str(error)) from error
    except StartError as error:
        raise CommandError(str(error)) from error
