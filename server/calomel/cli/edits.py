"""`calomel edits`: build the edits to train on from a corpus, releases of its packages, and commits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.errors import CommandError


def edits(
    corpus: Annotated[Path, typer.Option(help="Folder that `calomel corpus` has written.")],
    out: Annotated[Path, typer.Option(help="Where the stories, the summary and the NOTICE go.")],
    stories: Annotated[int, typer.Option(min=0, help="Training stories wanted.")] = 25_000,
    heldout: Annotated[int, typer.Option(min=0, help="Held-out stories wanted.")] = 300,
    commits: Annotated[int, typer.Option(min=0, help="Training stories wanted of commits, beside those.")] = 140_000,
    cache: Annotated[Path | None, typer.Option(help="Where downloaded archives are kept.")] = None,
    packages: Annotated[Path | None, typer.Option(help="List of the corpus's packages. Default: the shipped.")] = None,
    releases: Annotated[Path | None, typer.Option(help="List of releases. Default: the one that ships.")] = None,
    repositories: Annotated[Path | None, typer.Option(help="List of repositories. Default: the shipped.")] = None,
) -> None:
    """Build the edits to train on. Downloads earlier releases of the corpus's packages, and clones repositories."""
    from calomel.training.corpus.shards import CorpusError
    from calomel.training.edits.build import EditsConfig, build_edits

    config = EditsConfig(corpus=corpus, out=out, stories=stories, heldout_stories=heldout, commits=commits)
    config = replace(
        config,
        cache=cache or config.cache,
        packages=packages or config.packages,
        releases=releases or config.releases,
        repositories=repositories or config.repositories,
    )
    try:
        build_edits(config, report=print)
    except CorpusError as error:
        raise CommandError(str(error)) from error
