"""`calomel refit`: everything that is fitted to a model's answers, fitted anew for a new checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.output import CommandError, Device, InputError, console, say


def refit(
    checkpoint: Annotated[Path, typer.Argument(help="Checkpoint folder; it stays as it is.")],
    into: Annotated[Path, typer.Option(help="Output folder.")],
    corpus: Annotated[Path, typer.Option(help="Output folder of `calomel corpus`: code the model was not trained on.")],
    edits: Annotated[Path, typer.Option(help="Output folder of `calomel edits` for that corpus.")],
    minutes: Annotated[float, typer.Option(min=0, help="Time limit.")] = 20.0,
    device: Device = "cpu",
    jobs: Annotated[int, typer.Option(min=1, help="Parallel processes, each with its own engine.")] = 1,
) -> None:
    """Fit a new checkpoint's filter and recall.

    It prints the quality of the old and the new fits on the new model's answers.
    """
    from calomel.bench.refit import RefitOptions
    from calomel.bench.refit import refit as run
    from calomel.training.corpus.build import TRAIN as DOCUMENTS
    from calomel.training.edits.build import TRAIN as STORIES

    if not (checkpoint / "config.json").is_file():
        raise InputError(f"{checkpoint} is not a checkpoint: it has no config.json", "name the folder of its weights")
    if into.resolve() == checkpoint.resolve():
        raise InputError(
            "--into is the checkpoint itself", "name another folder; copy the fits when you have seen them"
        )
    for option, path, command in (
        (
            "--corpus",
            corpus / DOCUMENTS,
            "calomel corpus --repositories model/calomel/training/corpus/calibration.toml",
        ),
        ("--edits", edits / STORIES, "calomel edits --repositories model/calomel/training/corpus/calibration.toml"),
    ):
        if not path.is_file():
            raise InputError(f"{option}: {path} does not exist", command)
    options = RefitOptions(checkpoint, corpus / DOCUMENTS, edits / STORIES, minutes, device, jobs)
    made = run(options, into, lambda line: say(line, err=True))
    for table in made.tables:
        console(wrap=True).print(table.to_rich())
    for what, why in made.missing.items():
        say(f"{what}: not fitted. {why}.")
    say(f"written to {into}")
    if made.missing:
        raise CommandError(f"not fitted: {', '.join(made.missing)}", "a higher --minutes")
