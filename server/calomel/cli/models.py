"""`calomel models`: the models on this machine, and how to get another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.errors import CommandError, InputError

models = typer.Typer(help="List, look at and fetch models.", no_args_is_help=True, rich_markup_mode=None)

_Name = Annotated[str, typer.Argument(help="A name of `calomel models list`, or a folder.")]
_MIB = 1024 * 1024


@models.command("list")
def list_() -> None:
    """Every model on this machine: the shipped one, those in the models folder, those in the hub's cache."""
    from calomel.server.model_folders import known, models_folder

    rows = [(model.name, f"{_bytes(model.path) / _MIB:.0f} MiB", model.source) for model in known()]
    width = max(len(row[0]) for row in rows)
    for name, size, source in rows:
        print(f"{name:<{width}}  {size:>9}  {source}")
    print(f"\nModels folder: {models_folder()}")


@models.command()
def info(name: _Name) -> None:
    """What a model's files say of it."""
    from calomel.suggest.model_info import describe

    folder = _folder(name)
    try:
        told = describe(folder)
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: {error}") from error
    print(f"folder     {folder}")
    print(f"size       {_bytes(folder) / _MIB:.1f} MiB")
    print(f"answers    {', '.join(told.kinds)}")
    print(f"positions  {told.max_context}")
    print(f"weights    {told.weights}")
    source = _source(folder)
    if source:
        print(f"from       {source}")


@models.command()
def path(name: _Name) -> None:
    """A model's folder."""
    print(_folder(name))


@models.command()
def fetch(
    repository: Annotated[str, typer.Argument(metavar="REPO[@REVISION]", help="Of a hub, as owner/name.")],
    name: Annotated[str | None, typer.Option(help="For the models folder. Default: owner--name.")] = None,
) -> None:
    """Fetch a model from a hub into the models folder: weights as safetensors and configuration, never code.

    Without a revision, the newest one is taken and written down. This is the one command that downloads a model.
    """
    from calomel.cli.fetch import FetchError
    from calomel.cli.fetch import fetch as get

    repo, _, revision = repository.partition("@")
    try:
        found = get(repo, revision or None, name)
    except FetchError as error:
        raise CommandError(str(error)) from error
    print(f"{found.path} (revision {found.revision})")
    print(f"calomel serve --model {found.path.name}")


def _folder(name: str) -> Path:
    from calomel.server.model_folders import ModelNameError, folder_of, is_model
    from calomel.weights import nano_path

    try:
        folder = folder_of(name) or nano_path()
    except ModelNameError as error:
        raise InputError(str(error)) from error
    if not is_model(folder):
        raise InputError(f"{folder} holds no model: config.json and weights as .safetensors are needed")
    return folder


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.safetensors"))


def _source(folder: Path) -> str:
    from calomel.cli.fetch import read_source

    return read_source(folder)
