"""`calomel editor`: set an editor up for Calomel."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

import typer

from calomel.cli.errors import InputError
from calomel.cli.options import Config

if TYPE_CHECKING:
    from calomel.cli.editor_plans import Here

editor = typer.Typer(help="Set up an editor.", no_args_is_help=True, rich_markup_mode=None)


@editor.callback()
def _group() -> None:
    """Set up an editor."""


@editor.command()
def setup(
    name: Annotated[
        Literal["vscode", "neovim", "zed", "helix", "emacs", "sublime"],
        typer.Argument(help="Which one.", show_default=False),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    url: Annotated[str | None, typer.Option(help="Server address for Zed's settings. Default: this machine's.")] = None,
    config: Config = None,
) -> None:
    """Show what an editor's settings need, and where.

    For Neovim it also writes a file of its own, when you agree. Exit status 1 when that was not written.
    """
    from calomel.cli.editor_plans import PLANS
    from calomel.storage import write_whole

    plan = PLANS[name](_here(config, url))
    for snippet in plan.snippets:
        print(f"To put {snippet.where}:\n\n{indent(snippet.text, '    ')}\n")
    refused = False
    if plan.file is not None:
        path, text = plan.file
        if path.exists():
            print(f"{path} exists already; nothing is written.")
        else:
            print(f"{path}, which is written for you:\n\n{indent(text, '    ')}")
            refused = not _agreed(yes=yes)
            if not refused:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, text)
                print(f"Wrote {path}")
    for note in plan.notes:
        print(note)
    if refused:
        raise typer.Exit(1)


def _here(config: Path | None, url: str | None) -> Here:
    from calomel.cli.editor_plans import here
    from calomel.server.settings import load

    found = here(load({}, config).settings)
    if url is None:
        return found
    try:
        parts = urlsplit(url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or parts.path.rstrip("/") or parts.query or parts.username:
        raise InputError("--url: an address such as http://127.0.0.1:8017, without a path")
    return replace(found, url=url)


def _agreed(*, yes: bool) -> bool:
    if yes:
        return True
    if not sys.stdin.isatty():
        print("Nothing was written. Add --yes to write it.")
        return False
    return typer.confirm("Write this?")
