"""`calomel corpus`: build the training corpus from permissively licensed packages and repositories."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.errors import CommandError


def corpus(
    out: Annotated[Path, typer.Option(help="Where the shards, the summary and the NOTICE go.")],
    cache: Annotated[Path | None, typer.Option(help="Where downloaded archives and clones are kept.")] = None,
    packages: Annotated[Path | None, typer.Option(help="List of packages. Default: the one that ships.")] = None,
    repositories: Annotated[
        Path | None, typer.Option(help="List of repositories. Default: the one that ships; with --packages, none.")
    ] = None,
) -> None:
    """Build the training corpus. Downloads packages and clones repositories: it uses the network."""
    from calomel.training.corpus.build import CorpusConfig, build_corpus
    from calomel.training.corpus.shards import CorpusError

    config = CorpusConfig(out=out)
    config = replace(
        config,
        cache=cache or config.cache,
        packages=packages or config.packages,
        repositories=repositories or (None if packages else config.repositories),
    )
    try:
        build_corpus(config, report=print)
    except CorpusError as error:
        raise CommandError(str(error)) from error
