"""`calomel config`: which settings the server would take, and where each came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.errors import InputError

config = typer.Typer(help="Show settings: the server's, or every one.", no_args_is_help=True, rich_markup_mode=None)

_File = Annotated[
    Path | None, typer.Option("--config", help="Settings file. Default: calomel.toml in your configuration folder.")
]


@config.command()
def show(
    file: _File = None,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Every setting of `calomel serve`, its value and where it came from; secrets are hidden."""
    from calomel.server.layers import DEFAULT, SettingsError, load, shown

    try:
        layered = load({}, file)
    except SettingsError as error:
        raise InputError(str(error)) from error
    rows = [(name, shown(layered, name), origin) for name, origin in layered.origins.items()]
    if as_json:
        print(json.dumps({name: {"value": value, "from": origin} for name, value, origin in rows}, indent=2))
        return
    names, values = (max(len(row[column]) for row in rows) for column in (0, 1))
    for name, value, origin in rows:
        print(f"{name:<{names}}  {value:<{values}}  {'' if origin == DEFAULT else origin}".rstrip())


@config.command()
def path(file: _File = None) -> None:
    """Where the settings file is, or would be."""
    from calomel.server.layers import named_path

    print(file or named_path())


@config.command()
def reference() -> None:
    """Every setting of editors and server, with type, default, bounds and reason, as a page of Markdown."""
    from calomel.cli.reference import reference as page

    print(page(), end="")
