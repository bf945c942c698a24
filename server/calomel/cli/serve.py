"""`calomel serve`, `calomel lsp` and `calomel doctor`: the servers, and what keeps them from working here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calomel.cli.output import Config, Quantize, address, say, without_credentials

if TYPE_CHECKING:
    from calomel.cli.checks import Finding


def serve(
    config: Config = None,
    no_config: Annotated[bool, typer.Option("--no-config", help="Read no settings file.")] = False,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on. Default: 127.0.0.1.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one. Default: 8017.")] = None,
    socket: Annotated[Path | None, typer.Option(help="Unix socket to listen on instead of an address.")] = None,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A model's name, folder or GGUF file. Default: nano.")
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            callback=address,
            help="Address of a llama.cpp, Ollama, vLLM or LM Studio server to use as the model.",
        ),
    ] = None,
    upstream_format: Annotated[
        str | None, typer.Option(help="Upstream API: auto, llama.cpp, ollama, vllm, openai or mercury. Default: auto.")
    ] = None,
    upstream_model: Annotated[
        str | None, typer.Option(help="Model to use on the upstream server. Default: the only one.")
    ] = None,
    upstream_fim: Annotated[
        str | None, typer.Option(help="Fill-in-the-middle format, e.g. qwen. Default: detected.")
    ] = None,
    upstream_edit: Annotated[
        str | None,
        typer.Option(help="Next-edit format: zeta2, zeta2.1, sweep or sweep-v2. Default: from the model's name."),
    ] = None,
    upstream_key_file: Annotated[Path | None, typer.Option(help="File with the key of the upstream server.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:N or mps. Default: cpu.")] = None,
    threads: Annotated[int | None, typer.Option(help="Processor threads.")] = None,
    quantize: Quantize = None,
    exact: Annotated[bool | None, typer.Option("--exact", help="Turn off approximate caching (slower).")] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="Token that clients must send. CALOMEL_TOKEN is safer: other users can see command lines.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token, or lines NAME TOKEN; created if missing.")
    ] = None,
    fresh_token: Annotated[
        bool | None, typer.Option("--fresh-token", help="Use a random token, written to the runtime file.")
    ] = None,
    no_auth: Annotated[bool | None, typer.Option("--no-auth", help="Accept requests without a token.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate chain (PEM): serve HTTPS.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Private key of the certificate (PEM).")] = None,
    allow_remote: Annotated[
        bool | None, typer.Option("--allow-remote", help="Allow a --host that other machines can reach.")
    ] = None,
    allowed_hosts: Annotated[
        list[str] | None, typer.Option("--allowed-host", help="Extra Host header to accept; repeatable.")
    ] = None,
    allowed_origins: Annotated[
        list[str] | None,
        typer.Option("--allowed-origin", help="Origin of a web page to accept, e.g. https://name:port; repeatable."),
    ] = None,
    runtime_file: Annotated[Path | None, typer.Option(help="File for address and token, read by editors.")] = None,
    idle_minutes: Annotated[
        float | None, typer.Option(help="Stop after this many idle minutes. Default: never.")
    ] = None,
    offline: Annotated[bool | None, typer.Option("--offline", help="Refuse connections to other machines.")] = None,
    max_requests: Annotated[
        int | None, typer.Option(help="Maximum running and waiting requests. Default: 128.")
    ] = None,
    cache_tokens: Annotated[int | None, typer.Option(help="Prompt cache in tokens. Default: as many as fit.")] = None,
    max_batch: Annotated[
        int | None, typer.Option(help="Maximum requests per step. Default: as many as fit, up to 8.")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(help="Log level: debug, info, warning or error. Default: info.")
    ] = None,
) -> None:
    """Run the HTTP server.

    Every setting can also be set in the environment, as CALOMEL_ and its name (CALOMEL_PORT=8018), and in the table
    [serve] of calomel.toml. Options override environment variables, which override the file.
    `calomel config show` lists all settings and where each came from.
    """
    # The options have the names of the settings.
    given = {name: value for name, value in locals().items() if value not in (None, []) and "config" not in name}
    from calomel.server.run import serve as run
    from calomel.server.settings import load

    run(load(given, config, use_config=not no_config).settings)


def lsp(
    stdio: Annotated[  # noqa: ARG001 (many clients add it)
        bool, typer.Option("--stdio", help="Use standard input and output (the default).")
    ] = False,
) -> None:
    """Language server for editors."""
    from calomel.lsp.server import run_stdio

    run_stdio()


def doctor(
    file: Annotated[
        Path | None, typer.Argument(help="File to check if no suggestions appear in it.", show_default=False)
    ] = None,
    config: Config = None,
) -> None:
    """Check the installation and say what to fix.

    Exit status 1 if something cannot work. Nothing is changed.
    """
    from calomel.server.logs import escaped

    failed = False
    for finding in _findings(config, file):
        failed = failed or finding.level == "fail"
        say(f"{finding.level:<4}  {finding.subject}: {escaped(without_credentials(finding.found))}")
        if finding.advice:
            say(f"      → {escaped(without_credentials(finding.advice))}")
    if failed:
        raise typer.Exit(1)


def _findings(config: Path | None, file: Path | None) -> Iterator[Finding]:
    from calomel.cli import checks
    from calomel.cli.editor import here
    from calomel.cli.editor_checks import around, check_editors, check_file, check_sides, sides, vs_code_settings
    from calomel.server.settings import examine
    from calomel.suggest.outcome_log import outcome_log_path
    from calomel.workspace.settings import user_settings_path

    layered, problems = examine({}, config)
    settings = layered.settings
    for problem in problems:
        yield checks.fail("settings", str(problem), "correct that; below, the default takes its place")
    yield from _going_on("server", lambda: checks.check_server(layered, read=not problems))
    if settings.outcome_log:
        yield from _going_on("state", lambda: [checks.writable(outcome_log_path().parent)])
    yield from _going_on("upstream", lambda: checks.check_upstream(settings))
    if settings.upstream is None:
        yield from _going_on("model", lambda: checks.check_model(settings))
    place = here(settings)
    yield from _going_on("editors", lambda: check_editors(place))
    folder = None if file is None else around(file.absolute())
    layers = sides(layered.path or user_settings_path(), vs_code_settings(place), folder)
    models = list(_going_on("editors' model", lambda: check_sides(layers)))
    yield from models
    if any(each.level == "fail" for each in models):
        yield checks.ok("speed", "not measured: the editors' model must answer first")
    else:
        yield from _going_on("speed", lambda: [checks.check_speed(layers[0].settings)])
    if file is not None:
        yield from _going_on("file", lambda: check_file(file.absolute(), layers, folder))


def _going_on(subject: str, check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """What a check finds; one that breaks is a finding, too, and the others go on."""
    from calomel.cli.checks import fail
    from calomel.storage.failures import cause, describe

    try:
        yield from check()
    except Exception as error:  # noqa: BLE001 (whatever the machine is like)
        yield fail(subject, f"could not be checked: {cause(error)}", f"please report this: {describe(error, 2)}")
