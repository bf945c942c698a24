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
from calomel.cli.output import visible

if TYPE_CHECKING:
    from calomel.cli.editor_files import Plan
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
    undo: Annotated[bool, typer.Option("--undo", help="Undo the last change.")] = False,
    url: Annotated[str | None, typer.Option(help="Server address for Zed's settings. Default: this machine's.")] = None,
    file: Annotated[Path | None, typer.Option(help="Settings file of the editor. Default: its usual one.")] = None,
    config: Config = None,
) -> None:
    """Show what an editor's settings need, and write it when you agree.

    Only what can be written safely is: settings keep their comments, order and layout, and the former text stays
    beside them. The rest is printed. Exit status 1 when something was to be written and was not.
    """
    from calomel.cli.editor_files import write
    from calomel.cli.editor_plans import PLANS

    plan = PLANS[name](_here(config, url), file)
    if undo:
        _undo(plan, yes=yes)
        return
    needed = [change for change in plan.changes if change.needed]
    for change in plan.changes:
        print(visible(change.diff()) if change.needed else f"{change.path}: nothing to change")
    for snippet in plan.snippets:
        print(f"To put {snippet.where}:\n\n{indent(snippet.text, '    ')}")
    refused = bool(needed) and not _agreed(yes=yes)
    if not refused:
        for change in needed:
            backup = write(change)
            print(f"Wrote {change.path}" + ("" if backup is None else f"; as it was: {backup}"))
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


def _undo(plan: Plan, *, yes: bool) -> None:
    from calomel.cli.editor_files import undo, undone

    if not plan.changes:
        raise InputError("Calomel wrote nothing for this editor, so there is nothing to undo")
    for change in plan.changes:
        found = undone(change.path)
        if found is None:
            print(f"{change.path}: nothing to undo")
            continue
        back, backup = found
        print(visible(back.diff()))
        if not _agreed(yes=yes):
            raise typer.Exit(1)
        undo(back, backup)
        print(f"{change.path}: {'as it was' if back.after else 'removed'}")


def _agreed(*, yes: bool) -> bool:
    if yes:
        return True
    if not sys.stdin.isatty():
        print("Nothing was written. Add --yes to write it.")
        return False
    return typer.confirm("Write this?")
