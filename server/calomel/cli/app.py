"""Which subcommands there are."""

from __future__ import annotations

from typing import Annotated

import typer

from calomel.cli.bench import bench
from calomel.cli.calibrate import calibrate
from calomel.cli.config import config
from calomel.cli.context import context
from calomel.cli.demo import demo
from calomel.cli.editor import editor
from calomel.cli.fill import fill, tryout
from calomel.cli.models import models
from calomel.cli.replay import replay
from calomel.cli.serve import doctor, lsp, serve
from calomel.cli.stats import stats
from calomel.cli.train import align, corpus, edits, train

# Plain help: the decorated one imports rich and three more packages before it prints a word.
app = typer.Typer(
    name="calomel",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("try")(tryout)
for command in (demo, fill, context, lsp, serve, doctor, replay, stats, corpus, edits, train, align, calibrate):
    app.command()(command)
for name, group in {"config": config, "editor": editor, "models": models, "bench": bench}.items():
    app.add_typer(group, name=name)


def _print_version(wanted: bool) -> None:
    if wanted:
        # A quarter of the time of `calomel --help`, were it imported above.
        from importlib.metadata import version

        print(version("calomel"))
        raise typer.Exit


@app.callback()
def calomel(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Fill-in-the-middle on a local diffusion language model; nothing leaves this machine."""
