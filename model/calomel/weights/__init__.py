"""The weights that are shipped with the package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def nano_path() -> Path:
    """The checkpoint folder of the embedded default model."""
    return Path(str(files("calomel.weights"))) / "nano"
