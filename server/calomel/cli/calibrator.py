"""`calomel train-calibrator`: fit how likely a proposed edit is right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calomel.cli.errors import InputError


def train_calibrator(
    signals: Annotated[Path, typer.Argument(help="What `calomel bench edits --signals` wrote.")],
    out: Annotated[Path, typer.Option(help="calibrator.json to write, or the checkpoint folder that it belongs to.")],
    penalty: Annotated[float | None, typer.Option(min=0.0, help="On squared weights.")] = None,
) -> None:
    """Fit the calibrator of next edits, and print what it is worth on packages that it was not fitted to."""
    from calomel.training.fit_edits import PENALTY, SignalsError, calibrator_path, fit, read_lines

    try:
        found = fit(read_lines(signals), penalty=PENALTY if penalty is None else penalty)
    except SignalsError as error:
        raise InputError(str(error)) from error
    path = calibrator_path(out)
    found.write(path)
    print(found.to_text())
    print(f"written to {path}")
