"""The list of subcommands."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from calomel.cli.bench import bench
from calomel.cli.calibrate import calibrate
from calomel.cli.config import config
from calomel.cli.editor import editor
from calomel.cli.fill import fill, tryout
from calomel.cli.models import models
from calomel.cli.output import say
from calomel.cli.page import page
from calomel.cli.refit import refit
from calomel.cli.replay import replay
from calomel.cli.serve import doctor, lsp, serve
from calomel.cli.stats import stats
from calomel.cli.train import corpus, edits, shards, train

_SECTIONS: Final = {
    "Commands": (
        "try", "fill", "models", "editor", "doctor", "stats", "replay", "calibrate", "serve", "page", "config", "lsp",
    ),
    "Measure and train": ("bench", "corpus", "edits", "shards", "train", "refit"),
}  # fmt: skip


class _Sections(TyperGroup):
    """Lists what people run every day before what measures and trains."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 (as it is called)
        for title, names in _SECTIONS.items():
            with formatter.section(title):
                room = formatter.width - 6 - max(map(len, names))
                formatter.write_dl([(name, self.commands[name].get_short_help_str(room)) for name in names])


# Plain help: the decorated one imports rich and three more packages before it prints a word.
app = typer.Typer(
    name="calomel",
    cls=_Sections,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("try")(tryout)
for command in (fill, lsp, serve, page, doctor, replay, stats, corpus, edits, shards, train, calibrate, refit):
    app.command()(command)
for name, group in {"config": config, "editor": editor, "models": models, "bench": bench}.items():
    app.add_typer(group, name=name)


def _print_version(wanted: bool) -> None:
    if wanted:
        # Imported at the top, it would take a quarter of the time of `calomel --help`.
        from importlib.metadata import version

        say(version("calomel"))
        raise typer.Exit


def program() -> Any:
    """The whole tree, whose help names values in a reader's words, not by Python's types."""
    command = typer.main.get_command(app)
    todo = [command]
    while todo:
        each: Any = todo.pop()
        todo += getattr(each, "commands", {}).values()
        for parameter in each.params:
            if parameter.param_type_name == "argument":
                parameter.metavar = parameter.metavar or parameter.name.upper()
                parameter.display_type_rich = lambda ctx: None  # noqa: ARG005 (as it is called)
            elif parameter.metavar is None and not parameter.is_flag:
                kind = parameter.type_descriptor
                named = "PATH" if kind.is_path else _VALUES.get(parameter.bare_type())
                parameter.metavar = "N" if kind.is_ranged else named
    return command


_VALUES: Final = {"int": "N", "float": "N", "str": "NAME", "list[str]": "NAME", "list[int]": "N", "list[Path]": "FILE"}


# Slow commands that report no progress, and print at the end or as they go.
_SLOW: Final = frozenset({"fill", "doctor", "stats", "calibrate", "corpus", "edits", "shards", "models"})


@app.callback(invoke_without_command=True)
def calomel(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001 (its callback has answered)
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Code suggestions from a model on your own machine. Without a command: your next steps."""
    name = ctx.invoked_subcommand
    if name is None:
        from calomel.cli.steps import show_steps

        show_steps()
    elif name in _SLOW and "--json" not in sys.argv:
        from calomel.report.running import Progress

        ctx.with_resource(Progress().later(f"calomel {name}"))
