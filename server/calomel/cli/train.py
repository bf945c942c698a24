"""`calomel train`: train a model from scratch, or further, as a TOML file says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.errors import InputError, check_device


def train(
    config: Annotated[Path, typer.Argument(help="The run: corpus, shape of the model, losses, rows.")],
    out: Annotated[Path, typer.Option(help="Folder of the checkpoints and the log.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in --out stopped.")] = False,
    pause_file: Annotated[Path | None, typer.Option(help="The run waits while this file exists.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Length of the run; overrides the file's.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
) -> None:
    """Train a model as CONFIG (TOML) says."""
    from calomel.engine.errors import CheckpointError
    from calomel.training.config import TrainConfig, TrainingConfigError
    from calomel.training.corpus.shards import CorpusError
    from calomel.training.run import train as run

    try:
        settings = TrainConfig.from_file(config)
    except TrainingConfigError as error:
        raise InputError(str(error)) from error
    check_device(device)
    if rows is not None:
        settings = replace(settings, rows=rows)
    try:
        run(settings, out, resume=resume, pause_file=pause_file, device=device)
    except (TrainingConfigError, CorpusError, CheckpointError) as error:
        raise InputError(str(error)) from error
