"""The training commands: `calomel corpus`, `edits`, `shards` and `train`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.output import Device, made_of


def corpus(
    out: Annotated[Path, typer.Option(help="Output folder.")],
    cache: Annotated[Path | None, typer.Option(help="Cache folder for archives and clones.")] = None,
    packages: Annotated[Path | None, typer.Option(help="List of packages. Default: the shipped one.")] = None,
    repositories: Annotated[Path | None, typer.Option(help="List of repositories. Default: the shipped one.")] = None,
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
    corpus: Annotated[Path, typer.Option(help="Output folder of `calomel corpus`.")],
    out: Annotated[Path, typer.Option(help="Output folder.")],
    stories: Annotated[int, typer.Option(min=0, help="Number of training sequences.")] = 140_000,
    heldout_stories: Annotated[int, typer.Option("--heldout", min=0, help="Number of held-out sequences.")] = 80,
    cache: Annotated[Path | None, typer.Option(help="Cache folder for clones.")] = None,
    repositories: Annotated[Path | None, typer.Option(help="List of repositories. Default: the shipped one.")] = None,
) -> None:
    """Build editing sequences to train on. Clones repositories missing from the cache."""
    given = locals()
    from calomel.training.edits.build import EditsConfig, build_edits

    build_edits(made_of(EditsConfig, given), report=print)


def shards(
    corpus: Annotated[Path, typer.Option(help="Output folder of `calomel corpus`.")],
    out: Annotated[Path, typer.Option(help="Output folder.")],
    edits: Annotated[Path | None, typer.Option(help="Output folder of `calomel edits`.")] = None,
    tokenizer: Annotated[Path | None, typer.Option(help="A tokenizer.json. Default: train one on the corpus.")] = None,
    vocab_size: Annotated[int, typer.Option("--vocabulary", min=300, max=65536, help="Its size.")] = 8192,
    tokens: Annotated[int, typer.Option(min=0, help="At most so many tokens of text; 0 for all.")] = 0,
) -> None:
    """Write a corpus and its editing sequences as tokens, which `calomel train` reads."""
    from calomel.training.rendered import render

    render(corpus, edits, out, tokenizer=tokenizer, vocab_size=vocab_size, tokens=tokens, report=print)


def train(
    config: Annotated[Path, typer.Argument(help="Training configuration (TOML).")],
    out: Annotated[Path, typer.Option(help="Output folder.")],
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    pause_file: Annotated[Path | None, typer.Option(help="Pause while this file exists.")] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Length of the run in rows; overrides the configuration.")
    ] = None,
    device: Device = "cpu",
) -> None:
    """Train a model from a TOML configuration."""
    from calomel.training.config import TrainConfig
    from calomel.training.run import train as run

    settings = TrainConfig.from_file(config)
    if rows is not None:
        settings = replace(settings, rows=rows)
    run(settings, out, resume=resume, pause_file=pause_file, device=device)
