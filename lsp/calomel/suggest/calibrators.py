"""Where calibrators come from: the user's own for these weights, else the one beside them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from calomel.selectivity.calibrator import CALIBRATOR_FILE, Calibrator, CalibratorError
from calomel.suggest.completer import ModelInfo

LOG: Final = logging.getLogger(__name__)


def user_calibrator_path(weights: str) -> Path:
    """Where the user's own calibrator for a model lies, in the state folder of XDG.

    Args:
        weights: short hash of the model's weights.
    """
    import platformdirs

    folder = platformdirs.user_state_path("calomel", appauthor=False) / "calibrators"
    return folder / f"{''.join(filter(str.isalnum, weights)) or 'unknown'}.json"


def calibrator_for(info: ModelInfo) -> Calibrator:
    """The user's own, if it was fitted for these weights; else the shipped one; one that knows nothing without both.

    A damaged file is said once in the log, and not used.
    """
    shipped = Calibrator() if info.tokenizer is None else _read(Path(info.tokenizer).parent / CALIBRATOR_FILE)
    own = _read(user_calibrator_path(info.weights))
    if own is None or own.model != info.weights:
        return shipped or Calibrator()
    kinds = {**(shipped.kinds if shipped else {}), **own.kinds}
    return Calibrator(kinds, own.thresholds or (shipped.thresholds if shipped else {}), own.model)


def _read(path: Path) -> Calibrator | None:
    try:
        return Calibrator.read(path) if path.is_file() else None
    except CalibratorError as error:
        LOG.warning("%s", error)
        return None
