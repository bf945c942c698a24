"""The training commands: `calomel corpus`, `edits` and `train`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calomel.cli.options import Device, made_of

if TYPE_CHECKING:
    pass


def corpus(
    out: Annotated[Path, typer.Option(help="Where the shards, the summary and the NOTICE go.")],
    cache: Annotated[Path | None, typer.Option(help="Where downloaded archives and clones are kept.")] = None,
    packages: Annotated[Path | None, typer.Option(help="List of packages, instead of the shipped lists.")] = None,
    repositories: Annotated[Path | None, typer.Option(help="List of repositories, likewise.")] = None,
) -> None:
    """Build the training corpus. Downloads packages and clones repositories: it uses the network."""
    given = locals()
    from calomel.training.corpus.build import CorpusConfig, build_corpus

    config = made_of(CorpusConfig, given)
    # The user's own lists replace the shipped ones.
    if repositories is not None and packages is None:
        config = replace(config, packages=None)
    if packages is not None and repositories is None:
        config = replace(config, repositories=None)
    build_corpus(config, report=print)


def edits(
    corpus: Annotated[Path, typer.Option(help="Folder that `calomel corpus` has written.")],
    out: Annotated[Path, typer.Option(help="Where the stories, the summary and the NOTICE go.")],
    stories: Annotated[int, typer.Option(min=0, help="Training stories wanted.")] = 140_000,
    heldout_stories: Annotated[int, typer.Option("--heldout", min=0, help="Held-out stories wanted.")] = 80,
    cache: Annotated[Path | None, typer.Option(help="Where clones are kept.")] = None,
    repositories: Annotated[Path | None, typer.Option(help="List of repositories. Default: the shipped.")] = None,
) -> None:
    """Build the edits to train on. Clones repositories, where the cache has none of them: it uses the network then."""
    given = locals()
    from calomel.training.edits.build import EditsConfig, build_edits

    build_edits(made_of(EditsConfig, given), report=print)


def train(
    config: Annotated[Path, typer.Argument(help="The run: corpus, shape of the model, losses, rows.")],
    out: Annotated[Path, typer.Option(help="Folder of the checkpoints and the log.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in --out stopped.")] = False,
    pause_file: Annotated[Path | None, typer.Option(help="The run waits while this file exists.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Length of the run; overrides the file's.")] = None,
    device: Device = "cpu",
) -> None:
    """Train a model as CONFIG (TOML) says."""
    from calomel.training.config import TrainConfig
    from calomel.training.run import train as run

    settings = TrainConfig.from_file(config)
    if rows is not None:
        settings = replace(settings, rows=rows)
    run(settings, out, resume=resume, pause_file=pause_file, device=device)
