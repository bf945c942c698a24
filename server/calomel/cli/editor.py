"""`calomel editor`: set an editor up for Calomel."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Final
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
        str, typer.Argument(metavar="EDITOR", help="vscode, neovim, zed, helix, emacs or sublime.", show_default=False)
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Server address for Zed's settings. Default: this machine's.")
    ] = None,
    config: Config = None,
) -> None:
    """Print the settings an editor needs, and where they belong.

    For Neovim, also write its own file, if you agree. Exit status 1 if that was not written.
    """
    from calomel.cli.editor_plans import PLANS
    from calomel.storage import write_whole

    plan = PLANS[_editor(name)](_here(config, url))
    for snippet in plan.snippets:
        print(f"Add this {snippet.where}:\n\n{indent(snippet.text, '    ')}\n")
    refused = False
    if plan.file is not None:
        path, text = plan.file
        if path.exists():
            print(f"{path} exists already. Calomel leaves it as it is.")
        else:
            print(f"{path}, which Calomel writes for you:\n\n{indent(text, '    ')}")
            refused = not _agreed(yes=yes)
            if not refused:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, text)
                print(f"Wrote {path}")
    for note in plan.notes:
        print(note)
    if refused:
        raise typer.Exit(1)


def _editor(name: str) -> str:
    """The editor that is meant. Raises InputError."""
    from calomel.cli.editor_plans import PLANS

    found = _SAME.get(name.lower(), name.lower())
    if found in PLANS:
        return found
    known = ", ".join(PLANS)
    if found in _WITHOUT:
        raise InputError(f"Calomel has no plugin for {name}: {_WITHOUT[found]}")
    raise InputError(f"{name} is not a known editor: choose {known}, or start `calomel lsp` as its language server")


_SAME: Final = {
    **dict.fromkeys(("code", "vs-code", "codium", "vscodium", "cursor", "windsurf", "insiders"), "vscode"),
    **dict.fromkeys(("nvim", "lazyvim", "astronvim"), "neovim"),
    **dict.fromkeys(("hx",), "helix"),
    **dict.fromkeys(("spacemacs", "doom"), "emacs"),
    **dict.fromkeys(("subl", "sublimetext", "sublime-text"), "sublime"),
}
_JETBRAINS: Final = "Continue has one that can use `calomel serve`, untested"
_WITHOUT: Final = {
    **dict.fromkeys(("jetbrains", "intellij", "idea", "pycharm", "webstorm", "goland", "rustrover"), _JETBRAINS),
    "vim": "llama.vim can use `calomel serve`; Neovim has a plugin (neovim)",
    "visualstudio": "VS Code has one (vscode)",
}


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
        print("Nothing written. Add --yes to write it.")
        return False
    return typer.confirm("Write this?")
