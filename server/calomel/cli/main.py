"""The entry point: which subcommands there are, and how their errors become exit statuses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from calomel.cli.bench import bench
from calomel.cli.context import context
from calomel.cli.corpus import corpus
from calomel.cli.errors import CommandError
from calomel.cli.fill import fill
from calomel.cli.lsp import lsp
from calomel.cli.serve import serve
from calomel.cli.train import train
from calomel.cli.tryout import tryout

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
app.command()(fill)
app.command()(context)
app.command()(lsp)
app.command()(serve)
app.add_typer(bench, name="bench")
app.command()(corpus)
app.command()(train)


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line `arguments` (default: the process's own); always raises SystemExit.

    Exit status 0: done. 1: the work failed. 2: the command line, or something that it names, cannot be used.
    """
    try:
        app(args=None if arguments is None else list(arguments))
    except CommandError as error:
        print(f"calomel: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from error
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("calomel"):
            raise
        print(f"calomel: {error.name} is not installed: pip install 'calomel[bench,train]' brings it", file=sys.stderr)
        raise SystemExit(1) from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # 128 + SIGINT, as shells expect
