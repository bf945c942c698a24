"""`calomel doctor`: what is wrong here, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from calomel.cli.checks.finding import Finding


def doctor(
    file: Annotated[
        Path | None, typer.Argument(help="A source file in which nothing is suggested.", show_default=False)
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings file. Default: calomel.toml in your configuration folder.")
    ] = None,
) -> None:
    """Look at settings, token, port, model, device, memory, speed, grammars and editors; say what to do.

    Exit status 1 if something cannot work. Nothing is changed.
    """
    from calomel.cli.checks.finding import Level
    from calomel.server.logs import escaped

    failed = False
    for finding in _findings(config, file):
        failed = failed or finding.level is Level.FAIL
        print(f"{finding.level:<4}  {finding.subject}: {escaped(finding.found)}")
        if finding.advice:
            print(f"      → {escaped(finding.advice)}")
    if failed:
        raise typer.Exit(1)


def _findings(config: Path | None, file: Path | None) -> Iterator[Finding]:
    from calomel.cli.checks.editing import around, check_file, check_sides, sides
    from calomel.cli.checks.editors import check_editors, vs_code_settings
    from calomel.cli.checks.finding import fail
    from calomel.cli.checks.model import check_model
    from calomel.cli.checks.server import check_server, writable
    from calomel.cli.checks.speed import check_speed
    from calomel.server.layers import SettingsError, load
    from calomel.suggest.outcome_log import outcome_log_path
    from calomel.workspace.settings import user_settings_path

    try:
        layered = load({}, config)
    except SettingsError as error:
        yield fail("settings", str(error), "calomel config path says where the file is")
        return
    yield from check_server(layered)
    if layered.settings.outcome_log:
        yield writable(outcome_log_path().parent)
    yield from check_model(layered.settings)
    yield from check_editors(layered.settings)
    folder = None if file is None else around(file.absolute())
    found = sides(layered.path or user_settings_path(), vs_code_settings(), folder)
    yield from check_sides(found)
    yield check_speed(found[0].settings)
    if file is not None:
        yield from check_file(file.absolute(), found, folder)
